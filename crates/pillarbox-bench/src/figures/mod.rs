//! The figures of a bench, as JSON for programs and as text for people.

mod beside;
mod costs;
mod drain;
mod engine;
mod relay;
mod sample;
mod verdict;
mod write;

use serde::Serialize;

use super::calls::Calls;
use super::lab::{About, BenchDb, Counted, Rows};
use super::load::Load;
use super::meter::Measured;
use pillarbox_console::report::{grouped, micros, per_second, rate, rounded, table};
use pillarbox_console::stopwatch::Latency;

pub(crate) use beside::{HotFigures, LatencyFigures, MixedFigures, SteadyFigures};
pub(crate) use costs::{Costs, each};
pub(crate) use drain::{BackgroundLoad, DrainFigures, Naive};
pub(crate) use engine::{IdleFigures, IdleMode, MemoryFigures, OverheadFigures, Peak};
pub(crate) use relay::RelayFigures;
pub(crate) use sample::Sample;
pub(crate) use verdict::Verdict;
pub(crate) use write::WriteFigures;

/// A name, a figure and its meaning.
type Line = (&'static str, String, &'static str);

/// The figures of a bench. As JSON its keys are a contract, and flat.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Figures {
    pub(crate) bench: &'static str,
    pub(crate) store: String,
    pub(crate) seconds: f64,
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub(crate) events: Option<EventFigures>,
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub(crate) yardstick: Option<YardstickFigures>,
    #[serde(flatten)]
    pub(crate) own: BenchSpecific,
    #[serde(flatten)]
    pub(crate) costs: Costs,
    /// The demands on the run beyond losing nothing; most benches make none.
    pub(crate) verdicts: Vec<Verdict>,
    /// Samples of the run; empty unless `--samples` asks for them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) samples: Vec<Sample>,
    #[serde(skip)]
    about: About,
}

/// The events of a run and their fate.
#[derive(Debug, Clone, Copy, Serialize)]
pub(crate) struct EventFigures {
    pub(crate) events: u32,
    pub(crate) payload_bytes: u32,
    pub(crate) events_per_s: f64,
    pub(crate) duplicates: u64,
    pub(crate) lost: u64,
}

/// The rate of the yardstick in the same run, and the ratio of the events to it.
#[derive(Debug, Clone, Copy, Serialize)]
pub(crate) struct YardstickFigures {
    pub(crate) yardstick_per_s: f64,
    pub(crate) ratio: f64,
}

/// The figures that only one of the benches measures.
#[derive(Debug, Clone, Serialize)]
#[serde(untagged)]
pub(crate) enum BenchSpecific {
    Write(WriteFigures),
    Hot(HotFigures),
    Drain(DrainFigures),
    Steady(SteadyFigures),
    Latency(LatencyFigures),
    Mixed(MixedFigures),
    Idle(IdleFigures),
    Memory(MemoryFigures),
    Overhead(OverheadFigures),
    Relay(RelayFigures),
}

/// The lost and duplicate events of a run.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct LossCount {
    duplicates: u64,
    lost: u64,
}

impl LossCount {
    /// For events to be delivered: calls beyond the first, and rows that are not DONE. Where rows are `deleted`, each event must
    /// have been called, and its row be gone.
    pub(crate) fn delivered(load: &Load, calls: &Calls, rows: &Rows, deleted: bool) -> Self {
        let events = u64::from(load.events);
        let done = if deleted { events.saturating_sub(rows.all).min(calls.called()) } else { rows.done };
        Self { duplicates: calls.duplicates(), lost: events.saturating_sub(done) }
    }

    /// As [`delivered`](Self::delivered), where calls are counted without telling events apart.
    pub(crate) fn summed(load: &Load, calls: &Calls, done: u64) -> Self {
        let events = u64::from(load.events);
        Self { duplicates: calls.sum().saturating_sub(events), lost: events - done.min(calls.sum()).min(events) }
    }

    /// The sum of two runs.
    pub(crate) fn and(self, other: Self) -> Self {
        Self { duplicates: self.duplicates + other.duplicates, lost: self.lost + other.lost }
    }

    /// For events that were only written: rows with an id that another has, and events without a row.
    pub(crate) fn written(load: &Load, rows: &Rows) -> Self {
        Self { duplicates: rows.all - rows.distinct, lost: u64::from(load.events).saturating_sub(rows.distinct) }
    }
}

impl Figures {
    /// Figures of a bench that took `seconds`.
    pub(crate) fn new(
        bench: &'static str,
        lab: &dyn BenchDb,
        seconds: f64,
        measured: Measured,
        own: BenchSpecific,
    ) -> Self {
        let store = lab.store();
        let store = format!("{} {}", store.info().dialect, store.info().address);
        Self::of(bench, store, lab.about(), seconds, measured, own)
    }

    /// Figures of a bench without a database.
    pub(crate) fn in_memory(bench: &'static str, seconds: f64, measured: Measured, own: BenchSpecific) -> Self {
        let yardstick = "messages to as many tasks, each with a channel of tokio";
        let about = About { yardstick, counted: Counted::Statements, statements: "", wal: "" };
        Self::of(bench, "memory".to_owned(), about, seconds, measured, own)
    }

    fn of(
        bench: &'static str,
        store: String,
        about: About,
        seconds: f64,
        measured: Measured,
        own: BenchSpecific,
    ) -> Self {
        Self {
            bench,
            store,
            seconds: rounded(seconds, 4),
            events: None,
            yardstick: None,
            own,
            costs: measured.costs,
            verdicts: Vec::new(),
            samples: measured.samples,
            about,
        }
    }

    /// Adds the events of the run, and their rate.
    pub(crate) fn with_events(mut self, load: &Load, fate: LossCount) -> Self {
        let LossCount { duplicates, lost } = fate;
        let events_per_s = rounded(per_second(load.events.into(), self.seconds), 0);
        let (events, payload_bytes) = (load.events, load.payload_bytes);
        self.events = Some(EventFigures { events, payload_bytes, events_per_s, duplicates, lost });
        self
    }

    /// Adds the yardstick that the events are compared with.
    pub(crate) fn with_yardstick(mut self, per_s: f64) -> Self {
        let ratio = self.events.map_or(f64::NAN, |events| events.events_per_s / per_s);
        self.yardstick = Some(YardstickFigures { yardstick_per_s: rounded(per_s, 0), ratio: rounded(ratio, 3) });
        self
    }

    /// As [`with_yardstick`](Self::with_yardstick), where the yardstick does not measure the database; `what` describes
    /// it.
    pub(crate) fn with_yardstick_of(mut self, per_s: f64, what: &'static str) -> Self {
        self.about.yardstick = what;
        self.with_yardstick(per_s)
    }

    /// Adds the verdicts on the run.
    pub(crate) fn with_verdicts(self, verdicts: Vec<Verdict>) -> Self {
        Self { verdicts, ..self }
    }

    /// Leaves out the samples.
    pub(crate) fn without_samples(self) -> Self {
        Self { samples: Vec::new(), ..self }
    }

    /// True if no event was lost, duplicated or out of order, and every verdict held.
    pub(crate) fn is_clean(&self) -> bool {
        self.events.is_none_or(|events| events.duplicates == 0 && events.lost == 0)
            && self.own.is_in_order()
            && self.verdicts.iter().all(|verdict| verdict.held)
    }

    pub(crate) fn text(&self) -> String {
        let mut lines = Vec::new();
        if let Some(events) = &self.events {
            lines.extend([
                ("events", grouped(events.events.into()), "counted in the table"),
                ("payload", format!("{} B", grouped(events.payload_bytes.into())), "JSON"),
            ]);
        }
        lines.push(("seconds", format!("{:.3}", self.seconds), self.own.meaning_of_seconds()));
        if let Some(events) = &self.events {
            lines.push(("events", rate(events.events_per_s), "the main figure"));
        }
        if let Some(yardstick) = &self.yardstick {
            lines.extend([
                ("yardstick", rate(yardstick.yardstick_per_s), self.about.yardstick),
                ("ratio", format!("{:.3}", yardstick.ratio), "events to yardstick: compare this between machines"),
            ]);
        }
        if let Some(events) = &self.events {
            let lost = "rows missing, or not DONE or deleted where they should be";
            lines.extend([
                ("duplicates", grouped(events.duplicates), "calls beyond the first, counted in the handler"),
                ("lost", grouped(events.lost), lost),
            ]);
        }
        lines.extend(self.own.lines(self.about));
        lines.extend(self.costs.lines(self.about));
        let figures = table(&lines).trim_fmt();
        let verdicts: String = self.verdicts.iter().map(|verdict| format!("\n{}", verdict.sentence())).collect();
        let verdicts = if verdicts.is_empty() { verdicts } else { format!("{verdicts}\n") };
        format!("bench {} on {}\n\n{figures}\n{verdicts}\n{}", self.bench, self.store, self.notes())
    }

    fn notes(&self) -> String {
        const RESTS: &str = "Between the phases the database cleans up what they left, so that none pays for another.";
        const MEAN: &str = "The yardstick is the mean of a measurement before and one after.";
        let has_database = !matches!(self.own, BenchSpecific::Overhead(_));
        let notes = [has_database.then_some(RESTS), self.yardstick.map(|_| MEAN)];
        notes.into_iter().flatten().collect::<Vec<_>>().join("\n")
    }
}

impl BenchSpecific {
    fn lines(&self, about: About) -> Vec<Line> {
        match self {
            Self::Write(figures) => figures.lines(),
            Self::Hot(figures) => figures.lines(),
            Self::Drain(figures) => figures.lines(),
            Self::Steady(figures) => figures.lines(),
            Self::Latency(figures) => figures.lines(),
            Self::Mixed(figures) => figures.lines(),
            Self::Idle(figures) => figures.lines(about.statements),
            Self::Memory(figures) => figures.lines(),
            Self::Overhead(figures) => figures.lines(),
            Self::Relay(figures) => figures.lines(),
        }
    }

    fn meaning_of_seconds(&self) -> &'static str {
        match self {
            Self::Write(_) => "to write them, 1,000 in each transaction, nothing else running",
            Self::Drain(drain) if drain.delete_done => {
                "from start() until the last row was deleted, by the database's clock"
            }
            Self::Drain(_) => "from start() to the last done_at, by the database's clock",
            Self::Hot(_) | Self::Mixed(_) | Self::Steady(_) => {
                "from the first write to the last done_at, by the database's clock"
            }
            Self::Latency(_) => "of both runs, from the first write to the last done_at",
            Self::Idle(_) => "for which each mode was counted, after it was left alone for a while",
            Self::Memory(_) => "for the largest backlog, from start() to the last done_at, by the database's clock",
            Self::Relay(relay) if relay.delete_done => {
                "from start() until the last event was confirmed and its row deleted, by the database's clock"
            }
            Self::Relay(_) => "from start() until the last event was confirmed and DONE, by the database's clock",
            Self::Overhead(_) => "from start() until all were recorded as DONE",
        }
    }

    fn is_in_order(&self) -> bool {
        match self {
            Self::Drain(drain) => drain.is_in_order(),
            _ => true,
        }
    }
}

/// The share of `part` in `whole`, rounded down: 1 means all of it.
#[expect(clippy::cast_precision_loss, reason = "a count of events is far below 2^52")]
pub(crate) fn share(part: u64, whole: u64) -> f64 {
    (part as f64 / whole as f64 * 1e6).floor() / 1e6
}

fn latency_lines(name: &'static str, latency: Latency) -> [Line; 4] {
    [
        (name, micros(latency.p50), "half of the events were faster"),
        ("", micros(latency.p95), "95 % of the events were faster"),
        ("", micros(latency.p99), "99 % of the events were faster"),
        ("", micros(latency.max), "the slowest"),
    ]
}
