use std::fmt;
use std::time::Duration;

use crate::clock::Random;
use crate::error::ConfigError;

/// How long to wait after a failure.
pub trait RetryPolicy: fmt::Debug + Send + Sync + 'static {
    /// The wait after the failure with this number, from 1. Zero failures wait for nothing.
    fn delay(&self, failures: u32, random: &dyn Random) -> Duration;
}

/// Longer pauses are a mistake, and far below what durations and the databases' timestamps can hold.
pub(super) const MAX_CAP: Duration = Duration::from_secs(365 * 24 * 3600);

/// Accepts a pause that is neither zero, which would spin, nor longer than anybody can mean.
pub(super) fn check_pause(field: &'static str, pause: Duration) -> Result<(), ConfigError> {
    if pause.is_zero() {
        return Err(ConfigError::new(field, "is zero", "a retry without a pause would spin; set at least 1 ms"));
    }
    if pause > MAX_CAP {
        return Err(ConfigError::new(field, format!("is {pause:?}"), "set at most 365 days"));
    }
    Ok(())
}

/// Accepts a pause to begin with and the longest one.
pub(super) fn check_span(base: Duration, cap: Duration) -> Result<(), ConfigError> {
    // The cap first: a base that is too long is longer than it.
    check_pause("retry.cap", cap)?;
    if base > cap {
        let problem = format!("is {base:?}, longer than the cap of {cap:?}");
        return Err(ConfigError::new("retry.base", problem, "set a base no longer than the cap"));
    }
    check_pause("retry.base", base)
}

/// `min(cap, base · 2^(n-1))`, then multiplied by a uniform factor from `[0.5, 1.5)` and capped again.
///
/// The factor keeps events that failed together from being retried together. Default: base 200 ms, cap 60 s.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExponentialBackoff {
    base: Duration,
    cap: Duration,
    spread: bool,
}

impl ExponentialBackoff {
    /// A backoff that starts at `base` and never exceeds `cap`.
    ///
    /// # Errors
    /// When either is zero, the base exceeds the cap, or the cap exceeds 365 days.
    pub fn new(base: Duration, cap: Duration) -> Result<Self, ConfigError> {
        check_span(base, cap)?;
        Ok(Self { base, cap, spread: true })
    }
}

impl ExponentialBackoff {
    /// For values that are known to be valid.
    pub(super) const fn constant(base: Duration, cap: Duration) -> Self {
        Self { base, cap, spread: true }
    }

    /// The same without the random factor: `min(cap, base · 2^(n-1))`, as a base for [`JitteredBackoff`](super::JitteredBackoff).
    #[must_use]
    pub const fn without_jitter(mut self) -> Self {
        self.spread = false;
        self
    }
}

impl Default for ExponentialBackoff {
    fn default() -> Self {
        Self::constant(Duration::from_millis(200), Duration::from_secs(60))
    }
}

impl RetryPolicy for ExponentialBackoff {
    fn delay(&self, failures: u32, random: &dyn Random) -> Duration {
        let Some(doublings) = failures.checked_sub(1) else { return Duration::ZERO };
        // 2^doublings as a saturating multiplication; past the cap the factor no longer matters.
        let factor = 1_u32.checked_shl(doublings).unwrap_or(u32::MAX);
        let delay = self.base.saturating_mul(factor).min(self.cap);
        if self.spread { delay.mul_f64(0.5 + random.next_f64()).min(self.cap) } else { delay }
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

    const LOW: Fixed = Fixed(0);
    const MIDDLE: Fixed = Fixed(1 << 63);
    const HIGH: Fixed = Fixed(u64::MAX);

    fn millis(n: u64) -> Duration {
        Duration::from_millis(n)
    }

    #[test]
    fn delays_double_up_to_the_cap() {
        let policy = ExponentialBackoff::default();
        let table = [(0, 0), (1, 200), (2, 400), (3, 800), (8, 25_600), (9, 51_200), (10, 60_000), (100, 60_000)];
        for (failures, expected) in table {
            assert_eq!(policy.delay(failures, &MIDDLE), millis(expected), "failure {failures}");
        }
    }

    #[test]
    fn without_jitter_chance_has_no_part_in_it() {
        let policy = ExponentialBackoff::default().without_jitter();
        let table = [(0, 0), (1, 200), (2, 400), (9, 51_200), (10, 60_000), (u32::MAX, 60_000)];
        for (failures, expected) in table {
            assert_eq!(policy.delay(failures, &LOW), millis(expected), "failure {failures}");
            assert_eq!(policy.delay(failures, &HIGH), millis(expected), "failure {failures}");
        }
    }

    #[test]
    fn jitter_spans_half_to_one_and_a_half_and_never_passes_the_cap() {
        let policy = ExponentialBackoff::default();
        assert_eq!(policy.delay(1, &LOW), millis(100));
        assert!(policy.delay(1, &HIGH) <= millis(300) && policy.delay(1, &HIGH) > millis(299));
        assert_eq!(policy.delay(20, &LOW), millis(30_000));
        assert_eq!(policy.delay(20, &HIGH), millis(60_000));
    }

    #[test]
    fn no_number_of_failures_overflows() {
        let policy = ExponentialBackoff::new(MAX_CAP, MAX_CAP).expect("valid");
        for failures in [1, 2, 31, 32, 33, 64, u32::MAX] {
            assert!(ExponentialBackoff::default().delay(failures, &HIGH) <= millis(60_000), "{failures}");
            assert_eq!(policy.delay(failures, &HIGH), MAX_CAP, "{failures}");
        }
    }

    #[test]
    fn zero_and_contradictory_settings_are_refused() {
        assert_eq!(ExponentialBackoff::new(Duration::ZERO, millis(1)).map_err(|e| e.field()), Err("retry.base"));
        assert_eq!(ExponentialBackoff::new(millis(1), Duration::ZERO).map_err(|e| e.field()), Err("retry.cap"));
        assert_eq!(ExponentialBackoff::new(millis(1), Duration::MAX).map_err(|e| e.field()), Err("retry.cap"));
        assert_eq!(ExponentialBackoff::new(millis(2), millis(1)).map_err(|e| e.field()), Err("retry.base"));
    }
}
