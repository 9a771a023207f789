//! The option `timeout`: how long a call may take.

use std::ops::RangeInclusive;
use std::time::Duration;

use pillarbox_core::error::ConfigError;
use serde::{Deserialize, Deserializer};

/// The range of a limit of time, unless a client knows better.
pub const RANGE: RangeInclusive<Duration> = Duration::from_millis(1)..=Duration::from_secs(3600);

/// Ten seconds.
#[must_use]
pub const fn default() -> Duration {
    Duration::from_secs(10)
}

/// Refuses a limit that cannot be kept.
///
/// # Errors
/// When it is outside of `range`.
pub fn check(timeout: Duration, range: &RangeInclusive<Duration>) -> Result<(), ConfigError> {
    if range.contains(&timeout) {
        return Ok(());
    }
    let shown = humantime::format_duration;
    let remedy = format!("set `{}` to `{}`, such as `10s`", shown(*range.start()), shown(*range.end()));
    Err(ConfigError::new("timeout", format!("is {}", shown(timeout)), remedy))
}

/// Reads a duration with its unit: `#[serde(deserialize_with = "pillarbox_connect::timeout::read")]`.
///
/// # Errors
/// When it is none.
pub fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    let text = String::deserialize(deserializer)?;
    humantime::parse_duration(&text).map_err(|_| {
        serde::de::Error::custom(format!(
            "{text:?} is no duration; write a number and a unit, such as \"200ms\" or \"10s\""
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_has_a_unit() {
        let read = |json: &str| read(&mut serde_json::Deserializer::from_str(json)).map_err(|error| error.to_string());
        assert_eq!(read("\"500ms\""), Ok(Duration::from_millis(500)));
        assert_eq!(read("\"1m 500ms\""), Ok(Duration::from_millis(60_500)));
        for json in ["\"soon\"", "\"10\"", "\"\""] {
            assert!(
                read(json).is_err_and(|error| error.contains("is no duration") && error.contains("\"10s\"")),
                "{json}"
            );
        }
        assert!(read("10").is_err());
    }

    #[test]
    fn a_limit_is_within_its_range() {
        let check = |timeout| check(timeout, &RANGE).map_err(|error| error.to_string());
        for timeout in [Duration::from_millis(1), default(), Duration::from_secs(3600)] {
            assert_eq!(check(timeout), Ok(()));
        }
        let refused = |text: &str| Err(format!("setting `timeout` is {text}; set `1ms` to `1h`, such as `10s`"));
        assert_eq!(check(Duration::ZERO), refused("0s"));
        assert_eq!(check(Duration::from_secs(7200)), refused("2h"));
        assert!(check(Duration::MAX).is_err());
    }
}
