//! The handler of an outbox that passes its events on.

mod answer;
mod check;
mod forwarder;
mod status;

pub(crate) use answer::{answer, verdict};
pub use forwarder::{Destination, Forwarder};
pub use status::{RouteStatus, Way};
