//! The time from commit to handler.

use std::sync::atomic::{AtomicU64, Ordering};

use hdrhistogram::Histogram;
use serde::Serialize;
use tokio::time::Instant;

/// Measures the time from commit to handler of numbered events, within this process.
///
/// The two ends of an event are noted by different tasks, in either order: a handler may well run before the committing
/// task has been scheduled again.
#[derive(Debug)]
pub struct Stopwatch {
    origin: Instant,
    committed: Box<[AtomicU64]>,
    handled: Box<[AtomicU64]>,
}

/// The value of an end that has not been noted.
const UNSET: u64 = u64::MAX;

/// The times that events took from commit to handler, in microseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Latency {
    /// Half of them took no longer.
    pub p50: u64,
    /// 95 of 100 took no longer.
    pub p95: u64,
    /// 99 of 100 took no longer.
    pub p99: u64,
    /// The longest.
    pub max: u64,
}

impl Stopwatch {
    /// A stopwatch for this many events.
    #[must_use]
    pub fn new(events: usize) -> Self {
        let unset = || (0..events).map(|_| AtomicU64::new(UNSET)).collect();
        Self { origin: Instant::now(), committed: unset(), handled: unset() }
    }

    /// Notes that the commit of event `number` returned at `time`.
    pub fn committed(&self, number: usize, time: Instant) {
        if let Some(slot) = self.committed.get(number) {
            slot.store(self.micros(time), Ordering::Relaxed);
        }
    }

    /// Notes that the handler of event `number` started at `time`. Only the first call for an event counts.
    pub fn handled(&self, number: usize, time: Instant) {
        if let Some(slot) = self.handled.get(number) {
            slot.fetch_min(self.micros(time), Ordering::Relaxed);
        }
    }

    /// The latencies of all events of which both ends are known; zero if the handler started before the commit
    /// returned.
    pub fn latency(&self) -> Latency {
        const HOUR: u64 = 3_600_000_000;
        let Ok(mut histogram) = Histogram::<u64>::new_with_bounds(1, HOUR, 3) else { return Latency::default() };
        for (committed, handled) in self.committed.iter().zip(&self.handled) {
            let (committed, handled) = (committed.load(Ordering::Relaxed), handled.load(Ordering::Relaxed));
            if committed != UNSET && handled != UNSET {
                histogram.saturating_record(handled.saturating_sub(committed));
            }
        }
        Latency {
            p50: histogram.value_at_quantile(0.5),
            p95: histogram.value_at_quantile(0.95),
            p99: histogram.value_at_quantile(0.99),
            max: histogram.max(),
        }
    }

    fn micros(&self, time: Instant) -> u64 {
        u64::try_from(time.duration_since(self.origin).as_micros()).unwrap_or(UNSET - 1)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn it_measures_from_commit_to_the_first_call() {
        let watch = Stopwatch::new(4);
        let after = |millis| watch.origin + Duration::from_millis(millis);
        watch.handled(0, after(1)); // before its commit returned
        watch.committed(0, after(2));
        watch.committed(1, after(1));
        watch.handled(1, after(2));
        watch.handled(1, after(9)); // a second call
        watch.committed(2, after(1)); // never handled
        watch.handled(99, after(1)); // none of ours
        assert_eq!(watch.latency(), Latency { p50: 0, p95: 1000, p99: 1000, max: 1000 });
    }
}
