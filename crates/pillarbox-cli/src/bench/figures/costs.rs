use serde::Serialize;

use super::Line;
use crate::bench::lab::About;
use crate::report::{grouped, rounded};

/// What a run has cost, for each of its events. `None` is what nobody counts there.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub(crate) struct Costs {
    pub(crate) wal_bytes_per_event: Option<f64>,
    pub(crate) statements_per_event: Option<f64>,
    /// Dead rows in the outbox table at the end of the run.
    pub(crate) dead_tuples: Option<u64>,
    pub(crate) client_cpu_us_per_event: Option<f64>,
}

impl Costs {
    pub(super) fn lines(&self, about: About) -> Vec<Line> {
        let each = |cost: Option<f64>, digits| cost.map(|cost| format!("{:.digits$}", rounded(cost, 3)));
        let lines = [
            ("log per event", each(self.wal_bytes_per_event, 0).map(|bytes| format!("{bytes} B")), about.wal),
            ("statements", each(self.statements_per_event, 3), about.statements),
            ("dead rows", self.dead_tuples.map(grouped), "in the outbox table at the end, for the database to clean"),
            (
                "CPU per event",
                each(self.client_cpu_us_per_event, 1).map(|micros| format!("{micros} µs")),
                "of this process: writers, outbox and handlers",
            ),
        ];
        lines.into_iter().filter_map(|(name, figure, meaning)| Some((name, figure?, meaning))).collect()
    }
}
