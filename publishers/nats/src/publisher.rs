use std::sync::Arc;

use async_trait::async_trait;
use pillarbox_connect::tls;
use pillarbox_core::error::ConfigError;
use pillarbox_core::examine::Checked;
use pillarbox_core::publisher::{Link, Linked, Message, PublishError, Publisher, PublisherInfo, Receipt};
use rustls::ClientConfig;
use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout_at};

use crate::connection::{Connection, IN_FLIGHT};
use crate::servers::Servers;
use crate::{NatsOptions, message};

/// The `kind` of this publisher in a configuration.
pub(crate) const KIND: &str = "nats";

/// Publishes to the streams of NATS JetStream. See [the crate](crate) for what is guaranteed.
#[derive(Debug)]
pub struct NatsPublisher {
    info: PublisherInfo,
    pub(crate) options: NatsOptions,
    pub(crate) servers: Servers,
    pub(crate) tls: Option<ClientConfig>,
    /// The connection that all calls share.
    pub(crate) link: Link<Arc<Connection>>,
    /// One permit for each message under way.
    pub(crate) room: Semaphore,
}

impl NatsPublisher {
    /// Checks the options. Nothing is connected to yet.
    ///
    /// # Errors
    /// When an option is malformed, two of them contradict each other, or a server of another machine would be talked to
    /// without TLS.
    pub fn new(options: NatsOptions) -> Result<Self, ConfigError> {
        options.check()?;
        let servers = Servers::of(&options)?;
        // Beside `tls://`, since a server may ask for TLS whatever the address says.
        let wanted = servers.tls || options.ca_file.is_some();
        let tls = wanted.then(|| tls::client_config(options.ca_file.as_deref())).transpose()?;
        let info = PublisherInfo::new(KIND, servers.shown.clone()).with_targets(message::TARGETS);
        Ok(Self { info, options, servers, tls, link: Link::new(), room: Semaphore::new(IN_FLIGHT) })
    }

    /// The connection, or the reason why there is none by the deadline.
    pub(crate) async fn connection(&self, deadline: Instant) -> Result<Linked<Arc<Connection>>, PublishError> {
        let connect = async {
            let opened = timeout_at(deadline, Connection::open(self)).await;
            opened.unwrap_or_else(|_| Err(self.late())).map(Arc::new)
        };
        let linked = timeout_at(deadline, self.link.get_if(|connection| connection.is_alive(), connect)).await;
        linked.unwrap_or_else(|_| Err(self.late()))
    }

    /// The error when the time is up.
    pub(crate) fn late(&self) -> PublishError {
        PublishError::unavailable(format!("{} did not answer in time", self.servers.shown))
    }

    fn deadline(&self) -> Instant {
        Instant::now() + self.options.timeout
    }
}

#[async_trait]
impl Publisher for NatsPublisher {
    fn info(&self) -> &PublisherInfo {
        &self.info
    }

    async fn check(&self, targets: &[String]) -> Result<(), PublishError> {
        self.check_subjects(targets, self.deadline()).await
    }

    async fn check_prefix(&self, prefix: &str) -> Result<bool, PublishError> {
        self.check_subjects_below(prefix, self.deadline()).await
    }

    fn refusal(&self, sample: &Message, _is_constant: bool) -> Option<PublishError> {
        message::encode(sample.clone(), None).err()
    }

    async fn examine(&self, targets: &[String]) -> Vec<Checked> {
        self.examine_streams(targets, self.deadline()).await
    }

    async fn publish(&self, messages: Vec<Message>) -> Vec<Receipt> {
        self.publish_all(messages, self.deadline()).await
    }

    async fn close(&self) {
        self.link.close();
    }
}
