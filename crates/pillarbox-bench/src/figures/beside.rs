//! Writing and delivering at once.

use serde::Serialize;

use super::{Line, latency_lines};
use pillarbox_console::report::rate;
use pillarbox_console::stopwatch::Latency;

/// Flat out, from memory.
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
        let mut lines = vec![writers(self.writers), written(self.written_per_s)];
        lines.extend(beside_nothing(self.write_only_per_s, self.write_ratio));
        lines.push(within_a_second(self.done_within_1s));
        lines.extend(latency_lines("commit to handler", self.commit_to_handler_us));
        lines
    }
}

/// Flat out, from the table.
#[derive(Debug, Clone, Copy, Serialize)]
pub(crate) struct MixedFigures {
    pub(crate) mode: &'static str,
    pub(crate) writers: u16,
    pub(crate) written_per_s: f64,
    pub(crate) delivered_per_s: f64,
    pub(crate) backlog_s: f64,
    pub(crate) write_only_per_s: f64,
    pub(crate) write_ratio: f64,
    pub(crate) commit_to_handler_us: Latency,
}

impl MixedFigures {
    pub(super) fn lines(&self) -> Vec<Line> {
        let mut lines = vec![
            ("mode", self.mode.to_owned(), "who may deliver an event"),
            writers(self.writers),
            written(self.written_per_s),
            ("delivered", rate(self.delivered_per_s), "while they wrote"),
            ("backlog", format!("{:.3} s", self.backlog_s), "of their writing was not delivered when they ended"),
        ];
        lines.extend(beside_nothing(self.write_only_per_s, self.write_ratio));
        lines.extend(latency_lines("commit to handler", self.commit_to_handler_us));
        lines
    }
}

/// At a steady rate.
#[derive(Debug, Clone, Copy, Serialize)]
pub(crate) struct SteadyFigures {
    pub(crate) mode: &'static str,
    pub(crate) nodes: u8,
    pub(crate) writers: u16,
    pub(crate) rate: u32,
    pub(crate) cold: bool,
    pub(crate) written_per_s: f64,
    pub(crate) done_within_1s: f64,
    pub(crate) commit_to_handler_us: Latency,
}

impl SteadyFigures {
    pub(super) fn lines(&self) -> Vec<Line> {
        let cold =
            if self.cold { "from the table, which nobody tells them of" } else { "told of each commit by the guard" };
        let mut lines = vec![
            ("mode", self.mode.to_owned(), "who may deliver an event"),
            ("nodes", self.nodes.to_string(), cold),
            writers(self.writers),
            ("rate", rate(self.rate.into()), "to be written by all of them"),
            written(self.written_per_s),
            within_a_second(self.done_within_1s),
        ];
        lines.extend(latency_lines("commit to handler", self.commit_to_handler_us));
        lines
    }
}

/// From commit to handler, in the writers' process and in another one.
#[derive(Debug, Clone, Copy, Serialize)]
pub(crate) struct LatencyFigures {
    pub(crate) rate: u32,
    pub(crate) writers: u16,
    pub(crate) hot_us: Latency,
    pub(crate) other_node_us: Latency,
    pub(crate) other_node_is_woken: bool,
}

impl LatencyFigures {
    pub(super) fn lines(&self) -> Vec<Line> {
        let woken = if self.other_node_is_woken {
            ("woken", "yes".to_owned(), "the other node, by the database, when something was committed")
        } else {
            ("woken", "no".to_owned(), "this database cannot wake the other node, which looks at the table by itself")
        };
        let mut lines = vec![("rate", rate(self.rate.into()), "written by all writers"), writers(self.writers)];
        lines.extend(latency_lines("in the same process", self.hot_us));
        lines.extend(latency_lines("on another node", self.other_node_us));
        lines.push(woken);
        lines
    }
}

fn writers(writers: u16) -> Line {
    ("writers", writers.to_string(), "each a transaction of one event at a time")
}

fn written(per_s: f64) -> Line {
    ("written", rate(per_s), "by all of them, while the events are delivered")
}

fn beside_nothing(write_only_per_s: f64, write_ratio: f64) -> [Line; 2] {
    [
        ("write only", rate(write_only_per_s), "the same writers without an outbox running, before and after"),
        ("write ratio", format!("{write_ratio:.3}"), "written while the events are delivered, to write only"),
    ]
}

fn within_a_second(done_within_1s: f64) -> Line {
    ("done within 1 s", format!("{done_within_1s:.4}"), "of their insert, by the database's clock")
}
