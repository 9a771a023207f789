//! The rules for retries: the wait, the number of attempts, and the errors that are tried again.

mod backoff;
mod filter;
#[cfg(test)]
mod fixed;
mod jitter;
mod rules;
mod steady;

pub use backoff::{ExponentialBackoff, RetryPolicy};
pub use filter::ErrorFilter;
pub use jitter::JitteredBackoff;
pub use rules::Retry;
pub use steady::{FixedBackoff, LinearBackoff};
