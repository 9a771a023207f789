use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

use pillarbox_connect::timeout;
use pillarbox_core::error::ConfigError;
use pillarbox_core::publisher::Secret;
use serde::Deserialize;

/// Options of a [`KafkaPublisher`](crate::KafkaPublisher).
///
/// `Debug` shows no secret.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct KafkaOptions {
    /// Brokers to begin with: `kafka://user:password@host:9092,host:9092`, or `kafkas://…` with TLS. The rest of the cluster is
    /// learnt from them. Port 9092 may be left out.
    pub url: Secret,
    /// The user's name, for SASL. Default: what `url` says, else none.
    #[serde(default)]
    pub username: Option<String>,
    /// The user's password, for SASL. Default: what `url` says, else none.
    #[serde(default)]
    pub password: Option<Secret>,
    /// The mechanism that proves the password: `PLAIN` (default), `SCRAM-SHA-256` or `SCRAM-SHA-512`.
    #[serde(default)]
    pub sasl_mechanism: Option<String>,
    /// The limit of one call, and of connecting: 1 s to 15 min. Default: 10 s.
    #[serde(default = "timeout::default", deserialize_with = "timeout::read")]
    pub timeout: Duration,
    /// Allows a connection without TLS to another machine. Default: no.
    #[serde(default)]
    pub plaintext: bool,
    /// PEM file of the authorities to trust. Default: those of the operating system.
    #[serde(default)]
    pub ca_file: Option<PathBuf>,
    /// Further properties of librdkafka, such as `compression.type`; those that would break a guarantee are refused. Default: none.
    #[serde(default)]
    pub properties: BTreeMap<String, Secret>,
}

/// librdkafka looks for messages that have waited too long once in a second.
pub(crate) const TIMEOUT: RangeInclusive<Duration> = Duration::from_secs(1)..=Duration::from_secs(900);

impl KafkaOptions {
    /// The defaults, with these brokers.
    pub fn new(url: impl Into<Secret>) -> Self {
        Self {
            url: url.into(),
            username: None,
            password: None,
            sasl_mechanism: None,
            timeout: timeout::default(),
            plaintext: false,
            ca_file: None,
            properties: BTreeMap::new(),
        }
    }

    /// Checks what concerns no other part.
    pub(crate) fn check(&self) -> Result<(), ConfigError> {
        timeout::check(self.timeout, &TIMEOUT)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_read_from_a_configuration_and_shows_no_secret() {
        let json = r#"{"url":"kafka://u:hunter2@h","password":"hunter2","timeout":"2s","properties":{"a":"hunter2"}}"#;
        let options: KafkaOptions = serde_json::from_str(json).expect("reads");
        assert_eq!((options.timeout, options.plaintext), (Duration::from_secs(2), false));
        assert!(!format!("{options:?}").contains("hunter2"));
        let error = |json| serde_json::from_str::<KafkaOptions>(json).expect_err("refused").to_string();
        assert!(error(r#"{"url":"x","timeout":"soon"}"#).contains("\"soon\" is no duration"));
        assert!(error(r#"{"url":"x","acks":"1"}"#).contains("unknown field `acks`"));
        assert!(error("{}").contains("missing field `url`"));
    }

    #[test]
    fn a_limit_that_cannot_be_kept_is_refused() {
        let mut options = KafkaOptions::new("kafka://h");
        options.timeout = Duration::from_millis(200);
        let error = options.check().expect_err("refused").to_string();
        assert!(error.contains("`timeout` is 200ms; set `1s` to `15m`"), "{error}");
    }
}
