//! Keeps a destination in trouble from affecting others.

mod breaker;
mod limits;
mod targets;

pub use breaker::Breaker;
pub(crate) use breaker::{Admission, CallResult, Circuit, Transition};
pub(crate) use limits::Limits;
pub(crate) use targets::{Part, Parts, Targets};
