use std::sync::Arc;

use super::{Calls, Counters, FailureLog, Loops, Meters};

/// All that the parts of an outbox report to: totals, metrics, the health of the loops, calls under way, and failures for the log.
#[derive(Debug)]
pub(crate) struct Telemetry {
    pub(crate) counters: Arc<Counters>,
    pub(crate) meters: Meters,
    pub(crate) loops: Arc<Loops>,
    pub(crate) calls: Calls,
    pub(crate) failures: FailureLog,
}

impl Telemetry {
    pub(crate) fn new(counters: Counters, meters: Meters, calls: Calls) -> Self {
        let (counters, loops) = (Arc::new(counters), Arc::default());
        Self { counters, meters, loops, calls, failures: FailureLog::default() }
    }
}
