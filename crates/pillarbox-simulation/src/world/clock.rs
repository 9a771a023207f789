use std::sync::atomic::{AtomicI64, Ordering::Relaxed};
use std::time::Duration;

use pillarbox_core::clock::{Clock, Timestamp};
use tokio::time::Instant;

/// The first moment of every world, in microseconds since 1970.
const BEGINNING: i64 = 1_700_000_000_000_000;

/// A clock of day that runs with the virtual clock, and jumps when it is told to.
#[derive(Debug)]
pub(crate) struct JumpingClock {
    start: Instant,
    ahead: AtomicI64,
}

impl JumpingClock {
    /// A clock that is ahead of others by so many microseconds.
    #[must_use]
    pub(crate) fn ahead(by: i64) -> Self {
        Self { start: Instant::now(), ahead: AtomicI64::new(by) }
    }

    /// Jumps by so many microseconds.
    pub(crate) fn jump(&self, by: i64) {
        self.ahead.fetch_add(by, Relaxed);
    }
}

impl Clock for JumpingClock {
    fn now(&self) -> Timestamp {
        let elapsed: Duration = self.start.elapsed();
        let elapsed = i64::try_from(elapsed.as_micros()).unwrap_or(i64::MAX);
        Timestamp::from_micros(BEGINNING + elapsed + self.ahead.load(Relaxed))
    }
}
