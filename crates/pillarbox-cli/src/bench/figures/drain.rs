use pillarbox::ownership::Mode;
use serde::Serialize;

use super::Line;
use crate::args::DrainArgs;
use crate::bench::calls::Calls;
use crate::bench::load::Load;
use crate::report::grouped;

/// Who drained, and what else the table held.
#[derive(Debug, Clone, Copy, Serialize)]
pub(crate) struct DrainFigures {
    mode: &'static str,
    nodes: u8,
    rows_done: u32,
    rows_dead: u32,
    rows_delayed: u32,
    pub(crate) delete_done: bool,
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    keys: Option<KeyFigures>,
}

/// How the events of each key were delivered.
#[derive(Debug, Clone, Copy, Serialize)]
struct KeyFigures {
    keys: u32,
    rows_blocked: u32,
    out_of_order: u64,
}

impl DrainFigures {
    pub(crate) fn new(args: &DrainArgs, load: &Load, calls: &Calls) -> Self {
        let DrainArgs { mode, nodes, done, dead, delayed, delete_done, blocked, .. } = *args;
        let keys = load.keys.zip(calls.out_of_order());
        let keys = keys.map(|(keys, out_of_order)| KeyFigures { keys, rows_blocked: blocked, out_of_order });
        Self {
            mode: Mode::from(mode).name(),
            nodes,
            rows_done: done,
            rows_dead: dead,
            rows_delayed: delayed,
            delete_done,
            keys,
        }
    }

    /// Whether the events of each key came in their order, as far as anybody promised it.
    pub(super) fn is_in_order(&self) -> bool {
        self.keys.is_none_or(|keys| keys.out_of_order == 0)
    }

    pub(super) fn lines(&self) -> Vec<Line> {
        let mut lines: Vec<Line> = vec![
            ("mode", self.mode.to_owned(), "who may deliver an event"),
            ("nodes", self.nodes.to_string(), "outboxes in this process, each over connections of its own"),
            ("rows done", grouped(self.rows_done.into()), "in the table besides, not measured"),
            ("rows dead", grouped(self.rows_dead.into()), "given up, in the table besides"),
            ("rows delayed", grouped(self.rows_delayed.into()), "until tomorrow, in the table besides"),
        ];
        if self.delete_done {
            lines.push(("delete done", "yes".to_owned(), "rows are deleted once their events are delivered"));
        }
        if let Some(keys) = self.keys {
            let blocked = "behind one that fails, at the low end of the table";
            let order = "first calls after one of a later event of the same key";
            lines.extend([
                ("keys", grouped(keys.keys.into()), "the events belong to them in turn"),
                ("rows blocked", grouped(keys.rows_blocked.into()), blocked),
                ("out of order", grouped(keys.out_of_order), order),
            ]);
        }
        lines
    }
}
