use async_trait::async_trait;
use pillarbox_core::error::ConfigError;
use pillarbox_core::publisher::{Message, PublishError, Publisher, PublisherInfo, Receipt};
use tokio::sync::Semaphore;
use tokio::time::Instant;

use crate::connect::Connector;
use crate::connection::IN_FLIGHT;
use crate::{NatsOptions, check, message, publish};

/// The `kind` of this publisher in a configuration.
pub(crate) const KIND: &str = "nats";

/// Publishes to the streams of NATS JetStream. See [the crate](crate) for what is guaranteed.
#[derive(Debug)]
pub struct NatsPublisher {
    info: PublisherInfo,
    connector: Connector,
    /// One permit for each message under way.
    room: Semaphore,
}

impl NatsPublisher {
    /// Checks the options. Nothing is connected to yet.
    ///
    /// # Errors
    /// When an option is malformed, two of them contradict each other, or a server of another machine would be talked to
    /// without TLS.
    pub fn new(options: NatsOptions) -> Result<Self, ConfigError> {
        let connector = Connector::new(options)?;
        let info = PublisherInfo::new(KIND, connector.servers.shown.clone()).with_targets(message::TARGETS);
        Ok(Self { info, connector, room: Semaphore::new(IN_FLIGHT) })
    }

    fn deadline(&self) -> Instant {
        Instant::now() + self.connector.options.timeout
    }
}

#[async_trait]
impl Publisher for NatsPublisher {
    fn info(&self) -> &PublisherInfo {
        &self.info
    }

    async fn check(&self, targets: &[String]) -> Result<(), PublishError> {
        check::check(&self.connector, targets, self.deadline()).await
    }

    async fn check_prefix(&self, prefix: &str) -> Result<bool, PublishError> {
        check::check_prefix(&self.connector, prefix, self.deadline()).await
    }

    async fn publish(&self, messages: Vec<Message>) -> Vec<Receipt> {
        publish::publish(&self.connector, &self.room, messages, self.deadline()).await
    }

    async fn close(&self) {
        self.connector.link.close();
    }
}
