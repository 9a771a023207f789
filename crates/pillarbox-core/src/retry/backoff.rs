use std::fmt;
use std::time::Duration;

use crate::clock::Random;
use crate::error::ConfigError;

/// A rule for the time to wait after a failure.
#[auto_impl::auto_impl(Arc)]
pub trait RetryPolicy: fmt::Debug + Send + Sync + 'static {
    /// The wait after the failure with this number, from 1. Zero failures wait for nothing.
    fn delay(&self, failures: u32, random: &dyn Random) -> Duration;
}

/// Longer delays are a mistake, and far below what durations and the databases' timestamps can hold.
pub(super) const MAX_CAP: Duration = Duration::from_secs(365 * 24 * 3600);

/// Accepts a delay that is neither zero, which would spin, nor longer than anybody can mean.
pub(super) fn check_delay(field: &'static str, delay: Duration) -> Result<(), ConfigError> {
    if delay.is_zero() {
        return Err(ConfigError::new(field, "is zero", "a retry without a delay would spin; set at least 1 ms"));
    }
    if delay > MAX_CAP {
        return Err(ConfigError::new(field, format!("is {delay:?}"), "set at most 365 days"));
    }
    Ok(())
}

/// Accepts a first delay and the longest one.
pub(super) fn check_span(base: Duration, cap: Duration) -> Result<(), ConfigError> {
    // The cap first: a base that is too long is longer than it.
    check_delay("retry.cap", cap)?;
    if base > cap {
        let problem = format!("is {base:?}, longer than the cap of {cap:?}");
        return Err(ConfigError::new("retry.base", problem, "set a base no longer than the cap"));
    }
    check_delay("retry.base", base)
}

/// `min(cap, base · m^(n-1))` with the multiplier `m`, then multiplied by a uniform factor from `[0.5, 1.5)` and capped again.
///
/// The random factor keeps events that failed together from being retried together. Default: base 200 ms, multiplier 2, cap 60 s.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ExponentialBackoff {
    base: Duration,
    cap: Duration,
    multiplier: f64,
    spread: bool,
}

const DOUBLING: f64 = 2.0;
const MAX_MULTIPLIER: f64 = 1000.0;

impl ExponentialBackoff {
    /// A backoff that starts at `base` and never exceeds `cap`.
    ///
    /// # Errors
    /// When either is zero, the base exceeds the cap, or the cap exceeds 365 days.
    pub fn new(base: Duration, cap: Duration) -> Result<Self, ConfigError> {
        check_span(base, cap)?;
        Ok(Self::constant(base, cap))
    }
}

impl ExponentialBackoff {
    /// For values that are known to be valid.
    #[doc(hidden)]
    #[must_use]
    pub const fn constant(base: Duration, cap: Duration) -> Self {
        Self { base, cap, multiplier: DOUBLING, spread: true }
    }

    /// The same backoff with another multiplier than 2.
    ///
    /// # Errors
    /// When it is below 1 or above 1000, or is no number.
    pub fn with_multiplier(mut self, multiplier: f64) -> Result<Self, ConfigError> {
        if !(1.0..=MAX_MULTIPLIER).contains(&multiplier) {
            let remedy = format!("set a number from 1 to {MAX_MULTIPLIER}");
            return Err(ConfigError::new("retry.multiplier", format!("is {multiplier}"), remedy));
        }
        self.multiplier = multiplier;
        Ok(self)
    }

    /// The same without the random factor: `min(cap, base · m^(n-1))`, as a base for [`JitteredBackoff`](super::JitteredBackoff).
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
        let Some(steps) = failures.checked_sub(1) else { return Duration::ZERO };
        let (base, cap) = (self.base.as_secs_f64(), self.cap.as_secs_f64());
        // The power may be infinite, which is past the cap.
        let delay = (base * self.multiplier.powi(i32::try_from(steps).unwrap_or(i32::MAX))).min(cap);
        let delay = if self.spread { delay * (0.5 + random.next_f64()) } else { delay };
        // `Duration::from_secs_f64` would take longer than all the rest.
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "twice the cap at most, and rounded"
        )]
        let nanos = (delay * 1e9 + 0.5) as u64;
        Duration::from_nanos(nanos).min(self.cap)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::retry::fixed::{HIGH, LOW, MIDDLE, millis};

    #[test]
    fn delays_double_up_to_the_cap() {
        let policy = ExponentialBackoff::default();
        let table = [(0, 0), (1, 200), (2, 400), (3, 800), (8, 25_600), (9, 51_200), (10, 60_000), (100, 60_000)];
        for (failures, expected) in table {
            assert_eq!(policy.delay(failures, &MIDDLE), millis(expected), "failure {failures}");
        }
    }

    #[test]
    fn another_multiplier_grows_the_pauses_by_it() {
        let backoff = |multiplier| {
            let plain = ExponentialBackoff::new(millis(100), millis(5_000)).expect("valid").without_jitter();
            plain.with_multiplier(multiplier)
        };
        for (multiplier, delays) in
            [(1.0, [100, 100, 100, 100]), (1.5, [100, 150, 225, 5_000]), (3.0, [100, 300, 900, 5_000])]
        {
            let policy = backoff(multiplier).expect("valid");
            for (failures, expected) in [1, 2, 3, if multiplier > 1.0 { u32::MAX } else { 4 }].into_iter().zip(delays) {
                assert_eq!(policy.delay(failures, &LOW), millis(expected), "{multiplier}, failure {failures}");
            }
        }
        for multiplier in [0.99, 0.0, -2.0, 1000.1, f64::NAN, f64::INFINITY] {
            assert_eq!(backoff(multiplier).map_err(|error| error.field()), Err("retry.multiplier"), "{multiplier}");
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
