use std::path::PathBuf;
use std::time::Duration;

use pillarbox_connect::{Address, Form, Scheme, timeout};
use pillarbox_core::error::ConfigError;
use pillarbox_core::publisher::Secret;
use serde::Deserialize;

use crate::route::SHORT;

const URL: Form = Form {
    schemes: &[Scheme::plain("amqp", 5672), Scheme::tls("amqps", 5671)],
    several: false,
    path: true,
    remedy: "write it as `amqps://HOST:PORT/VHOST`",
};

/// The address of RabbitMQ, and the options of publishing.
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
    /// The user to log in as. Default: the user of the URL, otherwise `guest`, whom RabbitMQ accepts from its own machine only.
    #[serde(default)]
    pub username: Option<String>,
    /// The password. Default: that of the URL, otherwise `guest`.
    #[serde(default)]
    pub password: Option<Secret>,
    /// The limit of one call to publish, and of connecting. Default: 10 s.
    #[serde(default = "timeout::default", deserialize_with = "timeout::read")]
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
            timeout: timeout::default(),
            plaintext: false,
            ca_file: None,
            max_body: sixteen_mebibytes(),
        }
    }

    /// Validates all options and says where the broker is and whom to log in as.
    pub(crate) fn validate(&self) -> Result<(Address, Option<(String, Secret)>), ConfigError> {
        let address = URL.read(self.url.expose())?;
        if address.path.as_ref().is_some_and(|vhost| vhost.len() > SHORT) {
            return Err(address.refuse(format!("has a virtual host of more than {SHORT} bytes")));
        }
        address.check_protection(self.plaintext, self.ca_file.as_deref())?;
        let login = address.login.clone().with(self.username.as_deref(), self.password.as_ref())?.pair()?;
        timeout::check(self.timeout, &timeout::RANGE)?;
        if self.max_body == 0 {
            let remedy = "set the largest body in bytes, or remove it";
            return Err(ConfigError::new("max_body", "is 0, which would send nothing", remedy));
        }
        Ok((address, login))
    }
}

fn sixteen_mebibytes() -> usize {
    16 * 1024 * 1024
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::RabbitMqPublisher;

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
        let refused: [(&str, &str, Change); 11] = [
            ("url", "plaintext = true", |o| o.url = "amqp://user:hunter2@far.example".into()),
            ("url", "write it as `amqps://HOST:PORT/VHOST`", |o| o.url = "http://u:hunter2@localhost".into()),
            ("url", "%2F", |o| o.url = "amqp://localhost/a/b".into()),
            ("url", "more than 255 bytes", |o| o.url = format!("amqp://localhost/{}", "x".repeat(256)).into()),
            ("url", "several hosts", |o| o.url = "amqp://localhost,127.0.0.1".into()),
            ("ca_file", "without TLS", |o| o.ca_file = Some("/ca.pem".into())),
            ("username", "a user too", |o| {
                (o.url, o.username) = ("amqp://a:hunter2@localhost".into(), Some("b".into()));
            }),
            ("username", "is missing", |o| o.password = Some("hunter2".into())),
            ("password", "is missing", |o| o.username = Some("b".into())),
            ("timeout", "is 0s", |o| o.timeout = Duration::ZERO),
            ("max_body", "is 0", |o| o.max_body = 0),
        ];
        for (field, problem, change) in refused {
            let (named, text) = with(change).expect_err(problem);
            assert_eq!(named, field, "{text}");
            assert!(text.contains(problem) && !text.contains("hunter2"), "{problem}: {text}");
        }
    }

    #[test]
    fn a_url_names_a_virtual_host() {
        let publisher = |url: &str| RabbitMqPublisher::new(RabbitMqOptions::new(url)).expect(url);
        for (url, vhost, address) in [
            ("amqp://localhost", "/", "amqp://localhost:5672"),
            ("amqp://localhost/%2f", "/", "amqp://localhost:5672"),
            ("amqps://u:p%40ss@far.example:7000/shop", "shop", "amqps://far.example:7000/shop"),
            ("amqps://[::1]/a%2Fb/", "a/b", "amqps://[::1]:5671/a/b"),
        ] {
            let publisher = publisher(url);
            assert_eq!((&*publisher.vhost, &*publisher.info.address), (vhost, address));
        }
        assert_eq!(publisher("amqp://u%3A:p%40ss@[::1]").login, Some(("u:".to_owned(), "p@ss".into())));
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
