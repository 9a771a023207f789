//! Keeps a destination in trouble from affecting others.

mod backoffs;
mod breaker;
mod call_size;
mod limits;
mod returns;
mod targets;
mod tenants;

pub(crate) use backoffs::Backoffs;
pub use breaker::Breaker;
pub(crate) use breaker::{Admission, CallResult, Circuit, Transition};
pub(crate) use call_size::CallSize;
pub(crate) use limits::Limits;
pub(crate) use returns::Returns;
pub(crate) use targets::{Part, Parts, Targets};
pub(crate) use tenants::Tenants;
