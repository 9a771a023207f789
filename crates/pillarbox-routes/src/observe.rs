//! The metrics of each route.

use metrics::{Counter, Gauge, Histogram, Unit};

/// The default prefix of the names of metrics.
pub(crate) const PREFIX: &str = "pillarbox";

/// The metrics of one route. The events of an outbox as a whole are in its own.
#[derive(Debug)]
pub(crate) struct Meters {
    pub(crate) confirmed: Counter,
    pub(crate) failed: Counter,
    pub(crate) deferred: Counter,
    pub(crate) dropped: Counter,
    pub(crate) paused: Gauge,
    pub(crate) paused_targets: Gauge,
    pub(crate) duration: Histogram,
    pub(crate) messages: Histogram,
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
        let meters = Self {
            confirmed: counter("confirmed", "Messages that the destination has confirmed."),
            failed: counter("failed", "Messages that the destination has declined, or that could not be made."),
            deferred: counter("deferred", "Events put off, without an attempt, since the destination takes nothing."),
            dropped: counter("dropped", "Events that were done without being sent."),
            paused: gauge("paused", "1 from when the route is paused until it goes on, else 0."),
            paused_targets: gauge(
                "targets.paused",
                "Targets and servers that are paused by themselves, where the target depends on the event.",
            ),
            duration: histogram("publish.duration", Unit::Seconds, "From sending a batch to its last confirmation."),
            messages: histogram("publish.messages", Unit::Count, "Messages sent by one call."),
        };
        meters.rest();
        meters
    }

    #[allow(clippy::cast_precision_loss, reason = "there are at most a thousand")]
    pub(crate) fn count_paused(&self, targets: usize) {
        self.paused_targets.set(targets as f64);
    }

    /// Nothing is paused: the route is new, or is no more.
    pub(crate) fn rest(&self) {
        self.paused.set(0.0);
        self.paused_targets.set(0.0);
    }
}
