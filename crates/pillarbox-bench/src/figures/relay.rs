use serde::Serialize;

use super::{Line, latency_lines};
use pillarbox_console::report::rate;
use pillarbox_console::stopwatch::Latency;

/// Events passed on to a broker.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct RelayFigures {
    pub(crate) to: &'static str,
    pub(crate) broker: String,
    pub(crate) mode: &'static str,
    pub(crate) workers: u16,
    pub(crate) batch: u16,
    pub(crate) delete_done: bool,
    pub(crate) rate: u32,
    pub(crate) commit_to_confirmed_us: Latency,
    pub(crate) done_within_1s: f64,
}

impl RelayFigures {
    pub(super) fn lines(&self) -> Vec<Line> {
        let mut lines = vec![
            ("broker", format!("{} at {}", self.to, self.broker), "which confirms each message"),
            ("mode", self.mode.to_owned(), "who may deliver an event"),
            ("workers", self.workers.to_string(), "calls of the publisher at once"),
            ("batch", self.batch.to_string(), "messages in a call at most"),
        ];
        if self.delete_done {
            lines.push((
                "delete done",
                "yes".to_owned(),
                "rows of the backlog are deleted once their events are confirmed",
            ));
        }
        lines.push((
            "rate",
            rate(self.rate.into()),
            "of events written, each in a transaction, for the figures below; their rows are kept",
        ));
        lines.extend(latency_lines("commit to confirmed", self.commit_to_confirmed_us));
        lines.push((
            "done within 1 s",
            format!("{:.4}", self.done_within_1s),
            "of their insert, by the database's clock",
        ));
        lines
    }
}
