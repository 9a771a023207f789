//! Publishes the events of [Pillarbox](https://docs.rs/pillarbox), a transactional outbox, to Apache Kafka and what speaks its
//! protocol, by librdkafka.
//!
//! # What is guaranteed
//! A message is confirmed when all in-sync replicas of its partition have it (`acks=all`). The producer is idempotent: what it
//! repeats by itself after a broken connection arrives once. What it could not confirm within the time limit may have arrived, and is
//! published again by its caller: consumers deduplicate by the header `event-id`. Messages of one key are in one partition, chosen as
//! Java's clients choose it, and in order there.
//!
//! # Targets
//! A target is the name of a topic, which has to be there: none is created.
//!
//! # TLS
//! librdkafka knows OpenSSL only, so TLS, and passwords by SCRAM, are behind the feature `ssl`, which needs OpenSSL's headers to
//! compile. Without it both are refused, with an error that says so.
//!
//! ```
//! use pillarbox_core::publisher::Publisher as _;
//! use pillarbox_kafka::{KafkaOptions, KafkaPublisher};
//!
//! let publisher = KafkaPublisher::new(KafkaOptions::new("kafka://localhost:9092"))?;
//! assert_eq!(publisher.info().address, "kafka://localhost:9092");
//! # Ok::<(), pillarbox_core::error::ConfigError>(())
//! ```

mod options;

mod address;
mod properties;
mod topic;

mod connect;
mod trouble;

mod error;
mod publish;

mod check;
pub mod examine;

pub use options::KafkaOptions;

use std::time::Duration;

use async_trait::async_trait;
use pillarbox_core::error::ConfigError;
use pillarbox_core::examine::Checked;
use pillarbox_core::publisher::{Message, PublishError, Publisher, PublisherInfo, Receipt};

use address::Address;
use connect::Connection;

/// The `kind` of this publisher in a configuration.
const KIND: &str = "kafka";

/// Sends messages to topics, and takes the reports of their delivery as confirmations.
#[derive(Debug)]
pub struct KafkaPublisher {
    info: PublisherInfo,
    connection: Connection,
    /// The client for messages that are sent alone, with the same properties.
    alone: Connection,
    timeout: Duration,
}

impl KafkaPublisher {
    /// A publisher that connects when it is first needed.
    ///
    /// # Errors
    /// When an option cannot be used; it says which, and what to write instead.
    #[expect(clippy::needless_pass_by_value, reason = "all publishers are made alike")]
    pub fn new(options: KafkaOptions) -> Result<Self, ConfigError> {
        let address = Address::parse(&options)?;
        let config = properties::of(&options, &address)?;
        Ok(Self {
            info: PublisherInfo::new(KIND, address.shown),
            connection: Connection::new(config.clone())?,
            alone: Connection::new(properties::one_by_one(config))?,
            timeout: options.timeout,
        })
    }
}

#[async_trait]
impl Publisher for KafkaPublisher {
    fn info(&self) -> &PublisherInfo {
        &self.info
    }

    async fn check(&self, targets: &[String]) -> Result<(), PublishError> {
        self.check_topics(targets.to_vec()).await
    }

    fn refusal(&self, sample: &Message, _is_constant: bool) -> Option<PublishError> {
        topic::accept(&sample.target).err()
    }

    async fn examine(&self, targets: &[String]) -> Vec<Checked> {
        self.examine_topics(targets).await
    }

    async fn publish(&self, messages: Vec<Message>) -> Vec<Receipt> {
        self.publish_all(messages).await
    }

    async fn close(&self) {
        tokio::join!(self.connection.close(), self.alone.close());
    }
}
