use std::time::Duration;

use super::RetryPolicy;
use super::backoff::{check_delay, check_span};
use crate::clock::Random;
use crate::error::ConfigError;

/// The same delay after every failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FixedBackoff {
    delay: Duration,
}

impl FixedBackoff {
    /// A delay of `delay`.
    ///
    /// # Errors
    /// When it is zero or exceeds 365 days.
    pub fn new(delay: Duration) -> Result<Self, ConfigError> {
        check_delay("retry.base", delay)?;
        Ok(Self { delay })
    }
}

impl RetryPolicy for FixedBackoff {
    fn delay(&self, failures: u32, _: &dyn Random) -> Duration {
        if failures == 0 { Duration::ZERO } else { self.delay }
    }
}

/// Delays that grow evenly: `min(cap, base + step · (n-1))`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LinearBackoff {
    base: Duration,
    step: Duration,
    cap: Duration,
}

impl LinearBackoff {
    /// A backoff that starts at `base`, grows by `step` with each failure, and never exceeds `cap`.
    ///
    /// # Errors
    /// When one of them is zero, the base exceeds the cap, or the cap or the step exceeds 365 days.
    pub fn new(base: Duration, step: Duration, cap: Duration) -> Result<Self, ConfigError> {
        check_span(base, cap)?;
        check_delay("retry.step", step)?;
        Ok(Self { base, step, cap })
    }
}

impl RetryPolicy for LinearBackoff {
    fn delay(&self, failures: u32, _: &dyn Random) -> Duration {
        let Some(steps) = failures.checked_sub(1) else { return Duration::ZERO };
        self.base.saturating_add(self.step.saturating_mul(steps)).min(self.cap)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::SystemRandom;
    use crate::retry::backoff::MAX_CAP;
    use crate::retry::fixed::millis;

    #[test]
    fn a_fixed_pause_stays_the_same() {
        let policy = FixedBackoff::new(millis(300)).expect("valid");
        for (failures, expected) in [(0, 0), (1, 300), (2, 300), (u32::MAX, 300)] {
            assert_eq!(policy.delay(failures, &SystemRandom), millis(expected), "failure {failures}");
        }
    }

    #[test]
    fn a_linear_pause_grows_by_its_step_up_to_the_cap() {
        let policy = LinearBackoff::new(millis(100), millis(250), millis(1000)).expect("valid");
        let table = [(0, 0), (1, 100), (2, 350), (3, 600), (4, 850), (5, 1000), (6, 1000), (u32::MAX, 1000)];
        for (failures, expected) in table {
            assert_eq!(policy.delay(failures, &SystemRandom), millis(expected), "failure {failures}");
        }
        let longest = LinearBackoff::new(MAX_CAP, MAX_CAP, MAX_CAP).expect("valid");
        assert_eq!(longest.delay(u32::MAX, &SystemRandom), MAX_CAP);
    }

    #[test]
    fn zero_and_contradictory_settings_are_refused() {
        let refused = |error: Result<_, ConfigError>| error.map(|_: LinearBackoff| ()).map_err(|error| error.field());
        let linear = |base, step, cap| refused(LinearBackoff::new(base, step, cap));
        assert_eq!(linear(Duration::ZERO, millis(1), millis(1)), Err("retry.base"));
        assert_eq!(linear(millis(1), Duration::ZERO, millis(1)), Err("retry.step"));
        assert_eq!(linear(millis(1), millis(1), Duration::ZERO), Err("retry.cap"));
        assert_eq!(linear(millis(2), millis(1), millis(1)), Err("retry.base"));
        assert_eq!(linear(millis(2), millis(1), Duration::MAX), Err("retry.cap"));
        for delay in [Duration::ZERO, Duration::MAX] {
            assert_eq!(FixedBackoff::new(delay).map_err(|error| error.field()), Err("retry.base"));
        }
    }
}
