//! The handler of an outbox that passes its events on.

mod answer;
mod by_hand;
mod check;
mod findings;
mod forwarder;
mod message_span;
mod prepared;
mod replace;
mod status;
mod stranded;
mod target_log;

pub(crate) use answer::answer;
pub use check::Broker;
pub use forwarder::{Destination, Forwarder};
pub use status::{RouteState, RouteStatus, TargetStatus};
pub(crate) use stranded::Stranded;
pub(crate) use target_log::TargetLog;
