//! The figures of a bench, as JSON for programs and as text for people.

mod costs;
mod own;
mod sample;
mod verdict;

use serde::Serialize;

use super::calls::Calls;
use super::lab::{About, BenchDb, Rows};
use super::load::Load;
use super::meter::Measured;
use pillarbox_program::report::{grouped, per_second, rate, rounded, table};

pub(crate) use costs::{Costs, each};
pub(crate) use own::OwnFigures;
pub(crate) use sample::Sample;
pub(crate) use verdict::{Bound, Verdict};

/// The name of the store that is no database.
pub(crate) const MEMORY: &str = "memory";

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
    pub(crate) own: OwnFigures,
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
    #[serde(flatten)]
    fate: LossCount,
}

/// The rate of the yardstick in the same run, and the ratio of the events to it.
#[derive(Debug, Clone, Copy, Serialize)]
pub(crate) struct YardstickFigures {
    pub(crate) yardstick_per_s: f64,
    pub(crate) ratio: f64,
}

/// The events of a run that were lost, or were delivered twice or out of the order of their key.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub(crate) struct LossCount {
    duplicates: u64,
    lost: u64,
    #[serde(skip)]
    out_of_order: u64,
}

impl LossCount {
    /// For events to be delivered: calls beyond the first, and rows that are not DONE. Where rows are `deleted`, each event must
    /// have been called, and its row be gone.
    pub(crate) fn delivered(load: &Load, calls: &Calls, rows: &Rows, deleted: bool) -> Self {
        let events = u64::from(load.events);
        let done = if deleted { events.saturating_sub(rows.all).min(calls.called()) } else { rows.done };
        let (duplicates, out_of_order) = (calls.duplicates(), calls.out_of_order().unwrap_or_default());
        Self { duplicates, lost: events.saturating_sub(done), out_of_order }
    }

    /// As [`delivered`](Self::delivered), where calls are counted without telling events apart.
    pub(crate) fn summed(load: &Load, calls: &Calls, done: u64) -> Self {
        let events = u64::from(load.events);
        let lost = events - done.min(calls.sum()).min(events);
        Self { duplicates: calls.sum().saturating_sub(events), lost, out_of_order: 0 }
    }

    /// The sum of two runs.
    pub(crate) fn and(self, other: Self) -> Self {
        Self {
            duplicates: self.duplicates + other.duplicates,
            lost: self.lost + other.lost,
            out_of_order: self.out_of_order + other.out_of_order,
        }
    }

    /// For events that were only written: rows with an id that another has, and events without a row.
    pub(crate) fn written(load: &Load, rows: &Rows) -> Self {
        let lost = u64::from(load.events).saturating_sub(rows.distinct);
        Self { duplicates: rows.all - rows.distinct, lost, out_of_order: 0 }
    }
}

impl Figures {
    /// Figures of a bench that took `seconds`.
    pub(crate) fn new(
        bench: &'static str,
        lab: &dyn BenchDb,
        seconds: f64,
        measured: Measured,
        own: OwnFigures,
    ) -> Self {
        let store = lab.store();
        let store = format!("{} {}", store.info().dialect, store.info().address);
        Self::of(bench, store, lab.about(), seconds, measured, own)
    }

    /// As [`new`](Self::new), of a bench on anything else than a database.
    pub(crate) fn of(
        bench: &'static str,
        store: String,
        about: About,
        seconds: f64,
        measured: Measured,
        own: OwnFigures,
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
        let events_per_s = rounded(per_second(load.events.into(), self.seconds), 0);
        let (events, payload_bytes) = (load.events, load.payload_bytes);
        self.events = Some(EventFigures { events, payload_bytes, events_per_s, fate });
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

    /// True if no event was lost, duplicated or out of order, and every verdict held.
    pub(crate) fn is_clean(&self) -> bool {
        let is_clean = self.events.is_none_or(|events| events.fate == LossCount::default());
        is_clean && self.verdicts.iter().all(|verdict| verdict.held)
    }

    pub(crate) fn text(&self) -> String {
        let mut lines = Vec::new();
        if let Some(events) = &self.events {
            lines.extend([
                ("events", grouped(events.events.into()), "counted in the table"),
                ("payload", format!("{} B", grouped(events.payload_bytes.into())), "JSON"),
            ]);
        }
        lines.push(("seconds", format!("{:.3}", self.seconds), self.own.seconds));
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
                ("duplicates", grouped(events.fate.duplicates), "calls beyond the first, counted in the handler"),
                ("lost", grouped(events.fate.lost), lost),
            ]);
        }
        lines.extend(self.own.lines.iter().cloned());
        lines.extend(self.costs.lines(self.about));
        let figures = table(&lines).trim_fmt();
        let verdicts: String = self.verdicts.iter().map(|verdict| format!("\n{}", verdict.sentence())).collect();
        let verdicts = if verdicts.is_empty() { verdicts } else { format!("{verdicts}\n") };
        format!("bench {} on {}\n\n{figures}\n{verdicts}\n{}", self.bench, self.store, self.notes())
    }

    fn notes(&self) -> String {
        const RESTS: &str = "Between the phases the database cleans up what they left, so that none pays for another.";
        const MEAN: &str = "The yardstick is the mean of a measurement before and one after.";
        let notes = [(self.store != MEMORY).then_some(RESTS), self.yardstick.map(|_| MEAN)];
        notes.into_iter().flatten().collect::<Vec<_>>().join("\n")
    }
}

/// The share of `part` in `whole`, rounded down: 1 means all of it.
#[expect(clippy::cast_precision_loss, reason = "a count of events is far below 2^52")]
pub(crate) fn share(part: u64, whole: u64) -> f64 {
    (part as f64 / whole as f64 * 1e6).floor() / 1e6
}
