//! Passes the events of an outbox on to brokers: which event goes where, in which shape, and what happens when a broker is in
//! trouble.
//!
//! ```text
//! outbox ──▶ Forwarder: select ─▶ breaker ─▶ shape ─▶ publisher ──▶ broker
//!    ◀── done · tried again · deferred · DEAD ◀── one receipt for each ──┘
//! ```
//!
//! [`Routes`] say which event goes where; the first [`Route`] that takes an event has it. A route whose destination is in
//! trouble is paused by itself: the others go on.

mod breaker;
mod forward;
mod observe;
mod route;
mod select;
mod shape;

pub use breaker::Breaker;
pub use forward::{Broker, Destination, Forwarder, OPERATOR_PAUSE_ENDED, RouteState, RouteStatus, TargetStatus};
pub use route::{CheckError, Route, RouteError, Routes, Unrouted};
pub use select::Pattern;
pub use shape::Format;
