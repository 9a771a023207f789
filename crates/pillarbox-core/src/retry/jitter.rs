use std::time::Duration;

use super::RetryPolicy;
use super::backoff::check_delay;
use crate::clock::Random;
use crate::error::ConfigError;

/// Another policy's delays, moved at random by up to `by` in either direction, but never below zero.
///
/// It keeps events that failed together from being retried together. It moves what the policy says after its cap, so a
/// delay may exceed that by up to `by`.
#[derive(Debug)]
pub struct JitteredBackoff<P> {
    policy: P,
    by: Duration,
}

impl<P: RetryPolicy> JitteredBackoff<P> {
    /// `policy`, moved by up to `by`.
    ///
    /// # Errors
    /// When `by` is zero or exceeds 365 days.
    pub fn new(policy: P, by: Duration) -> Result<Self, ConfigError> {
        check_delay("retry.jitter", by)?;
        Ok(Self { policy, by })
    }
}

impl<P: RetryPolicy> RetryPolicy for JitteredBackoff<P> {
    fn delay(&self, failures: u32, random: &dyn Random) -> Duration {
        if failures == 0 {
            return Duration::ZERO;
        }
        // Uniform from 0 to twice `by`, less `by`. It cannot overflow: `by` is below 365 days.
        let delay = self.policy.delay(failures, random).saturating_add(self.by.mul_f64(2.0 * random.next_f64()));
        delay.saturating_sub(self.by)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::retry::fixed::{HIGH, LOW, MIDDLE, millis};
    use crate::retry::{ExponentialBackoff, FixedBackoff};

    #[test]
    fn pauses_move_both_ways_after_the_cap_and_never_below_zero() {
        let exact = ExponentialBackoff::new(millis(200), millis(1000)).expect("valid").without_jitter();
        let policy = JitteredBackoff::new(exact, millis(300)).expect("valid");
        // failures: at the lowest, without luck, at the highest
        for (failures, low, middle, high) in
            [(0, 0, 0, 0), (1, 0, 200, 500), (2, 100, 400, 700), (4, 700, 1000, 1300), (u32::MAX, 700, 1000, 1300)]
        {
            assert_eq!(policy.delay(failures, &LOW), millis(low), "failure {failures}");
            assert_eq!(policy.delay(failures, &MIDDLE), millis(middle), "failure {failures}");
            let highest = policy.delay(failures, &HIGH);
            assert!(highest <= millis(high) && highest + millis(1) > millis(high), "failure {failures}: {highest:?}");
        }
    }

    #[test]
    fn it_moves_by_something() {
        let fixed = FixedBackoff::new(millis(1)).expect("valid");
        for by in [Duration::ZERO, Duration::MAX] {
            assert_eq!(JitteredBackoff::new(fixed, by).map(|_| ()).map_err(|error| error.field()), Err("retry.jitter"));
        }
    }
}
