use serde::Serialize;

use super::{Line, latency_lines};
use crate::report::rate;
use crate::stopwatch::Latency;

/// Writing and delivering at once, from memory.
#[derive(Debug, Clone, Copy, Serialize)]
pub(crate) struct HotFigures {
    pub(crate) writers: u16,
    pub(crate) written_per_s: f64,
    pub(crate) write_only_per_s: f64,
    pub(crate) write_ratio: f64,
    pub(crate) done_within_1s: f64,
    pub(crate) commit_to_handler_us: Latency,
}

impl HotFigures {
    pub(super) fn lines(&self) -> Vec<Line> {
        let mut lines: Vec<Line> = vec![
            ("writers", self.writers.to_string(), "each a transaction of one event at a time"),
            ("written", rate(self.written_per_s), "by all of them, while the events are delivered"),
            ("write only", rate(self.write_only_per_s), "the same writers without an outbox running, before and after"),
            ("write ratio", format!("{:.3}", self.write_ratio), "the first to the second"),
            ("done within 1 s", format!("{:.4}", self.done_within_1s), "of their insert, by the database's clock"),
        ];
        lines.extend(latency_lines("commit to handler", self.commit_to_handler_us));
        lines
    }
}
