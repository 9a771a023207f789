use std::time::Duration;

use pillarbox_core::planted_bug;
use tokio::time::Instant;

use super::SLOW_FETCH;

/// The interval after which a sweep begins at the very bottom of the table, unless that takes more than [its share](BOTTOM_SHARE) of the
/// time; also the time after which a sweep ends that has left nothing for lack of room.
const BOTTOM_INTERVAL: Duration = Duration::from_secs(2);
/// Reading from the bottom takes at most this share of the time, however many rows there have to be passed over.
const BOTTOM_SHARE: u32 = 20;

/// The position at which the next fetch begins.
///
/// A sweep reads forward from its start while batches come back full, and ends with the first that does not.
/// The start saves stepping over the index entries of settled rows that the database cannot remove yet, because an idle
/// transaction holds them back. It is only ever a guess: a transaction may commit late, below it. So rows written here
/// that are still sought pull it down, and every two seconds a sweep begins at the bottom.
///
/// A fetch that takes long has passed over much that is pending and cannot be read: events whose type is held back, or that
/// other nodes hold. Then the bottom is visited only as often as its share of the time allows, and in between a poll for what
/// may be anywhere begins at the [safe point](super::SafePoint), which is no guess.
#[derive(Debug)]
pub(crate) struct Sweep {
    /// The next sweep begins above it: at the last poll, no row without a due time was pending and free at or below this `seq`.
    start: i64,
    /// The lower of the safe point and the position read, at the last slow fetch.
    safe_seq: i64,
    /// The time at which a sweep last began at the bottom, and the length of its first fetch.
    bottom: Option<(Instant, Duration)>,
    /// The sweep under way.
    current: Option<Current>,
    in_order: bool,
}

#[derive(Debug, Clone, Copy)]
struct Current {
    began: Instant,
    at_bottom: bool,
    /// The last `seq` read.
    cursor: Option<i64>,
    /// The lowest `seq` that was pending, in memory or read by the first fetch.
    floor: Option<i64>,
    /// The safe point before the first fetch.
    safe_seq: i64,
    /// True if so much was passed over that it is not to be done again soon.
    passes: bool,
}

/// The result of a fetch.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FetchOutcome {
    /// The lowest and the highest `seq` of the rows without a due time.
    pub(crate) read: Option<(i64, i64)>,
    /// The lowest row that it was asked to leave out, since it is in memory.
    pub(crate) excluded: Option<i64>,
    /// As many rows as it was to return: there is more.
    pub(crate) full: bool,
    /// The safe point when the fetch began.
    pub(crate) safe_seq: i64,
    /// The time that it took.
    pub(crate) took: Duration,
    /// Some of the rows were left in the table, for lack of room for their class; they are sought when there is room.
    pub(crate) left: bool,
}

impl Sweep {
    pub(crate) fn new() -> Self {
        Self { start: 0, safe_seq: 0, bottom: None, current: None, in_order: false }
    }

    /// A sweep whose every fetch begins at the bottom. A row that commits late, below the cursor, may have been committed
    /// before a row above it was written; reading on from the cursor would deliver the two in the wrong order.
    pub(crate) fn in_order() -> Self {
        Self { in_order: true, ..Self::new() }
    }

    /// The cursor of the sweep under way, if it has read something: the next fetch goes on behind it.
    pub(crate) fn cursor(&self) -> Option<i64> {
        if self.in_order {
            return None;
        }
        self.current.and_then(|current| current.cursor)
    }

    /// True if a sweep is under way, so that the next fetch needs no reason.
    pub(crate) fn is_under_way(&self) -> bool {
        self.current.is_some()
    }

    /// Begins a sweep: at the bottom if something may be `anywhere`, as for a routine poll; below `sought` if a row is sought there.
    pub(crate) fn begin(&mut self, sought: Option<i64>, anywhere: bool, now: Instant) {
        let at_bottom = self.bottom.is_none_or(|(at, took)| {
            let is_cheap = took <= SLOW_FETCH || now >= at + took * BOTTOM_SHARE;
            is_cheap && (anywhere || now >= at + BOTTOM_INTERVAL) && !planted_bug::is_active("cursor_kept_for_ever")
        });
        if at_bottom {
            self.start = 0;
            self.bottom = Some((now, Duration::ZERO));
        } else if anywhere {
            self.start = self.start.min(self.safe_seq);
        }
        if let Some(seq) = sought {
            self.start = self.start.min(seq.saturating_sub(1));
        }
        self.current = Some(Current { began: now, at_bottom, cursor: None, floor: None, safe_seq: 0, passes: false });
    }

    /// Begins a sweep at the bottom, however long that takes: what was left out before may be anywhere.
    pub(crate) fn start_over(&mut self, now: Instant) {
        self.bottom = None;
        self.begin(None, true, now);
    }

    /// From now on the bottom costs no more to visit than it does otherwise: what was passed over there has been read.
    pub(crate) fn note_nothing_passed(&mut self) {
        self.bottom = None;
    }

    /// The lower bound of the next fetch, exclusive.
    pub(crate) fn above(&self) -> i64 {
        if self.in_order {
            return 0;
        }
        self.cursor().unwrap_or(self.start)
    }

    /// A fetch came back.
    pub(crate) fn advance(&mut self, found: FetchOutcome, now: Instant) {
        let Some(mut current) = self.current.take() else { return };
        if current.cursor.is_none() {
            current.floor = found.read.map(|(lowest, _)| lowest).into_iter().chain(found.excluded).min();
            (current.safe_seq, current.passes) = (found.safe_seq, found.took > SLOW_FETCH);
            if let (true, Some((_, took))) = (current.at_bottom, &mut self.bottom) {
                *took = found.took;
            }
        }
        if found.left {
            current.passes = true;
            // All of it was passed over to come here.
            if let (true, Some((_, took))) = (current.at_bottom, &mut self.bottom) {
                *took = (now - current.began).max(2 * SLOW_FETCH);
            }
        }
        current.cursor = found.read.map(|(_, highest)| highest).or(current.cursor);
        if found.full && (found.left || now < current.began + BOTTOM_INTERVAL) {
            self.current = Some(current);
            return;
        }
        if let Some(floor) = current.floor {
            self.start = floor.saturating_sub(1);
        }
        if current.passes {
            // Rows in memory are sought when they are forgotten.
            let seen = if found.full { current.cursor.unwrap_or_default() } else { i64::MAX };
            self.safe_seq = seen.min(current.safe_seq);
            self.start = self.start.max(self.safe_seq);
        }
        if found.full {
            self.begin(None, false, now);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const QUICK: FetchOutcome =
        FetchOutcome { read: None, excluded: None, full: false, safe_seq: 0, took: Duration::ZERO, left: false };
    const FULL: FetchOutcome = FetchOutcome { full: true, ..QUICK };

    fn seconds(n: u64) -> Duration {
        Duration::from_secs(n)
    }

    fn read(lowest: i64, highest: i64) -> FetchOutcome {
        FetchOutcome { read: Some((lowest, highest)), ..QUICK }
    }

    #[test]
    fn a_sweep_goes_on_while_batches_are_full() {
        let now = Instant::now();
        let mut sweep = Sweep::new();
        sweep.begin(None, false, now);
        assert_eq!(sweep.above(), 0);
        sweep.advance(FetchOutcome { read: Some((11, 20)), ..FULL }, now);
        assert_eq!((sweep.above(), sweep.is_under_way()), (20, true));
        sweep.advance(read(21, 25), now);
        assert!(!sweep.is_under_way());
        sweep.begin(None, false, now);
        assert_eq!(sweep.above(), 10, "below the lowest row that was pending");
    }

    #[test]
    fn rows_in_memory_hold_the_start_down() {
        let now = Instant::now();
        let mut sweep = Sweep::new();
        sweep.begin(None, false, now);
        sweep.advance(FetchOutcome { excluded: Some(5), ..read(11, 20) }, now);
        sweep.begin(None, false, now);
        assert_eq!(sweep.above(), 4);
    }

    #[test]
    fn a_sought_row_pulls_the_start_down() {
        let now = Instant::now();
        let mut sweep = Sweep::new();
        sweep.begin(None, false, now);
        sweep.advance(read(100, 100), now);
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
            sweep.advance(read(100, 100), now + seconds(later));
        }
    }

    #[test]
    fn an_endless_backlog_does_not_keep_late_commits_waiting() {
        let now = Instant::now();
        let mut sweep = Sweep::new();
        sweep.begin(None, false, now);
        sweep.advance(FetchOutcome { read: Some((11, 20)), ..FULL }, now);
        sweep.advance(FetchOutcome { read: Some((21, 30)), ..FULL }, now + seconds(2));
        assert_eq!((sweep.above(), sweep.is_under_way()), (0, true), "a new sweep began at the bottom");
    }

    #[test]
    fn rows_that_take_long_to_pass_over_are_not_passed_over_at_every_poll() {
        let now = Instant::now();
        let mut sweep = Sweep::new();
        let slow = FetchOutcome { safe_seq: 900, took: Duration::from_millis(150), ..QUICK };
        sweep.begin(None, true, now);
        sweep.advance(slow, now);
        for (later, sought, above) in [(0, None, 900), (1, None, 900), (2, Some(800), 799), (3, None, 0)] {
            let now = now + seconds(later);
            sweep.begin(sought, true, now);
            assert_eq!(sweep.above(), above, "after {later} s");
            sweep.advance(if above == 0 { slow } else { FetchOutcome { safe_seq: 900, ..QUICK } }, now);
        }
        sweep.start_over(now + seconds(3));
        assert_eq!(sweep.above(), 0, "when a type is not held back any more");
    }

    #[test]
    fn rows_of_unknown_seq_are_above_the_safe_point() {
        let now = Instant::now();
        let mut sweep = Sweep::new();
        sweep.begin(None, true, now);
        sweep.advance(FetchOutcome { took: seconds(1), safe_seq: 15, ..read(100, 120) }, now);
        for (sought, anywhere, above) in
            [(None, false, 99), (Some(50), false, 49), (None, false, 49), (Some(9), true, 8), (None, true, 8)]
        {
            sweep.begin(sought, anywhere, now);
            assert_eq!(sweep.above(), above);
            sweep.advance(QUICK, now);
        }
    }

    #[test]
    fn nothing_is_taken_for_passed_over_that_may_still_be_committed_or_was_not_reached() {
        let now = Instant::now();
        let slow = FetchOutcome { took: seconds(1), safe_seq: 15, ..QUICK };
        for (found, above) in [
            (slow, 15),
            (FetchOutcome { read: Some((11, 20)), ..slow }, 15),
            (FetchOutcome { excluded: Some(3), ..slow }, 15),
            (FetchOutcome { read: Some((11, 12)), full: true, ..slow }, 12),
        ] {
            let mut sweep = Sweep::new();
            sweep.begin(None, true, now);
            sweep.advance(found, now + seconds(2));
            sweep.begin(None, false, now + seconds(2));
            assert_eq!(sweep.above(), above, "{found:?}");
        }
    }
}
