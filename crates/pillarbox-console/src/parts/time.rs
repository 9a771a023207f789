use std::time::Duration;

use maud::{Markup, html};
use pillarbox_core::clock::Timestamp;

/// A moment, as its distance from now and as a date in UTC: the style sheet shows the one that the reader has chosen.
pub(crate) fn ago(time: Timestamp, now: Timestamp) -> Markup {
    let (absolute, iso) = (at(time), time.to_string());
    let relative =
        if time <= now { format!("{} ago", span(now.since(time))) } else { format!("in {}", span(time.since(now))) };
    html! { time datetime=(iso) title=(absolute) { span.rel { (relative) } span.abs { (absolute) } } }
}

/// A moment as a date in UTC, to the millisecond.
fn at(time: Timestamp) -> String {
    let iso = time.to_string();
    let (date, clock) = iso.split_once('T').unwrap_or((&iso, ""));
    let clock = clock.trim_end_matches('Z');
    let clock = clock.split_once('.').map_or_else(
        || clock.to_owned(),
        |(seconds, fraction)| format!("{seconds}.{}", fraction.chars().take(3).collect::<String>()),
    );
    format!("{date} {clock} UTC")
}

/// A duration for people, to two digits or so.
pub(crate) fn within(duration: Duration) -> String {
    span(duration)
}

fn span(duration: Duration) -> String {
    let seconds = duration.as_secs();
    match seconds {
        0 if duration.as_millis() == 0 => "0 s".to_owned(),
        0 => format!("{} ms", duration.as_millis()),
        1..=9 => format!("{:.1} s", duration.as_secs_f64()),
        10..=119 => format!("{seconds} s"),
        120..=7_199 => format!("{} min", seconds / 60),
        7_200..=172_799 => format!("{} h", seconds / 3_600),
        _ => format!("{} days", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_is_told_both_ways() {
        let now = Timestamp::from_micros(1_700_000_000_123_456);
        let earlier = now.minus(Duration::from_secs(300));
        let text = ago(earlier, now).into_string();
        assert!(text.contains(">5 min ago<") && text.contains(">2023-11-14 22:08:20.123 UTC<"), "{text}");
        assert!(ago(now.plus(Duration::from_secs(7_200)), now).into_string().contains(">in 2 h<"));
    }

    #[test]
    fn durations_are_short() {
        let spans = [0, 20, 1_500, 45_000, 119_000, 120_000, 86_400_000, 864_000_000];
        let texts = spans.map(|millis| within(Duration::from_millis(millis)));
        assert_eq!(texts, ["0 s", "20 ms", "1.5 s", "45 s", "119 s", "2 min", "24 h", "10 days"]);
    }
}
