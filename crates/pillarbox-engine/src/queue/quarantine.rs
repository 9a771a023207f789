use std::collections::VecDeque;
use std::time::Duration;

use tokio::time::Instant;

/// The time for which a row is left alone whose verdict the database refused.
const QUARANTINE: Duration = Duration::from_secs(60);
/// The number of rows that may be in quarantine at once.
const MOST: usize = 1000;

/// Rows whose verdict the database refuses, for reasons of its own: a trigger, a constraint, an encoding.
///
/// They stay held for a while, since released at once they would be handled again at full speed.
#[derive(Debug, Default)]
pub(super) struct Quarantine {
    /// Each with its end, the earliest first.
    rows: VecDeque<(Instant, i64)>,
}

impl Quarantine {
    pub(super) fn is_full(&self) -> bool {
        self.rows.len() >= MOST
    }

    /// Takes a row in; false if there is no room.
    #[must_use]
    pub(super) fn add(&mut self, seq: i64) -> bool {
        if self.is_full() {
            return false;
        }
        self.rows.push_back((Instant::now() + QUARANTINE, seq));
        true
    }

    pub(super) fn holds(&self, seq: i64) -> bool {
        self.rows.iter().any(|(_, held)| *held == seq)
    }

    /// The end of the next quarantine.
    pub(super) fn next(&self) -> Option<Instant> {
        self.rows.front().map(|(end, _)| *end)
    }

    /// Takes out the rows whose quarantine has ended.
    pub(super) fn take_ended(&mut self, now: Instant) -> Vec<i64> {
        let ended = self.rows.partition_point(|(end, _)| *end <= now);
        self.rows.drain(..ended).map(|(_, seq)| seq).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_row_is_in_quarantine_for_a_minute() {
        let mut quarantine = Quarantine::default();
        let start = Instant::now();
        assert!(quarantine.next().is_none() && quarantine.add(1));
        tokio::time::advance(QUARANTINE / 2).await;
        assert!(quarantine.add(2));
        assert_eq!(quarantine.next(), Some(start + QUARANTINE));
        assert_eq!(quarantine.take_ended(Instant::now()), [0; 0]);
        assert_eq!(quarantine.take_ended(start + QUARANTINE), [1]);
        assert_eq!(quarantine.take_ended(start + QUARANTINE * 2), [2]);
        (0..1000).for_each(|seq| assert!(quarantine.add(seq)));
        assert!(quarantine.is_full() && !quarantine.add(1001));
    }
}
