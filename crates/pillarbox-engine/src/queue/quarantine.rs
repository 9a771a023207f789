use std::collections::VecDeque;
use std::time::Duration;

use tokio::time::Instant;

/// The time for which a row is left alone whose verdict the database refused.
const QUARANTINE_TIME: Duration = Duration::from_secs(60);
/// The number of rows that may be in quarantine at once: half of what a fetch is told to leave out.
const MAX_ROWS: usize = 5_000;

/// Rows whose verdict the database refuses, for reasons of its own: a trigger, a constraint, an encoding.
///
/// They stay in memory for a while, since released at once they would be handled again at full speed.
#[derive(Debug, Default)]
pub(super) struct Quarantine {
    /// Each with its end, the earliest first.
    rows: VecDeque<(Instant, i64)>,
}

impl Quarantine {
    /// Takes a row in; false if there is no room.
    #[must_use]
    pub(super) fn add(&mut self, seq: i64) -> bool {
        let has_room = self.rows.len() < MAX_ROWS;
        if has_room {
            self.rows.push_back((Instant::now() + QUARANTINE_TIME, seq));
        }
        has_room
    }

    /// Takes out the row whose quarantine ends first if there is no room for another one.
    pub(super) fn make_room(&mut self) -> Option<i64> {
        if self.rows.len() < MAX_ROWS {
            return None;
        }
        self.rows.pop_front().map(|(_, seq)| seq)
    }

    pub(super) fn holds(&self, seq: i64) -> bool {
        self.rows.iter().any(|(_, row)| *row == seq)
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
        tokio::time::advance(QUARANTINE_TIME / 2).await;
        assert!(quarantine.add(2));
        assert_eq!(quarantine.next(), Some(start + QUARANTINE_TIME));
        assert_eq!(quarantine.take_ended(Instant::now()), [0; 0]);
        assert_eq!(quarantine.take_ended(start + QUARANTINE_TIME), [1]);
        assert_eq!(quarantine.take_ended(start + QUARANTINE_TIME * 2), [2]);
    }

    #[tokio::test(start_paused = true)]
    async fn the_oldest_row_makes_room_for_another() {
        let mut quarantine = Quarantine::default();
        for seq in 1..=5_000 {
            assert!(quarantine.make_room().is_none() && quarantine.add(seq));
        }
        assert!(!quarantine.add(5_001) && quarantine.holds(1));
        assert_eq!(quarantine.make_room(), Some(1));
        assert!(quarantine.add(5_001) && quarantine.holds(5_001) && !quarantine.holds(1));
        tokio::time::advance(QUARANTINE_TIME).await;
        assert_eq!(quarantine.take_ended(Instant::now()).len(), 5_000);
    }
}
