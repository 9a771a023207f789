//! What is going on: counters of this process, and logs that stay short.

mod counters;
mod throttle;

pub(crate) use counters::Counters;
pub use counters::Stats;
pub(crate) use throttle::Throttle;
