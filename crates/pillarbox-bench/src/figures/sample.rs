use serde::{Deserialize, Serialize};

/// The state of a run at one moment. As JSON its keys are a contract.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) struct Sample {
    /// Seconds since the run began.
    pub(crate) seconds: f64,
    /// Events written so far, the backlog that a run starts with included.
    pub(crate) written: u64,
    /// Events recorded as delivered so far.
    pub(crate) done: u64,
    /// Events written and not yet delivered.
    pub(crate) backlog: u64,
    /// Dead rows in the outbox table, as last read, usually at most half a second before.
    pub(crate) dead_tuples: Option<u64>,
    /// Bytes written to the database's log since the run began, as last read.
    pub(crate) wal_bytes: Option<u64>,
}
