//! Times as people write them: `2h` for an age, or `2026-05-01T08:00:00Z`.

use std::time::Duration;

use pillarbox::Store;
use pillarbox::error::StoreError;
use pillarbox::event::Timestamp;

use crate::duration;

/// A time on the command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Moment {
    /// So long before the present.
    Ago(Duration),
    At(Timestamp),
}

impl Moment {
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        if let Ok(time) = humantime::parse_rfc3339_weak(text) {
            return Ok(Self::At(time.into()));
        }
        duration::parse(text).map(Self::Ago).map_err(|_| {
            "it is neither an age, such as `2h` or `1h 30m`, nor a time in UTC, such as `2026-05-01T08:00:00Z`"
                .to_owned()
        })
    }

    /// True if it counts back from the present.
    fn is_an_age(self) -> bool {
        matches!(self, Self::Ago(_))
    }

    /// The time itself.
    pub(crate) fn at(self, now: Timestamp) -> Timestamp {
        match self {
            Self::Ago(age) => now.minus(age),
            Self::At(time) => time,
        }
    }
}

/// The times, with ages counted back from the present time of the database.
pub(crate) async fn times<const N: usize>(
    store: &dyn Store,
    moments: [Option<Moment>; N],
) -> Result<[Option<Timestamp>; N], StoreError> {
    let ages = moments.into_iter().flatten().any(Moment::is_an_age);
    let now = if ages { store.now().await? } else { Timestamp::from_micros(0) };
    Ok(moments.map(|moment| moment.map(|moment| moment.at(now))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_is_an_age_or_a_time() {
        let now = Timestamp::from_micros(10_000_000);
        let at = |text: &str| Moment::parse(text).map(|moment| moment.at(now).as_micros());
        assert_eq!(at("2s"), Ok(8_000_000));
        assert_eq!(at("1970-01-01T00:00:03.5Z"), Ok(3_500_000));
        assert_eq!(at("1970-01-02 00:00:00"), Ok(86_400_000_000), "UTC, though it does not say so");
        for text in ["", "2", "yesterday", "2026-05-01", "2026-13-01T08:00:00Z"] {
            assert!(at(text).is_err_and(|error| error.contains("neither an age")), "{text}");
        }
    }
}
