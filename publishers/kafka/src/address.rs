//! Where the brokers are, and who connects to them.

use pillarbox_core::error::ConfigError;
use pillarbox_core::publisher::{Secret, is_this_host};

use crate::options::KafkaOptions;

const PORT: u16 = 9092;
const WRITE: &str = "write kafka://host:9092,host:9092, or kafkas://… with TLS";
/// What this build can do.
const HAS_TLS: bool = cfg!(feature = "ssl");

/// What the options say about the connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Address {
    pub(crate) brokers: Vec<String>,
    pub(crate) tls: bool,
    pub(crate) user: Option<User>,
}

/// Who connects, by SASL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct User {
    pub(crate) name: String,
    pub(crate) password: Secret,
    pub(crate) mechanism: &'static str,
}

impl Address {
    pub(crate) fn parse(options: &KafkaOptions) -> Result<Self, ConfigError> {
        let refuse = |problem: &'static str, remedy: &'static str| Err(ConfigError::new("url", problem, remedy));
        let (tls, rest) = match options.url.expose().split_once("://") {
            Some(("kafka", rest)) => (false, rest),
            Some(("kafkas", rest)) => (true, rest),
            _ => return refuse("begins with neither kafka:// nor kafkas://", WRITE),
        };
        let (credentials, hosts) = rest.rsplit_once('@').map_or((None, rest), |(user, hosts)| (Some(user), hosts));
        let mut brokers = Vec::new();
        for host in hosts.strip_suffix('/').unwrap_or(hosts).split(',') {
            let Some((name, port)) = host_and_port(host) else {
                return refuse("holds something that is no host with a port", WRITE);
            };
            if !tls && !options.plaintext && !is_this_host(name) {
                return refuse(
                    "would send events without TLS to another machine",
                    "write kafkas://…, or set `plaintext = true` where the network is trusted",
                );
            }
            brokers.push(format!("{name}:{port}"));
        }
        if tls && !HAS_TLS {
            return refuse(
                "asks for TLS, which this program was built without",
                "build it with the feature `ssl` of pillarbox-kafka, which needs OpenSSL's headers, or write kafka://…",
            );
        }
        if options.ca_file.is_some() && !tls {
            return Err(ConfigError::new(
                "ca_file",
                "is set without TLS",
                "write kafkas://… in `url`, or leave it out",
            ));
        }
        Ok(Self { brokers, tls, user: user(options, credentials)? })
    }

    /// For people, without credentials.
    pub(crate) fn shown(&self) -> String {
        format!("{}://{}", if self.tls { "kafkas" } else { "kafka" }, self.brokers.join(","))
    }
}

/// `host`, `host:port` or `[address]:port`.
fn host_and_port(text: &str) -> Option<(&str, u16)> {
    let (name, port) = match text.rsplit_once(':') {
        Some((name, port)) if !port.ends_with(']') => (name, port.parse().ok()?),
        _ => (text, PORT),
    };
    let plain = |name: &str| name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._".contains(&byte));
    let bracketed = |name: &str| {
        name.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).is_some_and(|name| name.contains(':'))
    };
    (!name.is_empty() && (plain(name) || bracketed(name))).then_some((name, port))
}

fn user(options: &KafkaOptions, credentials: Option<&str>) -> Result<Option<User>, ConfigError> {
    let decoded = |text: &str| percent_encoding::percent_decode_str(text).decode_utf8_lossy().into_owned();
    let (mut name, mut password) = (options.username.clone(), options.password.clone());
    if let Some(credentials) = credentials {
        if name.is_some() || password.is_some() {
            let field = if name.is_some() { "username" } else { "password" };
            return Err(ConfigError::new(field, "contradicts the user in `url`", "leave one of them out"));
        }
        let (user, secret) = credentials.split_once(':').unwrap_or((credentials, ""));
        name = Some(decoded(user));
        password = Some(Secret::new(decoded(secret)));
    }
    let mechanism = mechanism(options.sasl_mechanism.as_deref())?;
    match (name, password) {
        (Some(name), Some(password)) => Ok(Some(User { name, password, mechanism })),
        (Some(_), None) => Err(ConfigError::new("username", "has no `password` to go with", "set both")),
        (None, Some(_)) => Err(ConfigError::new("password", "has no `username` to go with", "set both")),
        (None, None) if options.sasl_mechanism.is_some() => {
            Err(ConfigError::new("sasl_mechanism", "has no `username` to go with", "set `username` and `password`"))
        }
        (None, None) => Ok(None),
    }
}

fn mechanism(wanted: Option<&str>) -> Result<&'static str, ConfigError> {
    let refuse = |problem: String, remedy: &'static str| Err(ConfigError::new("sasl_mechanism", problem, remedy));
    match wanted {
        None | Some("PLAIN") => Ok("PLAIN"),
        Some("SCRAM-SHA-256" | "SCRAM-SHA-512") if !HAS_TLS => refuse(
            "is one of SCRAM, which this program was built without".to_owned(),
            "build it with the feature `ssl` of pillarbox-kafka, or write PLAIN",
        ),
        Some("SCRAM-SHA-256") => Ok("SCRAM-SHA-256"),
        Some("SCRAM-SHA-512") => Ok("SCRAM-SHA-512"),
        Some(other) => refuse(format!("is {other:?}"), "write PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(url: &str, change: impl FnOnce(&mut KafkaOptions)) -> Result<Address, ConfigError> {
        let mut options = KafkaOptions::new(url);
        change(&mut options);
        Address::parse(&options)
    }

    #[test]
    fn urls_name_brokers_and_users() {
        let address = parse("kafka://u%40x:p%3Aq@localhost:1,127.0.0.1,[::1]:2,[::1]/", |_| ()).expect("an address");
        assert_eq!(address.brokers, ["localhost:1", "127.0.0.1:9092", "[::1]:2", "[::1]:9092"]);
        assert_eq!(address.shown(), "kafka://localhost:1,127.0.0.1:9092,[::1]:2,[::1]:9092");
        let user = address.user.expect("a user");
        assert_eq!((&*user.name, user.password.expose(), user.mechanism), ("u@x", "p:q", "PLAIN"));
        let remote = parse("kafka://b1.example,b2.example", |o| o.plaintext = true).expect("an address");
        assert_eq!((remote.brokers.len(), remote.user), (2, None));
    }

    #[test]
    fn what_cannot_be_used_is_refused_with_a_remedy_and_without_secrets() {
        let error = |url: &str, change: fn(&mut KafkaOptions)| {
            let text = parse(url, change).expect_err(url).to_string();
            assert!(!text.contains("hunter2"), "{text}");
            text
        };
        for url in [
            "localhost:9092",
            "http://localhost",
            "kafka://",
            "kafka://a b",
            "kafka://localhost:x",
            "kafka://localhost,,",
        ] {
            assert!(error(url, |_| ()).contains("write kafka://host:9092"), "{url}");
        }
        assert!(error("kafka://u:hunter2@b.example", |_| ()).contains("write kafkas://…, or set `plaintext = true`"));
        assert!(error("kafka://localhost,b.example", |_| ()).contains("without TLS to another machine"));
        assert!(error("kafka://u:hunter2@localhost", |o| o.username = Some("v".into())).contains("contradicts"));
        assert!(error("kafka://localhost", |o| o.username = Some("v".into())).contains("`username` has no `password`"));
        assert!(error("kafka://localhost", |o| o.password = Some("hunter2".into())).contains("no `username`"));
        assert!(error("kafka://localhost", |o| o.ca_file = Some("x".into())).contains("`ca_file` is set without TLS"));
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
            assert!(tls.expect_err("refused").to_string().contains("feature `ssl` of pillarbox-kafka"));
            assert!(scram.expect_err("refused").to_string().contains("feature `ssl` of pillarbox-kafka"));
        }
    }
}
