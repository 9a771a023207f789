//! The handler of an outbox that passes its events on.

mod admission;
mod answer;
mod batch;
mod check;
mod delay;
mod destination;
mod findings;
mod forwarder;
mod learn;
mod message_span;
mod operator;
mod paused_types;
mod prepared;
mod replace;
mod send;
mod status;
mod stuck_event_log;
mod table;
mod target_log;
mod unrouted;

pub use check::Broker;
pub use destination::Destination;
pub use forwarder::Forwarder;
pub use replace::OPERATOR_PAUSE_ENDED;
pub use status::{RouteState, RouteStatus, TargetStatus};
pub(crate) use stuck_event_log::StuckEventLog;
pub(crate) use target_log::TargetLog;
