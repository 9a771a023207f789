use std::time::Duration;

use super::{ExponentialBackoff, RetryPolicy};
use crate::clock::Random;

/// `interval`, shortened by up to a quarter, so that many nodes do not act in step.
pub(crate) fn jittered(interval: Duration, random: &dyn Random) -> Duration {
    interval.mul_f64(0.75 + random.next_f64() / 4.0)
}

/// The pauses of an operation that is repeated until it succeeds: from about 50 ms up to 5 s.
#[derive(Debug, Default)]
pub(crate) struct Pause {
    failures: u32,
}

impl Pause {
    const BACKOFF: ExponentialBackoff = ExponentialBackoff::constant(Duration::from_millis(50), Duration::from_secs(5));

    /// Whether the operation has not failed before: the one failure worth a line in the log.
    pub(crate) fn is_first(&self) -> bool {
        self.failures == 0
    }

    /// The operation failed: how long to wait.
    pub(crate) fn next(&mut self, random: &dyn Random) -> Duration {
        self.failures = self.failures.saturating_add(1);
        Self::BACKOFF.delay(self.failures, random)
    }

    /// The operation succeeded: whether that ends a series of failures.
    pub(crate) fn is_over(&mut self) -> bool {
        std::mem::take(&mut self.failures) > 0
    }
}
