//! When to try again.

mod backoff;
mod pause;

pub use backoff::{ExponentialBackoff, RetryPolicy};
pub(crate) use pause::{Pause, jittered};
