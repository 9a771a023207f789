//! What is going on: counters of this process.

mod counters;

pub(crate) use counters::Counters;
pub use counters::Stats;
