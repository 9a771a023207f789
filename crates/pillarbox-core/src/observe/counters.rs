use std::sync::atomic::{AtomicU64, Ordering};

/// What an outbox has done since it was started. Each number counts events.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) hot: AtomicU64,
    pub(crate) hot_dropped: AtomicU64,
    pub(crate) hot_skipped_delayed: AtomicU64,
    pub(crate) cold: AtomicU64,
    pub(crate) done: AtomicU64,
    pub(crate) retried: AtomicU64,
    pub(crate) deferred: AtomicU64,
    pub(crate) dead: AtomicU64,
    pub(crate) refused: AtomicU64,
}

impl Counters {
    pub(crate) fn add(counter: &AtomicU64, events: u64) {
        // The counters order nothing; each is read on its own.
        counter.fetch_add(events, Ordering::Relaxed);
    }

    pub(crate) fn snapshot(&self) -> Stats {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Stats {
            hot: read(&self.hot),
            hot_dropped: read(&self.hot_dropped),
            hot_skipped_delayed: read(&self.hot_skipped_delayed),
            cold: read(&self.cold),
            done: read(&self.done),
            retried: read(&self.retried),
            deferred: read(&self.deferred),
            dead: read(&self.dead),
            refused: read(&self.refused),
            hot_depth: 0,
            cold_depth: 0,
            held: 0,
        }
    }
}

/// What an outbox has done since it was started, and what it holds now. Each number counts events of this process.
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
    /// Failed and recorded to be tried again.
    pub retried: u64,
    /// Deferred or parked without counting an attempt.
    pub deferred: u64,
    /// Recorded as DEAD.
    pub dead: u64,
    /// Verdicts that changed nothing: ownership was lost, or the row had changed.
    pub refused: u64,
    /// Waiting in the hot queue.
    pub hot_depth: usize,
    /// Waiting in the cold queue.
    pub cold_depth: usize,
    /// In memory altogether: queued, running or waiting to be recorded.
    pub held: usize,
}
