use std::time::Duration;

use serde::Serialize;

use super::Line;
use crate::lab::About;
use pillarbox_program::report::{grouped, rounded};

/// The costs of a run per event; `None` where there is no counter.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub(crate) struct Costs {
    pub(crate) wal_bytes_per_event: Option<f64>,
    pub(crate) statements_per_event: Option<f64>,
    /// Dead rows in the outbox table at the end of the run.
    pub(crate) dead_tuples: Option<u64>,
    pub(crate) client_cpu_us_per_event: Option<f64>,
}

impl Costs {
    /// The costs of a run without a database.
    pub(crate) fn of_cpu(before: Option<Duration>, after: Option<Duration>, events: u64) -> Self {
        let micros = before.zip(after).map(|(before, after)| after.saturating_sub(before).as_micros());
        let micros = micros.and_then(|micros| u64::try_from(micros).ok());
        Self { client_cpu_us_per_event: each(micros, events), ..Self::default() }
    }

    pub(super) fn lines(&self, about: About) -> Vec<Line> {
        let each = |cost: Option<f64>, digits| cost.map(|cost| format!("{:.digits$}", rounded(cost, 3)));
        let lines = [
            ("log per event", each(self.wal_bytes_per_event, 0).map(|bytes| format!("{bytes} B")), about.wal),
            (about.counted.per_event(), each(self.statements_per_event, 3), about.statements),
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

/// A total per event.
#[expect(clippy::cast_precision_loss, reason = "three digits are shown")]
pub(crate) fn each(total: Option<u64>, events: u64) -> Option<f64> {
    total.filter(|_| events > 0).map(|total| rounded(total as f64 / events as f64, 3))
}
