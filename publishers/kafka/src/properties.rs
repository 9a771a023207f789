//! From options to the properties of librdkafka.

use std::time::Duration;

use pillarbox_core::error::ConfigError;
use rdkafka::config::ClientConfig;

use crate::address::Address;
use crate::options::KafkaOptions;

/// Properties that options set, or that a guarantee rests on.
const OURS: [&str; 21] = [
    "acks",
    "allow.auto.create.topics",
    "bootstrap.servers",
    "delivery.report.only.error",
    "delivery.timeout.ms",
    "enable.gapless.guarantee",
    "enable.idempotence",
    "message.timeout.ms",
    "metadata.broker.list",
    "produce.offset.report",
    "request.required.acks",
    "sasl.mechanism",
    "sasl.mechanisms",
    "sasl.password",
    "sasl.username",
    "security.protocol",
    "ssl.ca.location",
    "ssl.ca.pem",
    "enable.ssl.certificate.verification",
    "ssl.endpoint.identification.algorithm",
    "transactional.id",
];

/// The configuration of a client.
///
/// # Errors
/// When a further property cannot be set.
pub(crate) fn of(options: &KafkaOptions, address: &Address) -> Result<ClientConfig, ConfigError> {
    let mut config = ClientConfig::new();
    let set = [
        ("bootstrap.servers", address.brokers.clone()),
        ("client.id", "pillarbox".to_owned()),
        // A message counts when all in-sync replicas have it, and arrives once however often the client repeats it.
        ("acks", "all".to_owned()),
        ("enable.idempotence", "true".to_owned()),
        // As Java's clients do, so that a key is in the same partition for every writer.
        ("partitioner", "murmur2_random".to_owned()),
        ("allow.auto.create.topics", "false".to_owned()),
        // A call brings many messages at once: they are together without waiting for more.
        ("linger.ms", "1".to_owned()),
        ("message.timeout.ms", message_timeout(options.timeout).as_millis().to_string()),
        // A broker that is silent for that long is connected to anew; longer than five minutes is not to be had.
        ("socket.timeout.ms", options.timeout.min(Duration::from_secs(300)).as_millis().to_string()),
        ("socket.connection.setup.timeout.ms", options.timeout.min(Duration::from_secs(10)).as_millis().to_string()),
        ("socket.nagle.disable", "true".to_owned()),
        ("reconnect.backoff.ms", "100".to_owned()),
        ("reconnect.backoff.max.ms", "2000".to_owned()),
        // The time for which a missing topic may still be in the making. None is made here.
        ("topic.metadata.propagation.max.ms", "0".to_owned()),
        // 64 MiB, not a gigabyte.
        ("queue.buffering.max.kbytes", "65536".to_owned()),
        ("log.connection.close", "false".to_owned()),
    ];
    for (name, value) in set {
        config.set(name, value);
    }
    config.set(
        "security.protocol",
        match (address.tls, &address.user) {
            (false, None) => "plaintext",
            (true, None) => "ssl",
            (false, Some(_)) => "sasl_plaintext",
            (true, Some(_)) => "sasl_ssl",
        },
    );
    if let Some(user) = &address.user {
        config.set("sasl.mechanism", user.mechanism);
        config.set("sasl.username", &user.name);
        config.set("sasl.password", user.password.expose());
    }
    if let Some(file) = &options.ca_file {
        let unreadable = |error| ConfigError::new("ca_file", format!("cannot be read: {error}"), "name a PEM file");
        std::fs::metadata(file).map_err(unreadable)?;
        config.set("ssl.ca.location", file.to_string_lossy());
    }
    for (name, value) in &options.properties {
        if OURS.contains(&name.as_str()) {
            return Err(ConfigError::new(
                "properties",
                format!("holds `{name}`, which a guarantee or another option rests on"),
                "leave it out",
            ));
        }
        config.set(name, value.expose());
    }
    Ok(config)
}

/// The time after which the client gives a message up. It looks once in a second, and is to do so before the call ends: later it might
/// still send the message, which is then published again.
fn message_timeout(call: Duration) -> Duration {
    call - (call / 4).min(Duration::from_millis(1500))
}

/// The same for a client whose requests hold one message each, of all its users.
pub(crate) fn one_by_one(mut config: ClientConfig) -> ClientConfig {
    config.set("batch.num.messages", "1");
    config
}

#[cfg(test)]
mod tests {
    use rdkafka::producer::BaseProducer;

    use super::*;
    use crate::options::TIMEOUT;

    fn config(change: impl FnOnce(&mut KafkaOptions)) -> Result<ClientConfig, ConfigError> {
        let mut options = KafkaOptions::new("kafka://u:p@localhost");
        change(&mut options);
        of(&options, &Address::parse(&options).expect("an address"))
    }

    #[test]
    fn the_guarantees_stand_whatever_else_is_set() {
        let config =
            config(|o| drop(o.properties.insert("compression.type".into(), "gzip".into()))).expect("properties");
        for (name, value) in [
            ("acks", "all"),
            ("enable.idempotence", "true"),
            ("allow.auto.create.topics", "false"),
            ("message.timeout.ms", "8500"),
            ("compression.type", "gzip"),
            ("security.protocol", "sasl_plaintext"),
        ] {
            assert_eq!(config.get(name), Some(value), "{name}");
        }
        for name in OURS {
            let error =
                self::config(|o| drop(o.properties.insert(name.into(), "hunter2".into()))).expect_err("refused");
            assert!(error.to_string().contains(&format!("`{name}`")) && !error.to_string().contains("hunter2"));
        }
        let error = self::config(|o| o.ca_file = None).map(|_| ());
        assert_eq!(error, Ok(()));
    }

    #[test]
    fn a_client_that_sends_one_by_one_is_the_same_but_for_that() {
        let several = |o: &mut KafkaOptions| drop(o.properties.insert("batch.num.messages".into(), "500".into()));
        let config = config(several).expect("properties");
        let alone = one_by_one(config.clone());
        let mut others = config.config_map();
        assert_eq!(others.insert("batch.num.messages", "1"), Some("500"));
        assert_eq!(alone.config_map(), others);
    }

    #[test]
    fn a_client_can_be_made_with_every_limit_of_time_that_is_allowed() {
        for (limit, of_message) in
            [(*TIMEOUT.start(), "750"), (Duration::from_secs(301), "299500"), (*TIMEOUT.end(), "898500")]
        {
            let config = config(|o| o.timeout = limit).expect("properties");
            let made: Result<BaseProducer, _> = config.create();
            assert!(made.is_ok(), "{limit:?}: {:?}", made.err());
            assert_eq!(config.get("message.timeout.ms"), Some(of_message));
        }
    }
}
