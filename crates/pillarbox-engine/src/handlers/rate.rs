//! The number of a handler's events in a time.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use pillarbox_core::error::ConfigError;
use serde::{Deserialize, Serialize};

/// A number of events in a time, such as 100 in a second. They are spread evenly: after each event the next one waits for its share of the
/// time, unless a [burst](Self::burst) lets some follow each other.
///
/// ```
/// use std::time::Duration;
/// use pillarbox_engine::handlers::Rate;
///
/// let partner = Rate::per_minute(300).burst(10);
/// let slow = Rate::new(1, Duration::from_secs(5));
/// ```
///
/// Its text is the events, a slash and the period: `100/s`, `300/min`, `1/5s`. A burst is no part of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct Rate {
    events: u32,
    period: Duration,
    burst: Option<u32>,
}

/// The largest number of events in a period, and of a burst.
const MAX_EVENTS: u32 = 1_000_000;
const MIN_PERIOD: Duration = Duration::from_millis(1);
const MAX_PERIOD: Duration = Duration::from_secs(24 * 3600);
/// The time by which a timer is late. Without a burst of so much, a high rate would not be reached.
const TIMER_GRANULARITY: Duration = Duration::from_millis(10);

impl Rate {
    /// `events` in each `period`: 1 to 1,000,000 in 1 ms to one day.
    #[must_use]
    pub const fn new(events: u32, period: Duration) -> Self {
        Self { events, period, burst: None }
    }

    /// `events` in each second.
    #[must_use]
    pub const fn per_second(events: u32) -> Self {
        Self::new(events, Duration::from_secs(1))
    }

    /// `events` in each minute.
    #[must_use]
    pub const fn per_minute(events: u32) -> Self {
        Self::new(events, Duration::from_secs(60))
    }

    /// The number of events that may follow each other at once after a time with fewer, 1 to 1,000,000. In any time there are never more
    /// than the rate allows and the burst. Default: what the rate allows in 10 ms, at least 1.
    #[must_use]
    pub const fn burst(mut self, events: u32) -> Self {
        self.burst = Some(events);
        self
    }

    pub(super) fn check(&self) -> Result<(), ConfigError> {
        for (field, number) in [("handler.rate", self.events), ("handler.rate.burst", self.burst.unwrap_or(1))] {
            if !(1..=MAX_EVENTS).contains(&number) {
                return Err(ConfigError::new(
                    field,
                    format!("is {number}"),
                    format!("set a number from 1 to {MAX_EVENTS}"),
                ));
            }
        }
        if !(MIN_PERIOD..=MAX_PERIOD).contains(&self.period) {
            let problem = format!("is {} events in {:?}", self.events, self.period);
            return Err(ConfigError::new("handler.rate", problem, "set a period from 1ms to one day"));
        }
        Ok(())
    }

    /// The time between two events, and how far ahead of it an event may be.
    pub(super) fn interval(&self) -> (Duration, Duration) {
        let interval = (self.period / self.events.max(1)).max(Duration::from_nanos(1));
        let grain = TIMER_GRANULARITY.as_nanos() / interval.as_nanos();
        let burst = self.burst.unwrap_or_else(|| u32::try_from(grain).unwrap_or(MAX_EVENTS)).clamp(1, MAX_EVENTS);
        (interval, interval.saturating_mul(burst - 1))
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let period = humantime::format_duration(self.period).to_string();
        // `1s` is `s`, but `15s` and `1m 30s` are what they are.
        let unit = period.strip_prefix('1').filter(|unit| unit.chars().all(char::is_alphabetic));
        write!(f, "{}/{}", self.events, unit.unwrap_or(&period))
    }
}

impl From<Rate> for String {
    fn from(rate: Rate) -> Self {
        rate.to_string()
    }
}

/// A text that is no [`Rate`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("is {0:?}, which is no rate; write the events, a slash and a time, such as `100/s`, `300/min` or `1/5s`")]
pub struct NotARate(String);

impl FromStr for Rate {
    type Err = NotARate;

    fn from_str(text: &str) -> Result<Self, NotARate> {
        let read = || {
            let (events, period) = text.split_once('/')?;
            let period = period.trim();
            let one = if period.starts_with(|c: char| c.is_ascii_digit()) { "" } else { "1" };
            let period = humantime::parse_duration(&format!("{one}{period}")).ok()?;
            Some(Self::new(events.trim().parse().ok()?, period))
        };
        read().ok_or_else(|| NotARate(text.to_owned()))
    }
}

impl TryFrom<String> for Rate {
    type Error = NotARate;

    fn try_from(text: String) -> Result<Self, NotARate> {
        text.parse()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MILLI: Duration = Duration::from_millis(1);

    #[test]
    fn a_rate_is_written_as_it_is_read() {
        let second = Duration::from_secs(1);
        for (text, rate, written) in [
            ("100/s", Rate::per_second(100), "100/s"),
            ("300/min", Rate::per_minute(300), "300/m"),
            ("1 / 5s", Rate::new(1, 5 * second), "1/5s"),
            ("7/1m 30s", Rate::new(7, 90 * second), "7/1m 30s"),
            ("2/10ms", Rate::new(2, 10 * MILLI), "2/10ms"),
            ("1/day", Rate::new(1, MAX_PERIOD), "1/day"),
        ] {
            assert_eq!(text.parse(), Ok(rate), "{text}");
            assert_eq!(rate.to_string(), written);
            assert_eq!(written.parse(), Ok(rate), "{written}");
        }
        for wrong in ["", "100", "100/", "/s", "-1/s", "1.5/s", "100/parsec", "100/s/s", "many/s"] {
            assert_eq!(wrong.parse::<Rate>(), Err(NotARate(wrong.to_owned())));
        }
    }

    #[test]
    fn rates_that_cannot_be_are_refused() {
        let zero = Duration::ZERO;
        for (rate, field) in [
            (Rate::per_second(0), "handler.rate"),
            (Rate::per_second(MAX_EVENTS + 1), "handler.rate"),
            (Rate::per_second(5).burst(0), "handler.rate.burst"),
            (Rate::new(1, zero), "handler.rate"),
            (Rate::new(1, MAX_PERIOD + MILLI), "handler.rate"),
        ] {
            assert_eq!(rate.check().map_err(|error| error.field()), Err(field), "{rate}");
        }
        for rate in [Rate::per_second(1), Rate::per_minute(MAX_EVENTS).burst(MAX_EVENTS), Rate::new(1, MAX_PERIOD)] {
            assert_eq!(rate.check(), Ok(()), "{rate}");
        }
    }
}
