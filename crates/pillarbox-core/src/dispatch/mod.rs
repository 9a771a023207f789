//! From the queue to the handler: workers, each with one event at a time.

mod worker;

pub(crate) use worker::Worker;
