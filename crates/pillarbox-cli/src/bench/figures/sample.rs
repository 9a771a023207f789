use serde::{Deserialize, Serialize};

/// Where a run stood at one moment. As JSON its keys are a contract.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) struct Sample {
    /// Since the run began.
    pub(crate) seconds: f64,
    /// Events written so far, the backlog that a run starts with included.
    pub(crate) written: u64,
    /// Events recorded as delivered so far.
    pub(crate) done: u64,
    /// Those written and not delivered.
    pub(crate) backlog: u64,
    /// Dead rows in the outbox table, as last asked, at most half a second before.
    pub(crate) dead_tuples: Option<u64>,
    /// Bytes written to the database's log since the run began, as last asked.
    pub(crate) wal_bytes: Option<u64>,
}
