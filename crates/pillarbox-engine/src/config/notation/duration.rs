//! Durations as people write them: `15s`, `200ms`, `7d`.

use std::borrow::Cow;
use std::time::Duration;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize as _, Serializer};

const NEVER: &str = "never";
/// In seconds.
const DAY: u64 = 24 * 3600;

pub(in crate::config) fn parse(text: &str) -> Result<Duration, String> {
    humantime::parse_duration(text).map_err(|_| {
        format!("is {text:?}, which is no duration; write a number and a unit, such as `200ms`, `15s` or `7d`")
    })
}

/// The duration as [`parse`] reads it. Days are not told as the months and years of an average calendar: `90d`.
pub(in crate::config) fn written(duration: Duration) -> String {
    let (days, rest) = (duration.as_secs() / DAY, duration.as_secs() % DAY);
    if days > 0 && rest == 0 && duration.subsec_nanos() == 0 {
        return format!("{days}d");
    }
    humantime::format_duration(duration).to_string()
}

/// True if a setting with this value is a duration.
#[must_use]
pub fn is_duration(text: &str) -> bool {
    text == NEVER || humantime::parse_duration(text).is_ok()
}

/// A duration.
#[expect(missing_docs, reason = "the functions that serde calls")]
pub mod span {
    use super::*;

    pub fn serialize<S: Serializer>(value: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&written(*value))
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
        parse(&Cow::<str>::deserialize(deserializer)?).map_err(D::Error::custom)
    }
}

/// A duration, or `never`.
#[expect(missing_docs, reason = "the functions that serde calls")]
pub mod or_never {
    use super::*;

    pub fn serialize<S: Serializer>(value: &Option<Duration>, serializer: S) -> Result<S::Ok, S::Error> {
        match value {
            Some(value) => span::serialize(value, serializer),
            None => serializer.serialize_str(NEVER),
        }
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Duration>, D::Error> {
        match &*Cow::<str>::deserialize(deserializer)? {
            NEVER => Ok(None),
            text => parse(text).map(Some).map_err(|complaint| D::Error::custom(format!("{complaint}, or `{NEVER}`"))),
        }
    }
}

/// A duration, or `never`, without a default.
#[expect(missing_docs, reason = "the functions that serde calls")]
pub mod never_if_given {
    use super::*;

    pub fn serialize<S: Serializer>(value: &Option<Option<Duration>>, serializer: S) -> Result<S::Ok, S::Error> {
        match value {
            Some(value) => or_never::serialize(value, serializer),
            None => serializer.serialize_none(),
        }
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Option<Duration>>, D::Error> {
        or_never::deserialize(deserializer).map(Some)
    }
}

/// A duration without a default.
#[expect(missing_docs, reason = "the functions that serde calls")]
pub mod if_given {
    use super::*;

    pub fn serialize<S: Serializer>(value: &Option<Duration>, serializer: S) -> Result<S::Ok, S::Error> {
        value.map(written).serialize(serializer)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Duration>, D::Error> {
        let text = Option::<Cow<'_, str>>::deserialize(deserializer)?;
        text.map(|text| parse(&text)).transpose().map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_as_they_were_written() {
        let minute = Duration::from_secs(60);
        let texts =
            [("200ms", Duration::from_millis(200)), ("1m", minute), ("1d", 1440 * minute), ("90d", 90 * 1440 * minute)];
        for (text, duration) in texts {
            assert_eq!((&*written(duration), parse(text)), (text, Ok(duration)));
        }
        for odd in [Duration::from_nanos(1), 1441 * minute, Duration::from_secs(100 * DAY) + Duration::from_millis(1)] {
            assert_eq!(parse(&written(odd)), Ok(odd));
        }
    }
}
