//! The handler of an outbox that passes its events on.

mod answer;
mod by_hand;
mod check;
mod findings;
mod forwarder;
mod message_span;
mod replace;
mod status;

pub(crate) use answer::answer;
pub use check::Broker;
pub use forwarder::{Destination, Forwarder};
pub use status::{RouteState, RouteStatus, TargetStatus};
