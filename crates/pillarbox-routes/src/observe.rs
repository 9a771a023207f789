//! The metrics of each route.

use metrics::{Counter, Gauge, Histogram, Unit};
use pillarbox_core::lock::Mutex;

/// The default prefix of the names of metrics.
pub(crate) const PREFIX: &str = "pillarbox";

/// The metrics of one route. The events of an outbox as a whole are in its own.
#[derive(Debug)]
pub(crate) struct Meters {
    pub(crate) confirmed: Counter,
    pub(crate) failed: Counter,
    pub(crate) deferred: Counter,
    pub(crate) dropped: Counter,
    paused: Gauge,
    paused_targets: Gauge,
    pub(crate) duration: Histogram,
    pub(crate) messages: Histogram,
    shown: Mutex<Shown>,
}

/// The share of one route in its gauges.
#[derive(Debug, Default)]
struct Shown {
    paused: f64,
    targets: f64,
    is_retired: bool,
}

/// Counts the events that no route takes.
pub(crate) fn unrouted(prefix: &str) -> Counter {
    let name = format!("{prefix}.route.unrouted");
    metrics::describe_counter!(name.clone(), Unit::Count, "Events that no route takes.");
    metrics::counter!(name)
}

impl Meters {
    pub(crate) fn new(prefix: &str, route: &str, kind: &'static str) -> Self {
        let labels = || vec![metrics::Label::new("route", route.to_owned()), metrics::Label::new("publisher", kind)];
        let counter = |name, help: &'static str| {
            let name = format!("{prefix}.route.{name}");
            metrics::describe_counter!(name.clone(), Unit::Count, help);
            metrics::counter!(name, labels())
        };
        let histogram = |name, unit, help: &'static str| {
            let name = format!("{prefix}.route.{name}");
            metrics::describe_histogram!(name.clone(), unit, help);
            metrics::histogram!(name, labels())
        };
        let gauge = |name, help: &'static str| {
            let name = format!("{prefix}.route.{name}");
            metrics::describe_gauge!(name.clone(), Unit::Count, help);
            metrics::gauge!(name, labels())
        };
        Self {
            confirmed: counter("confirmed", "Messages that the destination has confirmed."),
            failed: counter("failed", "Messages that the destination has declined, or that could not be made."),
            deferred: counter("deferred", "Events deferred, without an attempt, since the destination takes nothing."),
            dropped: counter("dropped", "Events that were done without being sent."),
            paused: gauge(
                "paused",
                "1 from when the route is paused until it goes on, else 0; of several sources their sum.",
            ),
            paused_targets: gauge(
                "targets.paused",
                "Targets and servers that are paused by themselves, where the target depends on the event.",
            ),
            duration: histogram("publish.duration", Unit::Seconds, "From sending a batch to its last confirmation."),
            messages: histogram("publish.messages", Unit::Count, "Messages sent by one call."),
            shown: Mutex::default(),
        }
    }

    /// Shows the state that `now` finds: true if the route is paused, and the number of its paused targets. Reports take turns, so that the
    /// later one stays.
    pub(crate) fn report(&self, now: impl FnOnce() -> (bool, usize)) {
        let mut shown = self.shown.lock();
        if !shown.is_retired {
            let (is_paused, targets) = now();
            self.show(
                &mut shown,
                f64::from(u8::from(is_paused)),
                f64::from(u32::try_from(targets).unwrap_or(u32::MAX)),
            );
        }
    }

    /// The route is no more: calls that are still under way change no gauge.
    pub(crate) fn retire(&self) {
        let mut shown = self.shown.lock();
        self.show(&mut shown, 0.0, 0.0);
        shown.is_retired = true;
    }

    /// Adds the difference, since routes of one name in several sources share a gauge.
    fn show(&self, shown: &mut Shown, paused: f64, targets: f64) {
        self.paused.increment(paused - shown.paused);
        self.paused_targets.increment(targets - shown.targets);
        (shown.paused, shown.targets) = (paused, targets);
    }
}

/// A source that has ended leaves nothing behind in gauges that others share.
impl Drop for Meters {
    fn drop(&mut self) {
        self.retire();
    }
}
