//! The inbox of a consumer: the messages that it has received, recorded in the transaction of its work on them.
//!
//! Brokers and webhooks deliver at least once. A consumer that records each message's id in the transaction of its own writes, and
//! passes over the ids that are there, does its work once. The record is a row of a table beside the outbox's; it is kept for as long as
//! the message may come again, and then purged.

mod blocking;
mod consumer;
mod error;
mod purge;

pub use blocking::BlockingInbox;
pub use consumer::{Inbox, Once};
pub use error::InboxError;
pub use purge::purge;

/// Bytes of a consumer's name.
pub const CONSUMER_BYTES: usize = 64;
/// Bytes of a message's id.
pub const MESSAGE_ID_BYTES: usize = 255;
