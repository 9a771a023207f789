use std::time::Duration;

use tokio::time::Instant;

/// The shortest delay of a retry.
const SHORTEST: Duration = Duration::from_secs(30);
/// The time between two retries.
const INTERVAL: Duration = Duration::from_millis(10);
/// The longest delay. Beyond it, retries are scheduled between the others.
const LONGEST: Duration = Duration::from_secs(600);

/// Schedules the retries of events that a destination refuses individually: 10 ms apart, so that many of them do not load the broker and the
/// database all at once, again and again.
#[derive(Debug, Default)]
pub(crate) struct RetrySpacing {
    next: Option<Instant>,
}

impl RetrySpacing {
    /// The delay of one more.
    pub(crate) fn delay(&mut self, now: Instant) -> Duration {
        let (first, last) = (now + SHORTEST, now + LONGEST);
        let at = self.next.filter(|next| (first..=last).contains(next)).unwrap_or(first);
        self.next = Some(at + INTERVAL);
        at - now
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retries_are_spaced_ten_milliseconds_apart() {
        let (now, mut spacing) = (Instant::now(), RetrySpacing::default());
        let delays: Vec<_> = (0..57_002).map(|_| spacing.delay(now)).collect();
        assert_eq!(delays[..3], [SHORTEST, SHORTEST + INTERVAL, SHORTEST + INTERVAL * 2]);
        assert_eq!(delays[57_000..], [LONGEST, SHORTEST], "then between the others");
        let later = now + LONGEST;
        assert_eq!(spacing.delay(later), SHORTEST, "the others have returned");
    }
}
