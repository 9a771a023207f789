//! Time and randomness, handed in.
//!
//! Nothing in this crate reads the wall clock or a random source on its own: both arrive through [`Clock`] and
//! [`Random`], so that tests and simulation drive them. Durations and timers use `tokio::time`, which they can drive too.

use std::fmt;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rand::Rng as _;

/// A moment in UTC, in whole microseconds since the Unix epoch: the resolution every supported database keeps.
///
/// ```
/// use pillarbox_core::clock::Timestamp;
/// let t = Timestamp::from_micros(1_700_000_000_123_456);
/// assert_eq!(t.to_string(), "2023-11-14T22:13:20.123456Z");
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(i64);

impl Timestamp {
    /// From microseconds since the Unix epoch; negative values lie before 1970.
    #[must_use]
    pub const fn from_micros(micros: i64) -> Self {
        Self(micros)
    }

    /// Microseconds since the Unix epoch.
    #[must_use]
    pub const fn as_micros(self) -> i64 {
        self.0
    }

    /// This moment plus `duration`, saturating at the far end of time.
    #[must_use]
    pub fn plus(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(i64::try_from(duration.as_micros()).unwrap_or(i64::MAX)))
    }

    /// This moment less `duration`, saturating at the near end of time.
    #[must_use]
    pub fn minus(self, duration: Duration) -> Self {
        Self(self.0.saturating_sub(i64::try_from(duration.as_micros()).unwrap_or(i64::MAX)))
    }

    /// The time from `earlier` to this moment; zero if `earlier` is later.
    #[must_use]
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_micros(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }
}

impl From<SystemTime> for Timestamp {
    fn from(time: SystemTime) -> Self {
        match time.duration_since(UNIX_EPOCH) {
            Ok(after) => Self(i64::try_from(after.as_micros()).unwrap_or(i64::MAX)),
            Err(before) => Self(i64::try_from(before.duration().as_micros()).map_or(i64::MIN, |micros| -micros)),
        }
    }
}

impl From<Timestamp> for SystemTime {
    fn from(time: Timestamp) -> Self {
        let distance = Duration::from_micros(time.0.unsigned_abs());
        if time.0 >= 0 { UNIX_EPOCH + distance } else { UNIX_EPOCH - distance }
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match jiff::Timestamp::from_microsecond(self.0) {
            // With the digits of a second that were asked for, as in `{:.6}`, or those that there are.
            Ok(time) => fmt::Display::fmt(&time, f),
            Err(_) => write!(f, "{} µs since 1970", self.0),
        }
    }
}

impl fmt::Debug for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A source of wall-clock time.
///
/// It stamps events (`occurred_at`, the time part of an id) and nothing else: the database's clock decides about ownership
/// and about due times.
pub trait Clock: fmt::Debug + Send + Sync + 'static {
    /// The current time.
    fn now(&self) -> Timestamp;
}

/// A source of random numbers, for event ids and jitter.
pub trait Random: fmt::Debug + Send + Sync + 'static {
    /// 64 uniformly distributed bits.
    fn next_u64(&self) -> u64;

    /// A number uniformly distributed in `[0, 1)`.
    fn next_f64(&self) -> f64 {
        // The 53 high bits are exactly what the mantissa of an f64 holds.
        #[expect(clippy::cast_precision_loss, reason = "53 bits fit the mantissa exactly")]
        let value = (self.next_u64() >> 11) as f64;
        value / (1_u64 << 53) as f64
    }
}

/// The operating system's clock.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        #[expect(clippy::disallowed_methods, reason = "the one place that reads the wall clock")]
        SystemTime::now().into()
    }
}

/// The process's cryptographically seeded generator.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemRandom;

impl Random for SystemRandom {
    fn next_u64(&self) -> u64 {
        rand::rng().next_u64()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timestamps_survive_the_trip_through_system_time() {
        for micros in [0, 1, -1, 1_700_000_000_123_456, -62_135_596_800_000_000] {
            let time = Timestamp::from_micros(micros);
            assert_eq!(Timestamp::from(SystemTime::from(time)), time, "{micros}");
        }
    }

    #[test]
    fn random_fractions_stay_below_one() {
        #[derive(Debug)]
        struct Ones;
        impl Random for Ones {
            fn next_u64(&self) -> u64 {
                u64::MAX
            }
        }
        assert!(Ones.next_f64() < 1.0);
    }
}
