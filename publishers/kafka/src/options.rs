use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::time::Duration;

use pillarbox_core::publisher::Secret;

pillarbox_connect::server_options! {
    /// Options of a [`KafkaPublisher`](crate::KafkaPublisher). User and password are for SASL; `timeout` is 1 s to 15 min.
    ///
    /// `Debug` shows no secret.
    pub struct KafkaOptions {
        /// Brokers to begin with: `kafka://user:password@host:9092,host:9092`, or `kafkas://…` with TLS. The rest of the cluster is
        /// learnt from them. Port 9092 may be left out.
        pub url: Secret,
        /// The mechanism that proves the password: `PLAIN` (default), `SCRAM-SHA-256` or `SCRAM-SHA-512`.
        #[serde(default)]
        pub sasl_mechanism: Option<String> = None,
        /// Further properties of librdkafka, such as `compression.type`; those that would break a guarantee are refused. Default: none.
        #[serde(default)]
        pub properties: BTreeMap<String, Secret> = BTreeMap::new(),
    }
}

/// librdkafka looks for messages that have waited too long once in a second.
pub(crate) const TIMEOUT: RangeInclusive<Duration> = Duration::from_secs(1)..=Duration::from_secs(900);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_read_from_a_configuration_and_shows_no_secret() {
        let json = r#"{"url":"kafka://u:hunter2@h","sasl_mechanism":"PLAIN","properties":{"a":"hunter2"}}"#;
        let options: KafkaOptions = serde_json::from_str(json).expect("reads");
        assert_eq!((options.sasl_mechanism.as_deref(), options.properties.len()), (Some("PLAIN"), 1));
        assert!(!format!("{options:?}").contains("hunter2"));
        let error = |json| serde_json::from_str::<KafkaOptions>(json).expect_err("refused").to_string();
        assert!(error(r#"{"url":"x","acks":"1"}"#).contains("unknown field `acks`"));
    }
}
