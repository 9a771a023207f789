use pillarbox::run::Config;
use serde::Serialize;

use super::Line;
use crate::args::DrainArgs;
use crate::calls::Calls;
use crate::load::Load;
use pillarbox_console::arguments::ModeArg;
use pillarbox_console::report::{grouped, rate};

/// The nodes that drained, and the other rows of the table.
#[derive(Debug, Clone, Copy, Serialize)]
pub(crate) struct DrainFigures {
    mode: &'static str,
    nodes: u8,
    workers: usize,
    batch: usize,
    rows_done: u32,
    rows_dead: u32,
    rows_delayed: u32,
    pub(super) delete_done: bool,
    idle_transaction: bool,
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    company: Option<BackgroundLoad>,
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    naive: Option<Naive>,
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    keys: Option<KeyFigures>,
}

/// The keys of the events, and the deliveries out of order.
#[derive(Debug, Clone, Copy, Serialize)]
struct KeyFigures {
    keys: u32,
    rows_blocked: u32,
    out_of_order: u64,
}

/// The writers of other events meanwhile, and their rate.
#[derive(Debug, Clone, Copy, Serialize)]
pub(crate) struct BackgroundLoad {
    pub(crate) writers: u16,
    pub(crate) written_beside_per_s: f64,
}

/// The loop written by hand, on the same backlog.
#[derive(Debug, Clone, Copy, Serialize)]
pub(crate) struct Naive {
    pub(crate) naive_per_s: f64,
    pub(crate) naive_ratio: f64,
}

impl DrainFigures {
    pub(crate) fn new(args: &DrainArgs, config: &Config, load: &Load, calls: &Calls) -> Self {
        let keys = load.keys.zip(calls.out_of_order());
        let keys = keys.map(|(keys, out_of_order)| KeyFigures { keys, rows_blocked: args.blocked, out_of_order });
        Self {
            mode: args.mode.name(),
            nodes: args.nodes,
            // Mode `ordered` has one worker, whatever the setting.
            workers: if args.mode == ModeArg::Ordered { 1 } else { config.dispatch.workers },
            batch: config.claim.batch,
            rows_done: args.done,
            rows_dead: args.dead,
            rows_delayed: args.delayed,
            delete_done: args.delete_done,
            idle_transaction: args.idle_transaction,
            company: None,
            naive: None,
            keys,
        }
    }

    pub(crate) fn with_company(self, company: Option<BackgroundLoad>) -> Self {
        Self { company, ..self }
    }

    pub(crate) fn with_naive(self, naive: Option<Naive>) -> Self {
        Self { naive, ..self }
    }

    /// True if the events of each key came in order, or if no order was promised.
    pub(super) fn is_in_order(&self) -> bool {
        self.keys.is_none_or(|keys| keys.out_of_order == 0)
    }

    pub(super) fn lines(&self) -> Vec<Line> {
        let mut lines: Vec<Line> = vec![
            ("mode", self.mode.to_owned(), "who may deliver an event"),
            ("nodes", self.nodes.to_string(), "outboxes in this process, each over connections of its own"),
            ("workers", self.workers.to_string(), "handlers that run at once on each node"),
            ("batch", grouped(self.batch as u64), "rows read at once, and verdicts recorded at once"),
            ("rows done", grouped(self.rows_done.into()), "in the table besides, not measured"),
            ("rows dead", grouped(self.rows_dead.into()), "given up, in the table besides"),
            ("rows delayed", grouped(self.rows_delayed.into()), "until tomorrow, in the table besides"),
        ];
        if self.delete_done {
            lines.push(("delete done", "yes".to_owned(), "rows are deleted once their events are delivered"));
        }
        if self.idle_transaction {
            lines.push(("snapshot held", "yes".to_owned(), "by an idle transaction, during the whole run"));
        }
        if let Some(company) = self.company {
            let written = "other events, one per transaction, meanwhile";
            lines.extend([
                ("writers", company.writers.to_string(), "beside the nodes"),
                ("written beside", rate(company.written_beside_per_s), written),
            ]);
        }
        if let Some(naive) = self.naive {
            let by_hand = "100 rows locked by one connection, one UPDATE for each, one commit";
            lines.extend([
                ("loop by hand", rate(naive.naive_per_s), by_hand),
                ("times as fast", format!("{:.1}", naive.naive_ratio), "the outbox to the loop by hand"),
            ]);
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
