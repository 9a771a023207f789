//! The database's clock, trusted only once a jump has persisted for a while.

use std::time::Duration;

use pillarbox_core::clock::Timestamp;
use tokio::time::Instant;

/// The database's clock as decisions by age use it that cannot be undone, such as a purge.
///
/// A clock that runs ahead makes every row look old. A jump beyond `tolerance` is trusted only after it has persisted for `must_stand`. After a
/// host was suspended its clock looks the same, and waits as long.
#[derive(Debug)]
pub(crate) struct TrustedClock {
    /// The time by which the clock may run ahead between two looks.
    tolerance: Duration,
    /// The time for which a jump has to persist.
    must_stand: Duration,
    doubts_first: bool,
    last: Option<(Timestamp, Instant)>,
    /// The look that began the doubt.
    doubted: Option<Instant>,
}

impl TrustedClock {
    /// Believes its first look.
    pub(crate) fn new(tolerance: Duration, must_stand: Duration) -> Self {
        Self { tolerance, must_stand, doubts_first: false, last: None, doubted: None }
    }

    /// Believes its first look once it has stood, too.
    pub(crate) fn doubting(tolerance: Duration, must_stand: Duration) -> Self {
        Self { doubts_first: true, ..Self::new(tolerance, must_stand) }
    }

    /// Notes what the clock shows at a moment. True if that is believed.
    pub(crate) fn look(&mut self, time: Timestamp, now: Instant) -> bool {
        let expected = self.last.map(|(time, at)| time.plus(now.saturating_duration_since(at)));
        let is_ahead = expected.map_or(self.doubts_first, |expected| time.since(expected) > self.tolerance);
        let is_back = expected.is_some_and(|expected| expected.since(time) > self.tolerance);
        let has_stood = self.doubted.is_some_and(|since| now.saturating_duration_since(since) >= self.must_stand);
        if is_ahead {
            self.doubted = Some(now);
        } else if is_back || has_stood {
            self.doubted = None;
        }
        self.last = Some((time, now));
        self.doubted.is_none()
    }

    /// The last look, and whether it is believed.
    pub(crate) fn last(&self) -> Option<(Timestamp, Instant, bool)> {
        self.last.map(|(time, at)| (time, at, self.doubted.is_none()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);

    /// Looks at the clock after so many minutes, when it shows so many.
    fn looks(mut clock: TrustedClock, looks: &[(u32, u32)]) -> Vec<bool> {
        let (start, time) = (Instant::now(), Timestamp::from_micros(0));
        looks.iter().map(|(after, shown)| clock.look(time.plus(MINUTE * *shown), start + MINUTE * *after)).collect()
    }

    #[test]
    fn a_time_that_runs_ahead_is_believed_once_it_has_stood() {
        let clock = || TrustedClock::new(MINUTE, 10 * MINUTE);
        assert_eq!(looks(clock(), &[(0, 0), (5, 6), (10, 11)]), [true; 3], "within what is tolerated");
        let jumped = [(0, 0), (5, 105), (10, 110), (14, 114), (15, 115), (20, 120)];
        assert_eq!(looks(clock(), &jumped), [true, false, false, false, true, true]);
        assert_eq!(looks(clock(), &[(0, 0), (5, 105), (6, 6), (20, 20)]), [true, false, true, true], "it went back");
        assert_eq!(
            looks(clock(), &[(0, 0), (5, 105), (10, 210), (15, 215), (20, 220)]),
            [true, false, false, false, true]
        );
        assert_eq!(looks(clock(), &[(0, 100), (5, 0), (10, 5)]), [true; 3], "what is behind makes nothing old");
    }

    #[test]
    fn a_first_look_is_believed_unless_it_is_to_be_doubted() {
        assert_eq!(looks(TrustedClock::new(MINUTE, 10 * MINUTE), &[(0, 100)]), [true]);
        let doubting = TrustedClock::doubting(MINUTE, 10 * MINUTE);
        assert_eq!(looks(doubting, &[(0, 100), (9, 109), (10, 110)]), [false, false, true]);
    }
}
