use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use pillarbox_core::clock::{Clock, Timestamp};

/// A clock that stands still until a test moves it. Clones show the same time.
///
/// ```
/// use std::time::Duration;
/// use pillarbox_core::clock::Clock;
/// use pillarbox_testkit::FakeClock;
///
/// let clock = FakeClock::new();
/// let before = clock.now();
/// clock.advance(Duration::from_secs(3600));
/// assert_eq!(clock.now().since(before), Duration::from_secs(3600));
/// ```
#[derive(Debug, Clone)]
pub struct FakeClock {
    micros: Arc<AtomicI64>,
}

impl FakeClock {
    /// A clock that shows 2001-09-09 01:46:40 UTC, a billion seconds after 1970.
    #[must_use]
    pub fn new() -> Self {
        Self::at(Timestamp::from_micros(1_000_000_000_000_000))
    }

    /// A clock that shows `time`.
    #[must_use]
    pub fn at(time: Timestamp) -> Self {
        Self { micros: Arc::new(AtomicI64::new(time.as_micros())) }
    }

    /// Moves it forward. What waits for a time in a [`TestOutbox`](crate::TestOutbox) has to be told as well:
    /// [`TestOutbox::advance`](crate::TestOutbox::advance) does both.
    pub fn advance(&self, by: Duration) {
        let micros = i64::try_from(by.as_micros()).unwrap_or(i64::MAX);
        let forward = |now: i64| Some(now.saturating_add(micros));
        // The closure never declines, so there is no error.
        let _moved = self.micros.fetch_update(Ordering::SeqCst, Ordering::SeqCst, forward);
    }
}

impl Default for FakeClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for FakeClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_micros(self.micros.load(Ordering::SeqCst))
    }
}
