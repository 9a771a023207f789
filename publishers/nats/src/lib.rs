//! The NATS publisher of [Pillarbox](https://docs.rs/pillarbox), a transactional outbox: events go to streams of JetStream.
//!
//! ```no_run
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! use pillarbox_core::event::EventId;
//! use pillarbox_core::publisher::{Message, Publisher};
//! use pillarbox_nats::{NatsOptions, NatsPublisher};
//!
//! let mut options = NatsOptions::new("tls://nats-1.internal:4222,tls://nats-2.internal:4222");
//! options.credentials_file = Some("/run/secrets/relay.creds".into());
//! let publisher = NatsPublisher::new(options)?;
//!
//! publisher.check(&["orders.placed".to_owned()]).await?;
//! let id = EventId::new("01JD2N8Y6T0VQZ5W4B9K3M7XRC")?;
//! for receipt in publisher.publish(vec![Message::new("orders.placed", id, r#"{"order": 7}"#)]).await {
//!     receipt?;
//! }
//! # Ok(())
//! # }
//! ```
//!
//! # What is guaranteed
//!
//! - A message is confirmed when a stream has stored it, on as many servers as the stream has replicas. A subject that no
//!   stream takes is [`Misconfigured`](pillarbox_core::publisher::PublishErrorKind::Misconfigured): nothing is ever confirmed
//!   because it merely left this process.
//! - The stream drops a message that it has seen within its duplicate window (two minutes, unless the stream says otherwise),
//!   by the header `Nats-Msg-Id`: the event's id, a colon and the subject. The subject is part of it because a stream looks at
//!   nothing else: an event that goes to two subjects of one stream would otherwise arrive at the first alone.
//! - Messages are stored in the order in which they were published.
//!
//! # Targets
//!
//! A target is a subject: tokens between dots, without white space and wildcards, at most 1024 bytes. One that begins with `$`
//! belongs to the server and is refused, so that no event can become a command.
//!
//! # Headers
//!
//! The headers of the event, and `content-type`. Headers that begin with `Nats-` tell the server what to do, so they are not taken from
//! the event. NATS has no line breaks in headers, and in their names visible ASCII without a colon alone: an event with
//! others is refused for good.

mod options;
mod servers;

mod connection;
mod refusals;

mod check;
mod message;
mod publish;
mod publisher;

mod error;
pub mod examine;

pub use options::NatsOptions;
pub use publisher::NatsPublisher;
