use std::time::Duration;

use tokio::time::Instant;

/// How often, at the least, a sweep begins at the very bottom of the table; also how long a sweep may last.
const BOTTOM_EVERY: Duration = Duration::from_secs(2);

/// Where the next fetch begins.
///
/// A sweep reads forward from the low-water mark while batches come back full, and ends with the first that does not.
/// The mark saves stepping over the index entries of settled rows that the database cannot remove yet, because an idle
/// transaction holds them back. It is only ever a guess: a transaction may commit late, below it. So rows written here
/// that are still sought pull it down, and every two seconds a sweep begins at the bottom.
#[derive(Debug)]
pub(crate) struct Sweep {
    /// When it was last looked at, nothing without a due time was pending and free at or below this `seq`.
    low_water: i64,
    bottom_at: Option<Instant>,
    /// The sweep under way.
    current: Option<Current>,
    in_order: bool,
}

#[derive(Debug, Clone, Copy)]
struct Current {
    began: Instant,
    /// The last `seq` read.
    cursor: Option<i64>,
    /// The lowest `seq` that was pending, in memory or read by the first fetch.
    floor: Option<i64>,
}

impl Sweep {
    pub(crate) fn new() -> Self {
        Self { low_water: 0, bottom_at: None, current: None, in_order: false }
    }

    /// A sweep whose every fetch begins at the bottom. A row that commits late, below the cursor, may have been committed
    /// before a row above it was written; reading on from the cursor would deliver the two in the wrong order.
    pub(crate) fn in_order() -> Self {
        Self { in_order: true, ..Self::new() }
    }

    /// Whether a sweep is under way and has read something, so that the next fetch goes on behind its cursor.
    pub(crate) fn cursor(&self) -> Option<i64> {
        if self.in_order {
            return None;
        }
        self.current.and_then(|current| current.cursor)
    }

    /// Whether the next fetch needs no reason.
    pub(crate) fn is_under_way(&self) -> bool {
        self.current.is_some()
    }

    /// Begins a sweep: at the bottom for a routine look, below `sought` if a row is sought there.
    pub(crate) fn begin(&mut self, sought: Option<i64>, routine: bool, now: Instant) {
        if routine || self.bottom_at.is_none_or(|at| now >= at + BOTTOM_EVERY) {
            self.low_water = 0;
            self.bottom_at = Some(now);
        }
        if let Some(seq) = sought {
            self.low_water = self.low_water.min(seq.saturating_sub(1));
        }
        self.current = Some(Current { began: now, cursor: None, floor: None });
    }

    /// The lower bound of the next fetch, exclusive.
    pub(crate) fn above(&self) -> i64 {
        if self.in_order {
            return 0;
        }
        self.cursor().unwrap_or(self.low_water)
    }

    /// A fetch came back. `read` holds the lowest and highest `seq` among its rows without a due time, `held` the lowest
    /// row it was asked to leave out. A full batch means that there is more.
    pub(crate) fn advance(&mut self, read: Option<(i64, i64)>, held: Option<i64>, full: bool, now: Instant) {
        let Some(mut current) = self.current.take() else { return };
        if current.cursor.is_none() {
            current.floor = read.map(|(lowest, _)| lowest).into_iter().chain(held).min();
        }
        current.cursor = read.map(|(_, highest)| highest).or(current.cursor);
        if full && now < current.began + BOTTOM_EVERY {
            self.current = Some(current);
            return;
        }
        if let Some(floor) = current.floor {
            self.low_water = floor.saturating_sub(1);
        }
        if full {
            self.begin(None, false, now);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(n: u64) -> Duration {
        Duration::from_secs(n)
    }

    #[test]
    fn a_sweep_goes_on_while_batches_are_full() {
        let now = Instant::now();
        let mut sweep = Sweep::new();
        sweep.begin(None, false, now);
        assert_eq!(sweep.above(), 0);
        sweep.advance(Some((11, 20)), None, true, now);
        assert_eq!((sweep.above(), sweep.is_under_way()), (20, true));
        sweep.advance(Some((21, 25)), None, false, now);
        assert!(!sweep.is_under_way());
        sweep.begin(None, false, now);
        assert_eq!(sweep.above(), 10, "below the lowest row that was pending");
    }

    #[test]
    fn rows_in_memory_hold_the_mark_down() {
        let now = Instant::now();
        let mut sweep = Sweep::new();
        sweep.begin(None, false, now);
        sweep.advance(Some((11, 20)), Some(5), false, now);
        sweep.begin(None, false, now);
        assert_eq!(sweep.above(), 4);
    }

    #[test]
    fn a_sought_row_pulls_the_mark_down() {
        let now = Instant::now();
        let mut sweep = Sweep::new();
        sweep.begin(None, false, now);
        sweep.advance(Some((100, 100)), None, false, now);
        sweep.begin(Some(50), false, now);
        assert_eq!(sweep.above(), 49);
    }

    #[test]
    fn the_bottom_is_visited_by_every_routine_look_and_every_two_seconds() {
        let now = Instant::now();
        let mut sweep = Sweep::new();
        for (later, routine, above) in [(0, false, 0), (1, false, 99), (1, true, 0), (2, false, 99), (3, false, 0)] {
            sweep.begin(None, routine, now + seconds(later));
            assert_eq!(sweep.above(), above, "at {later} s");
            sweep.advance(Some((100, 100)), None, false, now + seconds(later));
        }
    }

    #[test]
    fn an_endless_backlog_does_not_keep_late_commits_waiting() {
        let now = Instant::now();
        let mut sweep = Sweep::new();
        sweep.begin(None, false, now);
        sweep.advance(Some((11, 20)), None, true, now);
        sweep.advance(Some((21, 30)), None, true, now + seconds(2));
        assert_eq!((sweep.above(), sweep.is_under_way()), (0, true), "a new sweep began at the bottom");
    }
}
