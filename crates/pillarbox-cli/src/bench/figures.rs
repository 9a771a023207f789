use pillarbox::ownership::Mode;
use serde::Serialize;

use super::lab::{Lab, Rows};
use super::load::{Calls, Load};
use crate::args::DrainArgs;
use crate::report::{grouped, micros, per_second, rate, rounded, table};
use crate::stopwatch::Latency;

/// What a bench has measured. As JSON its keys are a contract.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Figures {
    bench: &'static str,
    store: String,
    events: u32,
    payload_bytes: u32,
    seconds: f64,
    events_per_s: f64,
    yardstick_per_s: f64,
    ratio: f64,
    duplicates: u64,
    lost: u64,
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    write: Option<WriteFigures>,
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    hot: Option<HotFigures>,
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    drain: Option<DrainFigures>,
}

/// A business row alone, and beside an event, one client.
#[derive(Debug, Clone, Copy, Serialize)]
pub(crate) struct WriteFigures {
    pub(crate) business_only_per_s: f64,
    pub(crate) business_with_event_per_s: f64,
    pub(crate) write_ratio: f64,
}

/// Writing and delivering at once.
#[derive(Debug, Clone, Copy, Serialize)]
pub(crate) struct HotFigures {
    #[serde(skip)]
    pub(crate) writers: u16,
    pub(crate) written_per_s: f64,
    pub(crate) write_only_per_s: f64,
    pub(crate) write_ratio: f64,
    pub(crate) done_within_1s: f64,
    pub(crate) commit_to_handler_us: Latency,
}

/// Who drained, and what else the table held.
#[derive(Debug, Clone, Copy, Serialize)]
pub(crate) struct DrainFigures {
    mode: &'static str,
    nodes: u8,
    rows_done: u32,
    rows_delayed: u32,
    delete_done: bool,
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
        let DrainArgs { mode, nodes, done, delayed, delete_done, blocked, .. } = *args;
        let keys = load.keys.zip(calls.out_of_order());
        let keys = keys.map(|(keys, out_of_order)| KeyFigures { keys, rows_blocked: blocked, out_of_order });
        Self { mode: Mode::from(mode).name(), nodes, rows_done: done, rows_delayed: delayed, delete_done, keys }
    }
}

impl Figures {
    /// Figures of a bench that took `seconds` for the events of `load`.
    pub(crate) fn new(bench: &'static str, lab: &dyn Lab, load: &Load, seconds: f64, yardstick: f64) -> Self {
        let events_per_s = per_second(load.events.into(), seconds);
        let store = lab.store();
        Self {
            bench,
            store: format!("{} {}", store.info().dialect, store.info().address),
            events: load.events,
            payload_bytes: load.payload_bytes,
            seconds: rounded(seconds, 4),
            events_per_s: rounded(events_per_s, 0),
            yardstick_per_s: rounded(yardstick, 0),
            ratio: rounded(events_per_s / yardstick, 3),
            duplicates: 0,
            lost: 0,
            write: None,
            hot: None,
            drain: None,
        }
    }

    /// Adds what became of the events that were to be delivered: calls beyond the first, and rows that are not DONE.
    pub(crate) fn delivered(mut self, duplicates: u64, rows: &Rows) -> Self {
        self.duplicates = duplicates;
        self.lost = u64::from(self.events).saturating_sub(rows.done);
        self
    }

    /// As [`delivered`](Self::delivered), where rows are deleted: what matters is that they were called, and are gone.
    pub(crate) fn removed(mut self, calls: &Calls, rows: &Rows) -> Self {
        let events = u64::from(self.events);
        self.duplicates = calls.duplicates();
        self.lost = events - events.saturating_sub(rows.all).min(calls.called());
        self
    }

    /// Adds what became of the events that were only written.
    pub(crate) fn written(mut self, rows: &Rows) -> Self {
        self.duplicates = rows.all - rows.distinct;
        self.lost = u64::from(self.events).saturating_sub(rows.distinct);
        self
    }

    pub(crate) fn with_write(self, write: WriteFigures) -> Self {
        Self { write: Some(write), ..self }
    }

    pub(crate) fn with_hot(self, hot: HotFigures) -> Self {
        Self { hot: Some(hot), ..self }
    }

    pub(crate) fn with_drain(self, drain: DrainFigures) -> Self {
        Self { drain: Some(drain), ..self }
    }

    /// Whether every event was there once, and in its place.
    pub(crate) fn is_clean(&self) -> bool {
        let keys = self.drain.and_then(|drain| drain.keys);
        self.duplicates == 0 && self.lost == 0 && keys.is_none_or(|keys| keys.out_of_order == 0)
    }

    pub(crate) fn text(&self) -> String {
        let hot;
        let mut lines = vec![
            ("events", grouped(self.events.into()), "counted in the database"),
            ("payload", format!("{} B", grouped(self.payload_bytes.into())), "JSON"),
            ("seconds", format!("{:.3}", self.seconds), self.meaning_of_seconds()),
            ("events", rate(self.events_per_s), "the main figure"),
            (
                "yardstick",
                rate(self.yardstick_per_s),
                "rows of UPDATE … WHERE id = ANY(1000 ids in a row), one connection",
            ),
            ("ratio", format!("{:.3}", self.ratio), "events to yardstick: compare this between machines"),
            ("duplicates", grouped(self.duplicates), "calls beyond the first, counted in the handler"),
            ("lost", grouped(self.lost), "rows missing, or not DONE or deleted where they should be"),
        ];
        if let Some(write) = &self.write {
            lines.extend([
                (
                    "business row",
                    rate(write.business_only_per_s),
                    "transactions of one client, alternating with the next",
                ),
                ("  with event", rate(write.business_with_event_per_s), "the same with one event beside the row"),
                ("write ratio", format!("{:.3}", write.write_ratio), "the second to the first"),
            ]);
        }
        if let Some(figures) = &self.hot {
            hot = format!("transactions of one event, {} writers, while they are delivered", figures.writers);
            lines.extend([
                ("written", rate(figures.written_per_s), hot.as_str()),
                (
                    "write only",
                    rate(figures.write_only_per_s),
                    "the same writers without an outbox running, before and after",
                ),
                ("write ratio", format!("{:.3}", figures.write_ratio), "the first to the second"),
                (
                    "done within 1 s",
                    format!("{:.4}", figures.done_within_1s),
                    "of their insert, by the database's clock",
                ),
                ("commit to handler", micros(figures.commit_to_handler_us.p50), "half of the events were faster"),
                ("", micros(figures.commit_to_handler_us.p99), "99 % of the events were faster"),
            ]);
        }
        if let Some(drain) = &self.drain {
            lines.extend([
                ("mode", drain.mode.to_owned(), "who may deliver an event"),
                ("nodes", drain.nodes.to_string(), "outboxes in this process, each over connections of its own"),
                ("rows done", grouped(drain.rows_done.into()), "in the table besides, not measured"),
                ("rows delayed", grouped(drain.rows_delayed.into()), "until tomorrow, in the table besides"),
            ]);
            if drain.delete_done {
                lines.push(("delete done", "yes".to_owned(), "rows are deleted once their events are delivered"));
            }
        }
        if let Some(keys) = self.drain.and_then(|drain| drain.keys) {
            lines.extend([
                ("keys", grouped(keys.keys.into()), "the events belong to them in turn"),
                (
                    "rows blocked",
                    grouped(keys.rows_blocked.into()),
                    "behind one that fails, at the low end of the table",
                ),
                ("out of order", grouped(keys.out_of_order), "first calls after one of a later event of the same key"),
            ]);
        }
        format!("bench {} on {}\n\n{}\n\n{NOTES}", self.bench, self.store, table(&lines).trim_fmt())
    }

    fn meaning_of_seconds(&self) -> &'static str {
        match self.bench {
            "write" => "to write them, 1,000 in each transaction, nothing else running",
            "hot" => "from the first write to the last done_at, by the database's clock",
            _ if self.drain.is_some_and(|drain| drain.delete_done) => {
                "from start() until the last row was deleted, by the database's clock"
            }
            _ => "from start() to the last done_at, by the database's clock",
        }
    }
}

const NOTES: &str = "Between the phases the database is vacuumed and checkpointed, so that none pays for another.\n\
                     The yardstick is the mean of a measurement before and one after, on the same database.";
