use std::fmt;
use std::sync::Arc;

use pillarbox_core::store::NodeFigures;
use tokio::time::Instant;

use super::Telemetry;

/// Reads the figures of this node, for its row in the table.
pub(crate) struct ReadFigures(Box<dyn Fn() -> NodeFigures + Send + Sync>);

impl ReadFigures {
    /// The figures of an outbox, of which `queued` tells the number of events that wait in memory.
    pub(crate) fn new(telemetry: Arc<Telemetry>, queued: impl Fn() -> usize + Send + Sync + 'static) -> Self {
        Self(Box::new(move || telemetry.figures(queued())))
    }

    pub(crate) fn read(&self) -> NodeFigures {
        (self.0)()
    }
}

impl fmt::Debug for ReadFigures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReadFigures").finish_non_exhaustive()
    }
}

#[cfg(test)]
impl Default for ReadFigures {
    fn default() -> Self {
        Self(Box::new(NodeFigures::default))
    }
}

impl Telemetry {
    fn figures(&self, queued: usize) -> NodeFigures {
        let stats = self.counters.snapshot();
        let [latency_p50, latency_p99] =
            self.meters.latencies.take().map_or([None, None], |percentiles| percentiles.map(Some));
        NodeFigures {
            delivered: stats.done,
            failed: stats.retried + stats.dead + stats.rescued,
            dead: stats.dead,
            latency_p50,
            latency_p99,
            busy: u32::try_from(self.calls.busy(Instant::now()).workers).unwrap_or(u32::MAX),
            queued: queued as u64,
        }
    }
}
