use serde::{Serialize, Serializer};
use serde_json::value::{RawValue, to_raw_value};

use super::Line;
use crate::failure::Failure;
use pillarbox_program::arguments::ModeArg;
use pillarbox_program::report::{grouped, micros, rate, rounded};
use pillarbox_program::stopwatch::Latency;

/// The figures that only one of the benches measures, in the order in which they are shown. Each has a key in JSON, which is
/// a contract, and lines for people.
#[derive(Debug, Clone)]
pub(crate) struct OwnFigures {
    /// The time that the bench's seconds measure.
    pub(super) seconds: &'static str,
    json: Vec<(&'static str, Box<RawValue>)>,
    pub(super) lines: Vec<Line>,
}

impl OwnFigures {
    /// No figures yet, of a bench whose seconds are `seconds`.
    pub(crate) fn new(seconds: &'static str) -> Self {
        Self { seconds, json: Vec::new(), lines: Vec::new() }
    }

    /// Adds a figure under its key, and the lines that show it.
    pub(crate) fn add(
        &mut self,
        key: &'static str,
        figure: &impl Serialize,
        lines: impl IntoIterator<Item = Line>,
    ) -> Result<(), Failure> {
        self.json.push((key, to_raw_value(figure)?));
        self.lines.extend(lines);
        Ok(())
    }

    /// Adds a count, shown with its thousands set apart.
    pub(crate) fn count(
        &mut self,
        key: &'static str,
        count: impl Into<u64>,
        name: &'static str,
        meaning: &'static str,
    ) -> Result<(), Failure> {
        let count = count.into();
        self.add(key, &count, [(name, grouped(count), meaning)])
    }

    /// Adds a rate, rounded to whole events per second.
    pub(crate) fn rate(
        &mut self,
        key: &'static str,
        per_s: f64,
        name: &'static str,
        meaning: &'static str,
    ) -> Result<(), Failure> {
        let per_s = rounded(per_s, 0);
        self.add(key, &per_s, [(name, rate(per_s), meaning)])
    }

    /// Adds a setting that is only shown if it is on.
    pub(crate) fn flag(
        &mut self,
        key: &'static str,
        is_on: bool,
        name: &'static str,
        meaning: &'static str,
    ) -> Result<(), Failure> {
        self.add(key, &is_on, is_on.then(|| (name, "yes".to_owned(), meaning)))
    }

    pub(crate) fn mode(&mut self, mode: ModeArg) -> Result<(), Failure> {
        self.add("mode", &mode.name(), [("mode", mode.name().to_owned(), "who may deliver an event")])
    }

    pub(crate) fn writers(&mut self, writers: u16) -> Result<(), Failure> {
        self.count("writers", writers, "writers", "each a transaction of one event at a time")
    }

    pub(crate) fn written(&mut self, per_s: f64) -> Result<(), Failure> {
        self.rate("written_per_s", per_s, "written", "by all of them, while the events are delivered")
    }

    pub(crate) fn write_ratio(&mut self, ratio: f64, meaning: &'static str) -> Result<(), Failure> {
        let ratio = rounded(ratio, 3);
        self.add("write_ratio", &ratio, [("write ratio", format!("{ratio:.3}"), meaning)])
    }

    /// Adds the share of events that were DONE within a second.
    pub(crate) fn within_a_second(&mut self, share: f64) -> Result<(), Failure> {
        let meaning = "of their insert, by the database's clock";
        self.add("done_within_1s", &share, [("done within 1 s", format!("{share:.4}"), meaning)])
    }

    pub(crate) fn latency(&mut self, key: &'static str, latency: Latency, name: &'static str) -> Result<(), Failure> {
        let lines = [
            (name, micros(latency.p50), "half of the events were faster"),
            ("", micros(latency.p95), "95 % of the events were faster"),
            ("", micros(latency.p99), "99 % of the events were faster"),
            ("", micros(latency.max), "the slowest"),
        ];
        self.add(key, &latency, lines)
    }
}

impl Serialize for OwnFigures {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.json.iter().map(|(key, figure)| (key, figure)))
    }
}
