//! The time from commit to handler.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

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

impl Latency {
    /// Of so many times, in microseconds. What takes longer than an hour counts as an hour.
    fn of(times: impl IntoIterator<Item = u64>) -> Self {
        const HOUR: u64 = 3_600_000_000;
        let Ok(mut histogram) = Histogram::<u64>::new_with_bounds(1, HOUR, 3) else { return Self::default() };
        for time in times {
            histogram.saturating_record(time);
        }
        Self {
            p50: histogram.value_at_quantile(0.5),
            p95: histogram.value_at_quantile(0.95),
            p99: histogram.value_at_quantile(0.99),
            max: histogram.max(),
        }
    }
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
        Latency::of(self.both_ends().map(|(committed, handled)| handled.saturating_sub(committed)))
    }

    /// The latencies of the events that were committed in each of so many equal parts of the time, oldest first; each with the
    /// seconds from the first commit to the end of the part. A part in which nothing was committed is left out.
    #[must_use]
    pub fn over_time(&self, parts: u32) -> Vec<(f64, Latency)> {
        let commits = || self.both_ends().map(|(committed, _)| committed);
        let (Some(first), Some(last)) = (commits().min(), commits().max()) else { return Vec::new() };
        let length = (last - first + 1).div_ceil(parts.max(1).into());
        let mut times = vec![Vec::new(); parts.max(1) as usize];
        for (committed, handled) in self.both_ends() {
            let part = usize::try_from((committed - first) / length).unwrap_or_default();
            if let Some(times) = times.get_mut(part) {
                times.push(handled.saturating_sub(committed));
            }
        }
        let ends = (1..).map(|part| Duration::from_micros(length * part).as_secs_f64());
        let taken = ends.zip(times).filter(|(_, times)| !times.is_empty());
        taken.map(|(end, times)| (end, Latency::of(times))).collect()
    }

    /// The commit and the first call of each event of which both are known, in microseconds.
    fn both_ends(&self) -> impl Iterator<Item = (u64, u64)> {
        let ends = self.committed.iter().zip(&self.handled);
        let ends =
            ends.map(|(committed, handled)| (committed.load(Ordering::Relaxed), handled.load(Ordering::Relaxed)));
        ends.filter(|(committed, handled)| *committed != UNSET && *handled != UNSET)
    }

    fn micros(&self, time: Instant) -> u64 {
        u64::try_from(time.duration_since(self.origin).as_micros()).unwrap_or(UNSET - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn latencies_are_told_apart_by_the_time_of_the_commit() {
        let watch = Stopwatch::new(5);
        let after = |micros| watch.origin + Duration::from_micros(micros);
        // In ten parts of a second each, of which the second is empty.
        let second = 1_000_000;
        for (number, (committed, taken)) in
            [(0, 10), (999_999, 30), (2 * second, 50), (10 * second - 1, 70)].into_iter().enumerate()
        {
            watch.committed(number, after(committed));
            watch.handled(number, after(committed + taken));
        }
        watch.committed(4, after(20 * second)); // never handled
        let parts: Vec<_> =
            watch.over_time(10).into_iter().map(|(seconds, latency)| (seconds, latency.p50, latency.max)).collect();
        assert_eq!(parts, [(1.0, 10, 30), (3.0, 50, 50), (10.0, 70, 70)]);
        assert_eq!(watch.over_time(0).len(), 1, "one part at least");
    }

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
