use std::path::PathBuf;
use std::time::Duration;

use pillarbox_core::error::ConfigError;
use pillarbox_core::publisher::{Secret, is_this_host};
use serde::{Deserialize, Deserializer};

use crate::address::Address;

/// Where RabbitMQ is and how messages are published.
///
/// ```
/// use std::time::Duration;
/// use pillarbox_rabbitmq::RabbitMqOptions;
///
/// let mut options = RabbitMqOptions::new("amqps://relay@rabbit.example.com/shop");
/// options.password = Some("not in the URL".into());
/// options.timeout = Duration::from_secs(5);
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct RabbitMqOptions {
    /// `amqp://HOST[:PORT][/VHOST]`, or `amqps://…` with TLS. The port is 5672, with TLS 5671, and the virtual host `/` unless
    /// it says otherwise; a `/` in the name of one is written `%2F`. It may hold `USER:PASSWORD@`.
    pub url: Secret,
    /// Whom to log in as. Default: the user of the URL, otherwise `guest`, whom RabbitMQ accepts from its own machine only.
    #[serde(default)]
    pub username: Option<String>,
    /// The password. Default: that of the URL, otherwise `guest`.
    #[serde(default)]
    pub password: Option<Secret>,
    /// How long one call to publish, and connecting, may take. Default: 10 s.
    #[serde(default = "ten_seconds", deserialize_with = "duration")]
    pub timeout: Duration,
    /// Allows a connection without TLS to another machine. Default: no.
    #[serde(default)]
    pub plaintext: bool,
    /// The certificate authorities that are trusted, a PEM file. Default: the system's.
    #[serde(default)]
    pub ca_file: Option<PathBuf>,
    /// The largest body that is sent, in bytes. It should not exceed the broker's `max_message_size`, beyond which RabbitMQ
    /// closes the channel and the other messages on it are sent again. Default: 16,777,216, as RabbitMQ 4 has it.
    #[serde(default = "sixteen_mebibytes")]
    pub max_body: usize,
}

impl RabbitMqOptions {
    /// The defaults, for the RabbitMQ at `url`.
    pub fn new(url: impl Into<Secret>) -> Self {
        Self {
            url: url.into(),
            username: None,
            password: None,
            timeout: ten_seconds(),
            plaintext: false,
            ca_file: None,
            max_body: sixteen_mebibytes(),
        }
    }

    /// Validates all options and says where the broker is and whom to log in as.
    pub(crate) fn validate(&self) -> Result<Address, ConfigError> {
        let mut address = Address::parse(self.url.expose())?;
        if !address.tls && !self.plaintext && !is_this_host(&address.host) {
            return Err(ConfigError::new(
                "url",
                format!("is a connection without TLS to {}, another machine", address.host),
                "write `amqps://` for TLS, or set `plaintext = true` if the network is trusted",
            ));
        }
        if !address.tls && self.ca_file.is_some() {
            let remedy = "write `amqps://` in `url`, or remove `ca_file`";
            return Err(ConfigError::new("ca_file", "is set, and the connection is without TLS", remedy));
        }
        if self.username.is_some() && address.username.is_some() {
            return Err(ConfigError::new("username", "is set, and the URL has a user too", "remove one of them"));
        }
        if self.password.is_some() && address.password.is_some() {
            return Err(ConfigError::new("password", "is set, and the URL has a password too", "remove one of them"));
        }
        address.username = self.username.clone().or(address.username);
        address.password = self.password.clone().or(address.password);
        if address.username.is_some() != address.password.is_some() {
            let (missing, there) =
                if address.username.is_some() { ("password", "user") } else { ("username", "password") };
            return Err(ConfigError::new(missing, format!("is missing, and there is a {there}"), "set both"));
        }
        if self.timeout.is_zero() {
            return Err(ConfigError::new("timeout", "is zero", "set at least 1 ms; 10 s is the default"));
        }
        if self.max_body == 0 {
            let remedy = "set the largest body in bytes, or remove it";
            return Err(ConfigError::new("max_body", "is 0, which would send nothing", remedy));
        }
        Ok(address)
    }
}

fn ten_seconds() -> Duration {
    Duration::from_secs(10)
}

fn sixteen_mebibytes() -> usize {
    16 * 1024 * 1024
}

fn duration<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    let text = String::deserialize(deserializer)?;
    humantime::parse_duration(&text).map_err(|_| {
        serde::de::Error::custom(format!("{text:?} is no duration; write a number and a unit, such as \"10s\""))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_is_refused_with_its_field_and_no_secret() {
        let with = |change: fn(&mut RabbitMqOptions)| {
            let mut options = RabbitMqOptions::new("amqp://localhost");
            change(&mut options);
            options.validate().map(|_| ()).map_err(|error| (error.field(), error.to_string()))
        };
        assert_eq!(with(|_| {}), Ok(()));
        assert_eq!(with(|o| o.url = "amqps://u:p@far.example/shop".into()), Ok(()));
        assert_eq!(with(|o| (o.url, o.plaintext) = ("amqp://far.example".into(), true)), Ok(()));
        assert_eq!(with(|o| (o.url, o.password) = ("amqp://u@localhost".into(), Some("p".into()))), Ok(()));
        type Change = fn(&mut RabbitMqOptions);
        let refused: [(&str, &str, Change); 13] = [
            ("url", "plaintext = true", |o| o.url = "amqp://user:hunter2@far.example".into()),
            ("url", "is no URL", |o| o.url = "hunter2".into()),
            ("url", "begins with \"http\"", |o| o.url = "http://u:hunter2@localhost".into()),
            ("url", "has no host", |o| o.url = "amqp:///shop".into()),
            ("url", "%2F", |o| o.url = "amqp://localhost/a/b".into()),
            ("url", "has a query", |o| o.url = "amqp://localhost?password=hunter2".into()),
            ("url", "is no text", |o| o.url = "amqp://u:%FFhunter2@localhost".into()),
            ("ca_file", "without TLS", |o| o.ca_file = Some("/ca.pem".into())),
            ("username", "a user too", |o| {
                (o.url, o.username) = ("amqp://a:hunter2@localhost".into(), Some("b".into()));
            }),
            ("password", "a password too", |o| {
                (o.url, o.password) = ("amqp://a:hunter2@localhost".into(), Some("hunter2".into()));
            }),
            ("password", "is missing", |o| o.username = Some("b".into())),
            ("timeout", "is zero", |o| o.timeout = Duration::ZERO),
            ("max_body", "is 0", |o| o.max_body = 0),
        ];
        for (field, problem, change) in refused {
            let (named, text) = with(change).expect_err(problem);
            assert_eq!(named, field, "{text}");
            assert!(text.contains(problem) && !text.contains("hunter2"), "{problem}: {text}");
        }
    }

    #[test]
    fn a_configuration_names_what_differs_from_the_defaults() {
        let read = |json: &str| serde_json::from_str::<RabbitMqOptions>(json).map_err(|error| error.to_string());
        assert_eq!(read(r#"{"url":"amqp://localhost"}"#), Ok(RabbitMqOptions::new("amqp://localhost")));
        let all = r#"{"url":"amqp://localhost","username":"u","password":"p","timeout":"500ms","plaintext":true,
            "ca_file":"/ca.pem","max_body":8}"#;
        assert!(read(all).is_ok_and(|it| it.timeout == Duration::from_millis(500) && it.max_body == 8));
        assert!(read(r#"{"url":"amqp://localhost","timeout":"soon"}"#).is_err_and(|e| e.contains("\"10s\"")));
        assert!(read(r#"{"url":"amqp://localhost","exchange":"x"}"#).is_err_and(|e| e.contains("exchange")));
    }
}
