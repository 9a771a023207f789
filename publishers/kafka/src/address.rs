//! The addresses of the brokers, and the user that connects to them.

use pillarbox_connect::{Form, Host, Scheme};
use pillarbox_core::error::ConfigError;
use pillarbox_core::publisher::Secret;

use crate::options::{KafkaOptions, TIMEOUT};

const URL: Form = Form {
    schemes: &[Scheme::plain("kafka", 9092), Scheme::tls("kafkas", 9092)],
    several: true,
    path: false,
    remedy: "write `kafka://HOST:9092,HOST:9092`, or `kafkas://…` with TLS",
};
/// True if this build has OpenSSL, for TLS and SCRAM.
const HAS_TLS: bool = cfg!(feature = "ssl");

/// The connection, as the options describe it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Address {
    /// As librdkafka reads them.
    pub(crate) brokers: String,
    pub(crate) tls: bool,
    pub(crate) user: Option<User>,
    /// For people, without credentials.
    pub(crate) shown: String,
}

/// The user that connects, by SASL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct User {
    pub(crate) name: String,
    pub(crate) password: Secret,
    pub(crate) mechanism: &'static str,
}

impl Address {
    pub(crate) fn parse(options: &KafkaOptions) -> Result<Self, ConfigError> {
        let address = options.address(URL, &TIMEOUT)?;
        let tls = address.scheme.tls;
        if tls && !HAS_TLS {
            return Err(refuse_ssl("url", "asks for TLS", "write kafka://…"));
        }
        let mechanism = mechanism(options.sasl_mechanism.as_deref())?;
        let login = address.login.clone().pair()?;
        if login.is_none() && options.sasl_mechanism.is_some() {
            let remedy = "set `username` and `password`";
            return Err(ConfigError::new("sasl_mechanism", "has no `username` to go with", remedy));
        }
        let brokers: Vec<_> = address.hosts().map(Host::to_string).collect();
        let user = login.map(|(name, password)| User { name, password, mechanism });
        Ok(Self { brokers: brokers.join(","), tls, user, shown: address.to_string() })
    }
}

fn mechanism(wanted: Option<&str>) -> Result<&'static str, ConfigError> {
    match wanted {
        None | Some("PLAIN") => Ok("PLAIN"),
        Some("SCRAM-SHA-256" | "SCRAM-SHA-512") if !HAS_TLS => {
            Err(refuse_ssl("sasl_mechanism", "is one of SCRAM", "write PLAIN"))
        }
        Some("SCRAM-SHA-256") => Ok("SCRAM-SHA-256"),
        Some("SCRAM-SHA-512") => Ok("SCRAM-SHA-512"),
        Some(other) => {
            let remedy = "write PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512";
            Err(ConfigError::new("sasl_mechanism", format!("is {other:?}"), remedy))
        }
    }
}

/// Refuses an option that only a build with OpenSSL supports.
fn refuse_ssl(option: &'static str, problem: &str, otherwise: &str) -> ConfigError {
    let feature = "the feature `kafka-ssl` (`ssl` of pillarbox-kafka), which needs OpenSSL's headers";
    ConfigError::new(
        option,
        format!("{problem}, which this program was built without"),
        format!("build it with {feature}, or {otherwise}"),
    )
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn parse(url: &str, change: impl FnOnce(&mut KafkaOptions)) -> Result<Address, ConfigError> {
        let mut options = KafkaOptions::new(url);
        change(&mut options);
        Address::parse(&options)
    }

    #[test]
    fn urls_name_brokers_and_users() {
        let address = parse("kafka://u%40x:p%3Aq@localhost:1,127.0.0.1,[::1]:2,[::1]/", |_| ()).expect("an address");
        assert_eq!(address.brokers, "localhost:1,127.0.0.1:9092,[::1]:2,[::1]:9092");
        assert_eq!(address.shown, "kafka://localhost:1,127.0.0.1:9092,[::1]:2,[::1]:9092");
        let user = address.user.expect("a user");
        assert_eq!((&*user.name, user.password.expose(), user.mechanism), ("u@x", "p:q", "PLAIN"));
        let remote = parse("kafka://b1.example,b2.example", |o| o.plaintext = true).expect("an address");
        assert_eq!(remote.user, None);
    }

    #[test]
    fn invalid_settings_are_refused_with_a_remedy_and_without_secrets() {
        let error = |url: &str, change: fn(&mut KafkaOptions)| {
            let text = parse(url, change).expect_err(url).to_string();
            assert!(!text.contains("hunter2"), "{text}");
            text
        };
        assert!(error("localhost:9092", |_| ()).contains("write `kafka://HOST:9092,HOST:9092`"));
        assert!(error("kafka://u:hunter2@localhost,b.example", |_| ()).contains("write `kafkas://` for TLS"));
        assert!(error("kafka://localhost", |o| o.password = Some("hunter2".into())).contains("`username` is missing"));
        let limit = |o: &mut KafkaOptions| o.timeout = Duration::from_millis(200);
        assert!(error("kafka://localhost", limit).contains("`timeout` is 200ms; set `1s` to `15m`"));
        assert!(
            error("kafka://u:hunter2@localhost", |o| o.sasl_mechanism = Some("GSSAPI".into())).contains("\"GSSAPI\"")
        );
        assert!(error("kafka://localhost", |o| o.sasl_mechanism = Some("PLAIN".into())).contains("no `username`"));
    }

    #[test]
    fn tls_is_there_or_refused_clearly() {
        let tls = parse("kafkas://b.example", |_| ());
        let scram = parse("kafka://u:p@localhost", |o| o.sasl_mechanism = Some("SCRAM-SHA-512".into()));
        if cfg!(feature = "ssl") {
            assert!(tls.expect("an address").tls);
            assert_eq!(scram.expect("an address").user.map(|user| user.mechanism), Some("SCRAM-SHA-512"));
        } else {
            assert!(tls.expect_err("refused").to_string().contains("feature `kafka-ssl`"));
            assert!(scram.expect_err("refused").to_string().contains("feature `kafka-ssl`"));
        }
    }
}
