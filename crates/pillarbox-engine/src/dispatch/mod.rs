//! From the queue to the handler: workers, each with one event at a time.

mod crash_tracker;
mod unknown;
mod worker;

pub(crate) use crash_tracker::CrashTracker;
pub(crate) use unknown::Unknown;
pub(crate) use worker::{Completion, Positions, Worker};
