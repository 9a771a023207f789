//! When to try again.

mod backoff;

pub use backoff::{ExponentialBackoff, RetryPolicy};
