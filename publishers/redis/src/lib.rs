//! Redis publisher of Pillarbox, a transactional outbox: events become entries of Redis Streams.
//!
//! A message counts as confirmed once Redis has answered its `XADD` with the entry's id. How much that is worth is the
//! server's setting: with `appendfsync everysec` up to a second of confirmed entries is lost with the power, and a failover
//! loses what had not reached the replica. The guide says which settings keep them.
//!
//! # Target
//!
//! The name of a stream: `orders`. A stream that is missing is created by the first entry, unless
//! [`create_streams`](RedisOptions::create_streams) is off.
//!
//! # Entry
//!
//! | Field | |
//! |---|---|
//! | `id` | The event's id: what consumers deduplicate by. |
//! | `key` | The ordering key; left out where the event has none. |
//! | `content-type` | The media type of the body. |
//! | `body` | The body, byte for byte. |
//! | `h:NAME` | Each header, such as `h:event-type`. |
//!
//! ```no_run
//! use pillarbox_core::event::EventId;
//! use pillarbox_core::publisher::{Message, Publisher as _};
//! use pillarbox_redis::{RedisOptions, RedisPublisher};
//!
//! # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
//! let publisher = RedisPublisher::new(RedisOptions::new("redis://localhost"))?;
//! let message = Message::new("orders", EventId::new("order-1-placed")?, r#"{"order_id": "o-1"}"#);
//! for receipt in publisher.publish(vec![message]).await {
//!     receipt?;
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod options;

mod check;
mod connect;
mod publish;

mod entry;
mod error;
pub mod examine;

use std::fmt;

use async_trait::async_trait;
use pillarbox_core::error::ConfigError;
use pillarbox_core::examine::Checked;
use pillarbox_core::publisher::{Link, Message, PublishError, Publisher, PublisherInfo, Receipt};
use redis::aio::MultiplexedConnection;
use tokio::sync::Semaphore;

pub use options::RedisOptions;

/// The number of pipelines of one publisher that await their replies at once; with [`entry::MAX_BYTES`] of each, that bounds memory.
const PIPELINES: usize = 8;

/// Appends messages to Redis Streams.
pub struct RedisPublisher {
    options: RedisOptions,
    info: PublisherInfo,
    client: redis::Client,
    link: Link<MultiplexedConnection>,
    pipelines: Semaphore,
}

impl RedisPublisher {
    /// A publisher that connects when it is first needed.
    ///
    /// # Errors
    /// When an option is wrong, and when the connection would be without TLS to another machine and
    /// [`plaintext`](RedisOptions::plaintext) is not set.
    pub fn new(options: RedisOptions) -> Result<Self, ConfigError> {
        let (address, database) = options.validate()?;
        Ok(Self {
            info: PublisherInfo::new("redis", format!("{address}/{database}")),
            client: connect::client(address, database, options.ca_file.as_deref())?,
            options,
            link: Link::new(),
            pipelines: Semaphore::new(PIPELINES),
        })
    }
}

#[async_trait]
impl Publisher for RedisPublisher {
    fn info(&self) -> &PublisherInfo {
        &self.info
    }

    async fn check(&self, targets: &[String]) -> Result<(), PublishError> {
        self.check_targets(targets).await
    }

    fn refusal(&self, sample: &Message, _is_constant: bool) -> Option<PublishError> {
        entry::refuse(sample, &self.options)
    }

    async fn examine(&self, _: &[String]) -> Vec<Checked> {
        self.examine_server().await
    }

    async fn publish(&self, messages: Vec<Message>) -> Vec<Receipt> {
        self.append(&messages).await
    }

    async fn close(&self) {
        // The connection is cut once the last call that uses it has ended.
        self.link.close();
    }
}

// The client holds the password.
impl fmt::Debug for RedisPublisher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisPublisher").field("address", &self.info.address).finish_non_exhaustive()
    }
}
