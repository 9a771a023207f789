//! From the queue to the handler: workers, each with one event at a time.

mod crash_tracker;
mod park_limit;
mod worker;

pub(crate) use crash_tracker::CrashTracker;
pub(crate) use park_limit::ParkLimit;
pub(crate) use worker::{Completion, Positions, Worker};
