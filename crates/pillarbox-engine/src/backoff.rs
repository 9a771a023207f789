use std::time::Duration;

use pillarbox_core::clock::Random;
use pillarbox_core::retry::{ExponentialBackoff, RetryPolicy};

/// `interval`, shortened by up to a quarter, so that many nodes do not act in step.
pub(crate) fn jittered(interval: Duration, random: &dyn Random) -> Duration {
    interval.mul_f64(0.75 + random.next_f64() / 4.0)
}

/// The waits of an operation that is repeated until it succeeds: from about 50 ms up to 5 s.
#[derive(Debug, Default)]
pub(crate) struct Backoff {
    failures: u32,
}

impl Backoff {
    const POLICY: ExponentialBackoff = ExponentialBackoff::constant(Duration::from_millis(50), Duration::from_secs(5));

    /// True if the operation has not failed before: the one failure worth a line in the log.
    pub(crate) fn is_first(&self) -> bool {
        self.failures == 0
    }

    /// The operation failed: how long to wait.
    pub(crate) fn next(&mut self, random: &dyn Random) -> Duration {
        self.failures = self.failures.saturating_add(1);
        Self::POLICY.delay(self.failures, random)
    }

    /// The operation succeeded. Returns true if that ends a series of failures.
    pub(crate) fn end(&mut self) -> bool {
        std::mem::take(&mut self.failures) > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug)]
    struct Fixed(u64);
    impl Random for Fixed {
        fn next_u64(&self) -> u64 {
            self.0
        }
    }

    #[test]
    fn an_interval_is_shortened_by_up_to_a_quarter_and_never_lengthened() {
        let second = Duration::from_secs(1);
        let at = |chance| jittered(second, &Fixed(chance)).as_millis();
        assert_eq!((at(0), at(1 << 63)), (750, 875));
        assert!(jittered(second, &Fixed(u64::MAX)) <= second && at(u64::MAX) >= 999);
    }

    #[test]
    fn waits_grow_from_50_ms_to_5_s_and_begin_anew_after_a_success() {
        let (mut backoff, middle) = (Backoff::default(), Fixed(1 << 63));
        assert!(backoff.is_first() && !backoff.end());
        let waits: Vec<_> = (0..9).map(|_| backoff.next(&middle).as_millis()).collect();
        assert_eq!(waits, [50, 100, 200, 400, 800, 1600, 3200, 5000, 5000]);
        assert!(!backoff.is_first() && backoff.end());
        assert_eq!(backoff.next(&middle), Duration::from_millis(50));
    }
}
