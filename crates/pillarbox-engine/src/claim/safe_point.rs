use std::time::Duration;

use pillarbox_core::error::StoreError;
use pillarbox_core::store::{Proof, Store, Writers};
use tokio::time::Instant;

// By this name, since the model of the safe point compiles this file once more.
use crate::planted_bug;

/// The shortest time between two questions to the store.
const ASK_INTERVAL: Duration = Duration::from_millis(200);
/// The longest time for which a transaction is taken to be open, where the database does not tell which may still commit.
const MAX_TRANSACTION_AGE: Duration = Duration::from_secs(60);

/// The `seq` up to which the table is complete: no transaction that is still open can commit a row at or below it.
///
/// Rows appear out of order, as [`Proof`] explains. Where the order of a key counts, reading may go on above a row only when none can
/// appear below it any more: another event of its key may have been written after it, and committed, above.
#[derive(Debug, Default, Clone, PartialEq, Eq, Hash)]
pub(crate) struct SafePoint {
    safe_seq: i64,
    next: Option<Proof>,
    /// The highest `seq` at a moment when the open transactions were not known, and that moment. It becomes the safe point when
    /// [`MAX_TRANSACTION_AGE`] has passed.
    unproven: Option<(i64, Instant)>,
    asked: Option<Instant>,
    /// True if delivered rows are deleted.
    deletes_done: bool,
}

impl SafePoint {
    /// `deletes_done` says that delivered rows are deleted: then the highest row says nothing of the numbers.
    pub(crate) fn new(deletes_done: bool) -> Self {
        Self { deletes_done, ..Self::default() }
    }

    /// Forgets all that is known of the table.
    pub(crate) fn forget(&mut self) {
        *self = Self::new(self.deletes_done);
    }

    /// The `seq` up to which the table is complete.
    pub(crate) fn safe_seq(&self) -> i64 {
        self.safe_seq
    }

    /// Asks the store, unless it was asked just now.
    pub(crate) async fn advance(&mut self, store: &dyn Store) -> Result<(), StoreError> {
        if self.asked.is_some_and(|asked| Instant::now() < asked + ASK_INTERVAL) {
            return Ok(());
        }
        let writers = store.writers().await?;
        // The time of the answer: a transaction may begin while it is on its way, and has a minute from then on.
        let now = Instant::now();
        self.asked = Some(now);
        self.learn(writers, now);
        Ok(())
    }

    fn learn(&mut self, writers: Writers, now: Instant) {
        let highest = writers.highest;
        let known = self.safe_seq.max(self.unproven.map_or(0, |(seq, _)| seq));
        if 0 < highest && highest < known && !self.deletes_done {
            // Numbers may have begun anew, as after a TRUNCATE: then nothing is known of them. Or somebody deleted the newest rows, and the same is
            // proven once more. In an empty table there is nothing to miss.
            let asked = self.asked;
            self.forget();
            self.asked = asked;
        }
        if writers.open.is_none() {
            match self.unproven {
                Some((seq, since)) if now >= since + MAX_TRANSACTION_AGE => {
                    self.safe_seq = self.safe_seq.max(seq.min(highest));
                    self.unproven = Some((highest, now));
                }
                Some(_) => {}
                None => self.unproven = Some((highest, now)),
            }
            return;
        }
        // A proof that began above it may be of the numbers before.
        let safe_seq = Proof::advance(&mut self.next, writers).filter(|seq| *seq <= highest);
        let safe_seq =
            if planted_bug::is_active("safe_point_ignores_open_transactions") { Some(highest) } else { safe_seq };
        self.safe_seq = self.safe_seq.max(safe_seq.unwrap_or_default());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_numbers_that_begin_anew_nothing_is_known() {
        let (mut safe_point, now) = (SafePoint::default(), Instant::now());
        let writers = |highest, open: &[&str]| {
            let open = Some(open.iter().map(ToString::to_string).collect());
            Writers { highest, open, prepared: Vec::new() }
        };
        for (highest, open, safe_seq) in [
            (90, &["a"][..], 0),
            (5, &["b"], 0),
            (100, &[], 100),
            (120, &["a"], 100),
            // Nobody has written yet.
            (0, &["a"], 100),
            (5, &["b"], 0),
            (8, &["b"], 0),
            (9, &[], 9),
        ] {
            safe_point.learn(writers(highest, open), now);
            assert_eq!(safe_point.safe_seq(), safe_seq, "{highest}, while {open:?} are open");
        }
        let unknown = |highest| Writers { highest, open: None, prepared: Vec::new() };
        for (seconds, highest, safe_seq) in [(0, 10, 9), (50, 5, 0), (60, 7, 0), (109, 12, 0), (110, 20, 5)] {
            safe_point.learn(unknown(highest), now + Duration::from_secs(seconds));
            assert_eq!(safe_point.safe_seq(), safe_seq, "after {seconds} s");
        }
    }

    #[test]
    fn highest_seq_may_fall_where_delivered_rows_are_deleted() {
        for (deletes_done, safe_seq) in [(false, 0), (true, 100)] {
            let (mut safe_point, now) = (SafePoint::new(deletes_done), Instant::now());
            let writers = |highest| Writers { highest, open: None, prepared: Vec::new() };
            safe_point.learn(writers(100), now);
            safe_point.learn(writers(120), now + MAX_TRANSACTION_AGE);
            assert_eq!(safe_point.safe_seq(), 100);
            // All that was delivered is gone, and a DEAD row is left.
            safe_point.learn(writers(5), now + MAX_TRANSACTION_AGE + ASK_INTERVAL);
            assert_eq!(safe_point.safe_seq(), safe_seq);
        }
    }

    #[test]
    fn safe_point_waits_a_minute_where_open_transactions_are_unknown() {
        let (mut safe_point, now) = (SafePoint::default(), Instant::now());
        let unknown = |highest| Writers { highest, open: None, prepared: Vec::new() };
        for (seconds, highest, safe_seq) in [(0, 10, 0), (59, 20, 0), (60, 30, 10), (119, 40, 10), (120, 50, 30)] {
            safe_point.learn(unknown(highest), now + Duration::from_secs(seconds));
            assert_eq!(safe_point.safe_seq(), safe_seq, "after {seconds} s");
        }
    }
}
