//! RabbitMQ publisher of Pillarbox, a transactional outbox.
//!
//! A message counts as confirmed once the broker has confirmed it (publisher confirms) **and** it went to a queue: messages are
//! `mandatory`, and one that no queue is bound for comes back and is refused as misconfigured. Messages are persistent, so that
//! a durable queue keeps them across restarts.
//!
//! # Target
//!
//! | Target | Exchange | Routing key |
//! |---|---|---|
//! | `shop/order.placed` | `shop` | `order.placed`: all behind the first `/` |
//! | `shop` | `shop` | the event's key, or empty |
//! | `/orders` | the default exchange | `orders`, the name of a queue |
//!
//! # Message
//!
//! The properties are: `message_id`, the event's id; `type`, the event's type; `content_type`; `delivery_mode` 2; and
//! `headers`, all headers as texts.
//!
//! ```no_run
//! use pillarbox_core::event::EventId;
//! use pillarbox_core::publisher::{Message, Publisher as _};
//! use pillarbox_rabbitmq::{RabbitMqOptions, RabbitMqPublisher};
//!
//! # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
//! let publisher = RabbitMqPublisher::new(RabbitMqOptions::new("amqp://guest:guest@localhost"))?;
//! let message = Message::new("shop/order.placed", EventId::new("order-1-placed")?, r#"{"order_id": "o-1"}"#);
//! for receipt in publisher.publish(vec![message]).await {
//!     receipt?;
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod options;
mod route;

mod connect;
mod session;

mod check;
mod envelope;
mod publish;
mod send;

mod classify_channel_error;
mod classify_replies;
mod error;
pub mod examine;

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use pillarbox_connect::{Host, tls};
use pillarbox_core::error::ConfigError;
use pillarbox_core::examine::Checked;
use pillarbox_core::publisher::{Link, Message, PublishError, Publisher, PublisherInfo, Receipt, Secret};
use rustls::ClientConfig;
use tokio::sync::Semaphore;

use route::Route;
use session::Session;

pub use options::RabbitMqOptions;

/// The `kind` of this publisher in a configuration.
const KIND: &str = "rabbitmq";

/// The number of channels that one publisher publishes on at once; with [`publish::MAX_BYTES`] on each, that bounds memory.
const CHANNELS: usize = 8;

/// Publishes messages to exchanges of RabbitMQ.
pub struct RabbitMqPublisher {
    options: RabbitMqOptions,
    host: Host,
    vhost: String,
    login: Option<(String, Secret)>,
    info: PublisherInfo,
    tls: Option<Arc<ClientConfig>>,
    link: Link<Arc<Session>>,
    channels: Semaphore,
}

impl RabbitMqPublisher {
    /// A publisher that connects when it is first needed.
    ///
    /// # Errors
    /// When an option is wrong, and when the connection would be without TLS to another machine and
    /// [`plaintext`](RabbitMqOptions::plaintext) is not set.
    pub fn new(options: RabbitMqOptions) -> Result<Self, ConfigError> {
        let (address, login) = options.validate()?;
        let tls = address.scheme.tls.then(|| tls::client_config(options.ca_file.as_deref())).transpose()?.map(Arc::new);
        let shown = address.path.as_ref().filter(|vhost| *vhost != "/").map(|vhost| format!("{address}/{vhost}"));
        Ok(Self {
            info: PublisherInfo::new(KIND, shown.unwrap_or_else(|| address.to_string())).with_targets(route::TARGETS),
            options,
            host: address.host,
            // A slash at the end does not mean the virtual host without a name.
            vhost: address.path.unwrap_or_else(|| "/".to_owned()),
            login,
            tls,
            link: Link::new(),
            channels: Semaphore::new(CHANNELS),
        })
    }
}

#[async_trait]
impl Publisher for RabbitMqPublisher {
    fn info(&self) -> &PublisherInfo {
        &self.info
    }

    async fn check(&self, targets: &[String]) -> Result<(), PublishError> {
        self.check_targets(targets).await
    }

    async fn check_prefix(&self, prefix: &str) -> Result<bool, PublishError> {
        match prefix.split_once('/') {
            // The exchange is known to its end, and the routing key is the event's.
            Some((exchange, _)) if !exchange.is_empty() => {
                self.check_targets(&[format!("{exchange}/")]).await.map(|()| true)
            }
            _ => Ok(false),
        }
    }

    fn refusal(&self, sample: &Message, _is_constant: bool) -> Option<PublishError> {
        Route::of(sample).err().or_else(|| envelope::refuse(sample, self.options.max_body))
    }

    async fn examine(&self, targets: &[String]) -> Vec<Checked> {
        self.examine_queues(targets).await
    }

    async fn publish(&self, messages: Vec<Message>) -> Vec<Receipt> {
        self.publish_all(&messages).await
    }

    async fn close(&self) {
        if let Some(session) = self.link.close() {
            session.say_goodbye(self.options.timeout).await;
        }
    }
}

// The options hold the password.
impl fmt::Debug for RabbitMqPublisher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RabbitMqPublisher").field("address", &self.info.address).finish_non_exhaustive()
    }
}
