use std::sync::atomic::{AtomicU64, Ordering};

use super::MetricsFactory;

/// A number that only grows, counted for [`Stats`] and for the metric of it at once, so that the two never differ.
#[derive(Debug)]
pub(crate) struct Tally {
    total: AtomicU64,
    metric: metrics::Counter,
}

impl From<metrics::Counter> for Tally {
    fn from(metric: metrics::Counter) -> Self {
        Self { total: AtomicU64::new(0), metric }
    }
}

/// The totals of an outbox since it was started. Each number counts events.
#[derive(Debug)]
pub(crate) struct Counters {
    pub(crate) hot: Tally,
    pub(crate) hot_dropped: Tally,
    pub(crate) hot_skipped_delayed: Tally,
    pub(crate) cold: Tally,
    pub(crate) done: Tally,
    pub(crate) rescued: Tally,
    pub(crate) retried: Tally,
    pub(crate) deferred: Tally,
    pub(crate) dead: Tally,
    pub(crate) refused: Tally,
    pub(crate) purged: Tally,
    /// Purges that failed, which are no events.
    pub(crate) purge_failed: metrics::Counter,
}

impl Counters {
    pub(crate) fn new(metrics_factory: &MetricsFactory<'_>) -> Self {
        let tally = |name, help| Tally::from(metrics_factory.counter(name, help));
        Self {
            hot: tally("enqueue.hot", "Events queued from memory after their commit."),
            hot_dropped: tally("enqueue.hot.dropped", "Events left to the table because the hot queue was full."),
            hot_skipped_delayed: tally(
                "enqueue.hot.skipped.delayed",
                "Events left to the table because they were delayed.",
            ),
            cold: tally("enqueue.cold", "Events queued from the table."),
            done: tally("dispatch.success", "Events recorded as DONE."),
            rescued: tally(
                "dispatch.rescued",
                "Events whose handler failed for good and whose fallback made them DONE.",
            ),
            retried: tally("dispatch.failure", "Failed attempts after which the event is tried again."),
            deferred: tally("dispatch.deferred", "Events deferred or parked without counting an attempt."),
            dead: tally("dispatch.dead", "Events recorded as DEAD."),
            refused: tally(
                "settle.refused",
                "Verdicts that changed nothing: ownership was lost, or the row had changed.",
            ),
            purged: tally("purge.removed", "Events deleted because they were over."),
            purge_failed: metrics_factory.counter("purge.failed", "Purges that failed."),
        }
    }

    pub(crate) fn add(tally: &Tally, events: u64) {
        // The counters order nothing; each is read on its own.
        tally.total.fetch_add(events, Ordering::Relaxed);
        tally.metric.increment(events);
    }

    /// The number of events that this process has made DONE or DEAD.
    pub(crate) fn settled(&self) -> u64 {
        [&self.done, &self.dead].iter().map(|tally| tally.total.load(Ordering::Relaxed)).sum()
    }

    pub(crate) fn snapshot(&self) -> Stats {
        let read = |tally: &Tally| tally.total.load(Ordering::Relaxed);
        Stats {
            hot: read(&self.hot),
            hot_dropped: read(&self.hot_dropped),
            hot_skipped_delayed: read(&self.hot_skipped_delayed),
            cold: read(&self.cold),
            done: read(&self.done),
            rescued: read(&self.rescued),
            retried: read(&self.retried),
            deferred: read(&self.deferred),
            dead: read(&self.dead),
            refused: read(&self.refused),
            purged: read(&self.purged),
            ..Stats::default()
        }
    }
}

/// The totals of an outbox since it was started, and the events that it holds now. Each number but `content_bytes` counts
/// events of this process, and `refused` verdicts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stats {
    /// Queued from memory after their commit.
    pub hot: u64,
    /// Not queued from memory because the hot queue was full; they were left to the cold path.
    pub hot_dropped: u64,
    /// Not queued from memory because they were delayed.
    pub hot_skipped_delayed: u64,
    /// Queued from the table.
    pub cold: u64,
    /// Recorded as DONE.
    pub done: u64,
    /// The DONE events whose handler had failed for good and that a fallback made DONE.
    pub rescued: u64,
    /// Failed and recorded to be tried again.
    pub retried: u64,
    /// Deferred or parked without counting an attempt.
    pub deferred: u64,
    /// Recorded as DEAD.
    pub dead: u64,
    /// Verdicts that changed nothing: ownership was lost, or the row had changed.
    pub refused: u64,
    /// Deleted by this process because they were over.
    pub purged: u64,
    /// Waiting in the hot queue.
    pub hot_depth: usize,
    /// Waiting in the cold queue.
    pub cold_depth: usize,
    /// In memory altogether: queued, running or waiting to be recorded.
    pub in_memory: usize,
    /// The memory that payloads and headers of the events take which wait or are being handled, about, in bytes.
    pub content_bytes: usize,
}
