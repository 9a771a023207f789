//! MQTT publisher of Pillarbox, a transactional outbox: MQTT 5, with quality of service 1.
//!
//! A message counts as confirmed once the broker has acknowledged that very packet (PUBACK). **That somebody listens is not
//! part of it**: a broker acknowledges a message without subscribers too, and forgets it. How much of what it has
//! acknowledged survives the broker's end is the broker's matter; Mosquitto keeps messages in memory and writes them to disk
//! from time to time. The guide says what that means.
//!
//! # Target
//!
//! A topic, such as `shop/order/placed`, without the wildcards `+` and `#`.
//!
//! # Message
//!
//! Headers are user properties, the event's id among them as `event-id`; the content type has MQTT's own property.
//!
//! ```no_run
//! use pillarbox_core::event::EventId;
//! use pillarbox_core::publisher::{Message, Publisher as _};
//! use pillarbox_mqtt::{MqttOptions, MqttPublisher};
//!
//! # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
//! let publisher = MqttPublisher::new(MqttOptions::new("mqtt://localhost"))?;
//! let message = Message::new("shop/order/placed", EventId::new("order-1-placed")?, r#"{"order_id": "o-1"}"#);
//! for receipt in publisher.publish(vec![message]).await {
//!     receipt?;
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod options;

mod connect;
mod session;

mod call;
mod pace;
mod packet;
mod publish;

mod error;

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use pillarbox_connect::{Host, tls};
use pillarbox_core::error::ConfigError;
use pillarbox_core::publisher::{Link, Message, PublishError, Publisher, PublisherInfo, Receipt, Secret};
use rustls::ClientConfig;
use tokio::sync::RwLock;
use tokio::time::Instant;

use pace::Pace;
use session::Session;

pub use options::MqttOptions;

/// Publishes messages to topics of an MQTT broker.
pub struct MqttPublisher {
    options: MqttOptions,
    host: Host,
    login: Option<(String, Secret)>,
    info: PublisherInfo,
    tls: Option<Arc<ClientConfig>>,
    link: Link<Arc<Session>>,
    /// Read by calls that send beside each other, and written by one that sends alone.
    pace: RwLock<Pace>,
}

impl MqttPublisher {
    /// A publisher that connects when it is first needed.
    ///
    /// # Errors
    /// When an option is wrong, and when the connection would be without TLS to another machine and
    /// [`plaintext`](MqttOptions::plaintext) is not set.
    pub fn new(options: MqttOptions) -> Result<Self, ConfigError> {
        let (address, login) = options.validate()?;
        let tls = address.scheme.tls.then(|| tls::client_config(options.ca_file.as_deref())).transpose()?.map(Arc::new);
        let info = PublisherInfo::new("mqtt", address.to_string());
        let info = info.with_targets(packet::TARGETS).with_reserved(packet::RESERVED);
        Ok(Self { options, host: address.host, login, info, tls, link: Link::new(), pace: RwLock::new(Pace::full()) })
    }
}

#[async_trait]
impl Publisher for MqttPublisher {
    fn info(&self) -> &PublisherInfo {
        &self.info
    }

    async fn check(&self, targets: &[String]) -> Result<(), PublishError> {
        // Of topics, MQTT says nothing before something is published.
        if let Some(problem) = targets.iter().find_map(|topic| packet::topic(topic)) {
            return Err(PublishError::misconfigured(problem));
        }
        self.connected(Instant::now() + self.options.timeout).await.map(drop)
    }

    fn refusal(&self, sample: &Message, _is_constant: bool) -> Option<PublishError> {
        packet::refuse(sample, self.options.max_body, None)
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
impl fmt::Debug for MqttPublisher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MqttPublisher").field("address", &self.info.address).finish_non_exhaustive()
    }
}
