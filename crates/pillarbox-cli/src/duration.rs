//! Durations as people write and read them: `7d`, `1h 30m`, `500ms`.

use std::time::Duration;

/// Reads a duration. A number without a unit is refused with units of which none deletes or ends more than was meant.
pub(crate) fn parse(text: &str) -> Result<Duration, String> {
    humantime::parse_duration(text).map_err(|error| match error {
        humantime::DurationError::NumberExpected(_) | humantime::DurationError::Empty => error.to_string(),
        _ => "it is no time, such as `7d`, `12h`, `30m`, `5s` or `500ms`".to_owned(),
    })
}

/// Whole seconds, or milliseconds below one.
pub(crate) fn human(duration: Duration) -> String {
    let millis = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
    let shown = match millis {
        0..1_000 => Duration::from_millis(millis),
        _ => Duration::from_secs(duration.as_secs()),
    };
    humantime::format_duration(shown).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_without_a_unit_is_refused_with_all_units() {
        assert_eq!(parse("7d"), Ok(Duration::from_secs(7 * 24 * 3600)));
        for wrong in ["7", "7 dayz", "7x"] {
            assert_eq!(parse(wrong), Err("it is no time, such as `7d`, `12h`, `30m`, `5s` or `500ms`".to_owned()));
        }
    }

    #[test]
    fn durations_are_shown_short() {
        let shown = |millis| human(Duration::from_millis(millis));
        assert_eq!([0, 350, 1_600, 3_661_000].map(shown), ["0s", "350ms", "1s", "1h 1m 1s"].map(str::to_owned));
    }
}
