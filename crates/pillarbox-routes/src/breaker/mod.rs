//! Keeps a destination in trouble from affecting others.

mod backoffs;
mod call_size;
mod circuit;
mod limits;
mod retry_spacing;
mod targets;
mod tenants;

pub(crate) use backoffs::Backoffs;
pub(crate) use call_size::CallSize;
pub use circuit::Breaker;
pub(crate) use circuit::{Admission, CallResult, Circuit, Transition};
pub(crate) use limits::{Limits, SendSlot};
pub(crate) use retry_spacing::RetrySpacing;
pub(crate) use targets::{Part, Parts, Targets};
pub(crate) use tenants::Tenants;
