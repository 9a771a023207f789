use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// One bucket for each number of microseconds below four, and four for each power of two from there on.
const BUCKETS: usize = 252;

/// The times that events took, counted in buckets, none of which is wider than a quarter of its times.
#[derive(Debug)]
pub(crate) struct Latencies([AtomicU64; BUCKETS]);

impl Default for Latencies {
    fn default() -> Self {
        Self([const { AtomicU64::new(0) }; BUCKETS])
    }
}

impl Latencies {
    pub(crate) fn record(&self, took: Duration) {
        let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        // The counts order nothing.
        if let Some(bucket) = self.0.get(bucket(micros)) {
            bucket.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// The median and the 99th percentile of the times that were recorded since they were taken last; `None` if there are none.
    pub(crate) fn take(&self) -> Option<[Duration; 2]> {
        let counts = self.0.each_ref().map(|bucket| bucket.swap(0, Ordering::Relaxed));
        let all: u64 = counts.iter().sum();
        let percentile = |percent: u64| {
            let mut left = (all * percent).div_ceil(100);
            let index = counts.iter().position(|count| {
                left = left.saturating_sub(*count);
                left == 0
            });
            Duration::from_micros(upper(index.unwrap_or(BUCKETS - 1)))
        };
        (all > 0).then(|| [50, 99].map(percentile))
    }
}

/// The bucket of a time: by its highest bit, and the two bits after that.
fn bucket(micros: u64) -> usize {
    let exponent = micros.checked_ilog2().unwrap_or(0);
    let place = if exponent < 2 { micros } else { u64::from(exponent - 1) * 4 + ((micros >> (exponent - 2)) & 3) };
    usize::try_from(place).unwrap_or(BUCKETS)
}

/// The longest time of a bucket.
fn upper(bucket: usize) -> u64 {
    let (power, quarter) = (bucket / 4, bucket as u64 % 4);
    let shift = u32::try_from(power.saturating_sub(1)).unwrap_or(0);
    if power == 0 { quarter } else { ((u128::from(quarter + 5) << shift) - 1).try_into().unwrap_or(u64::MAX) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_time_is_in_a_bucket_that_is_no_wider_than_a_quarter_of_it() {
        let times = (0..64)
            .flat_map(|power| [0, 1, 2, 3].map(|more| (1_u64 << power).saturating_add(more << power.max(2) >> 2)));
        let mut last = 0;
        for micros in times.chain([u64::MAX]) {
            let (bucket, upper) = (bucket(micros), upper(bucket(micros)));
            assert!(bucket < BUCKETS && bucket >= last, "{micros}: {bucket} after {last}");
            assert!(upper >= micros && upper - micros <= micros / 4, "{micros}: up to {upper}");
            last = bucket;
        }
    }

    #[test]
    fn percentiles_are_those_of_the_times_since_they_were_taken_last() {
        let latencies = Latencies::default();
        assert_eq!(latencies.take(), None);
        for millis in 1..=100 {
            latencies.record(Duration::from_millis(millis));
        }
        let [p50, p99] = latencies.take().expect("there are some").map(|time| time.as_millis());
        assert!((50..=62).contains(&p50) && (99..=124).contains(&p99), "{p50} {p99}");
        latencies.record(Duration::ZERO);
        assert_eq!(latencies.take(), Some([Duration::ZERO; 2]));
    }
}
