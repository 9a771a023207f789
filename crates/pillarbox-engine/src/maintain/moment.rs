use std::str::FromStr;
use std::time::Duration;

use pillarbox_core::clock::Timestamp;
use pillarbox_core::error::StoreError;
use pillarbox_core::store::Store;

/// A time as an operator writes it: an age such as `2h` or `1h 30m`, or a time in UTC such as `2026-05-01`, `2026-05-01 08:00` or
/// `2026-05-01T08:00:00Z`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Moment {
    /// So long before the present.
    Ago(Duration),
    /// The time itself.
    At(Timestamp),
}

/// A text that is no [`Moment`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "it is neither an age, such as `2h` or `1h 30m`, nor a time in UTC, such as `2026-05-01 08:00` or `2026-05-01T08:00:00Z`; write one of these"
)]
pub struct InvalidMoment;

impl Moment {
    /// The times, with ages counted back from the present time of the database. It is asked only if there are any.
    ///
    /// # Errors
    /// The database's.
    pub async fn times<const N: usize>(
        store: &dyn Store,
        moments: [Option<Self>; N],
    ) -> Result<[Option<Timestamp>; N], StoreError> {
        let ages = moments.iter().flatten().any(|moment| matches!(moment, Self::Ago(_)));
        let now = if ages { store.now().await? } else { Timestamp::from_micros(0) };
        Ok(moments.map(|moment| moment.map(|moment| moment.at(now))))
    }

    fn at(self, now: Timestamp) -> Timestamp {
        match self {
            Self::Ago(age) => now.minus(age),
            Self::At(time) => time,
        }
    }
}

impl FromStr for Moment {
    type Err = InvalidMoment;

    fn from_str(text: &str) -> Result<Self, InvalidMoment> {
        if let Ok(age) = humantime::parse_duration(text) {
            return Ok(Self::Ago(age));
        }
        // A time without seconds, and a date without a time of day.
        let (minute, date) = (format!("{text}:00"), format!("{text} 00:00:00"));
        let time = [text, &minute, &date].into_iter().find_map(|form| humantime::parse_rfc3339_weak(form).ok());
        time.map(|time| Self::At(time.into())).ok_or(InvalidMoment)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_is_an_age_or_a_time() {
        let now = Timestamp::from_micros(10_000_000);
        let at = |text: &str| text.parse::<Moment>().map(|moment| moment.at(now).as_micros());
        let day = 86_400_000_000;
        let table = [
            ("2s", 8_000_000),
            ("1s 500ms", 8_500_000),
            ("1970-01-01T00:00:03.5Z", 3_500_000),
            ("1970-01-02T00:00:01", day + 1_000_000),
            ("1970-01-02 00:00:00", day),
            ("1970-01-02 00:01", day + 60_000_000),
            ("1970-01-02", day),
        ];
        for (text, micros) in table {
            assert_eq!(at(text), Ok(micros), "{text}, in UTC, though it may not say so");
        }
        for text in ["", " ", "2", "yesterday", "1970-01", "2026-13-01", "2026-13-01T08:00:00Z"] {
            assert_eq!(at(text), Err(InvalidMoment), "{text}");
        }
    }
}
