use std::collections::VecDeque;
use std::time::Duration;

use tokio::time::Instant;

/// For how long a row is left alone whose verdict the database refused.
const REST: Duration = Duration::from_secs(60);
/// The number of rows that may rest at once.
const MAX_RESTING: usize = 1000;

/// Rows whose verdict the database refuses, for reasons of its own: a trigger, a constraint, an encoding.
///
/// They stay held for a while, since released at once they would be handled again at full speed.
#[derive(Debug, Default)]
pub(crate) struct Quarantine {
    resting: VecDeque<(Instant, i64)>,
}

impl Quarantine {
    pub(super) fn is_full(&self) -> bool {
        self.resting.len() >= MAX_RESTING
    }

    /// Lets a row rest; false if so many do that it cannot.
    #[must_use]
    pub(super) fn add(&mut self, seq: i64) -> bool {
        if self.is_full() {
            return false;
        }
        self.resting.push_back((Instant::now() + REST, seq));
        true
    }

    /// Waits for the next row that has rested long enough; for ever while none rests.
    pub(super) async fn next(&mut self) -> i64 {
        match self.resting.front() {
            Some((until, _)) => tokio::time::sleep_until(*until).await,
            None => std::future::pending().await,
        }
        // Nobody else takes from the queue while it is borrowed here.
        self.resting.pop_front().map_or(i64::MIN, |(_, seq)| seq)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_row_rests_for_a_minute() {
        let mut quarantine = Quarantine::default();
        let start = Instant::now();
        assert!(quarantine.add(1));
        tokio::time::advance(REST / 2).await;
        assert!(quarantine.add(2));
        assert_eq!((quarantine.next().await, start.elapsed()), (1, REST));
        assert_eq!((quarantine.next().await, start.elapsed()), (2, REST + REST / 2));
        assert!(tokio::time::timeout(REST, quarantine.next()).await.is_err());
    }
}
