//! From the queue to the handler: workers, each with one event at a time.

mod suspects;
mod unknown;
mod worker;

pub(crate) use suspects::Suspects;
pub(crate) use unknown::Unknown;
pub(crate) use worker::Worker;
