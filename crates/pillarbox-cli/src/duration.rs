//! Durations as people write and read them: `7d`, `1h 30m`, `500ms`.

use std::time::Duration;

pub(crate) use humantime::parse_duration as parse;

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
    fn durations_are_shown_short() {
        let shown = |millis| human(Duration::from_millis(millis));
        assert_eq!([0, 350, 1_600, 3_661_000].map(shown), ["0s", "350ms", "1s", "1h 1m 1s"].map(str::to_owned));
    }
}
