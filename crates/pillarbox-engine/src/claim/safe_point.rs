use std::time::Duration;

use pillarbox_core::error::StoreError;
use pillarbox_core::store::{Store, Writers};
use tokio::time::Instant;

// By these names, since the model of the safe point compiles this file with sets of its own.
use crate::hash::guarded::HashSet;
use crate::plants;

/// The shortest time between two questions to the store.
const ASK_EVERY: Duration = Duration::from_millis(200);
/// The longest time for which a transaction is taken to be open, where the database does not tell which may still commit.
const LONGEST: Duration = Duration::from_secs(60);

/// Knows up to which `seq` the table is complete: no transaction that is still open can commit a row at or below it.
///
/// A database gives out `seq` when a row is inserted, and shows the row when its transaction commits. So a row may appear below
/// rows that were read long ago. Where the order of a key counts, reading may go on above a row only when none can appear
/// below it any more: another event of its key may have been written after it, and committed, above.
///
/// The proof takes two looks: who has the table open for writing after `seq` was given out; and later, that none of those
/// is still there. A transaction that is prepared in between may go by another name afterwards, so where one of them has gone, those
/// that were prepared meanwhile are waited for as well.
#[derive(Debug, Default)]
pub(crate) struct SafePoint {
    complete: i64,
    next: Option<Proof>,
    /// The same without knowing the transactions, and since when.
    aged: Option<(i64, Instant)>,
    asked: Option<Instant>,
}

impl SafePoint {
    /// The `seq` up to which the table is complete.
    pub(crate) fn complete(&self) -> i64 {
        self.complete
    }

    /// Asks the store, unless it was asked just now.
    pub(crate) async fn advance(&mut self, store: &dyn Store) -> Result<(), StoreError> {
        if self.asked.is_some_and(|asked| Instant::now() < asked + ASK_EVERY) {
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
        let Some(open) = writers.open else {
            match self.aged {
                Some((seq, since)) if now >= since + LONGEST => {
                    self.complete = self.complete.max(seq);
                    self.aged = Some((writers.highest, now));
                }
                Some(_) => {}
                None => self.aged = Some((writers.highest, now)),
            }
            return;
        };
        let open: HashSet<String> = open.into_iter().collect();
        if open.is_empty() || plants::is("safe_point_ignores_open_transactions") {
            self.complete = self.complete.max(writers.highest);
            self.next = None;
            return;
        }
        let prepared: HashSet<String> = writers.prepared.into_iter().collect();
        if let Some(proof) = &mut self.next {
            if proof.is_pending(&open, &prepared) {
                return;
            }
            self.complete = self.complete.max(proof.seq);
        }
        self.next = Some(Proof { seq: writers.highest, open, later: HashSet::default(), known: prepared });
    }
}

/// The proof, still to be completed, that the table is complete up to a `seq`.
#[derive(Debug)]
struct Proof {
    seq: i64,
    /// The transactions that were open when `seq` was the highest, and still are.
    open: HashSet<String>,
    /// Transactions that were prepared since then, one of which may be one of those that are gone.
    later: HashSet<String>,
    /// Prepared transactions that have been waited for or counted as such.
    known: HashSet<String>,
}

impl Proof {
    /// Takes in which transactions are open now, prepared ones included; true if one of those waited for may be among them.
    fn is_pending(&mut self, open: &HashSet<String>, prepared: &HashSet<String>) -> bool {
        // Only a name of the beginning can become another, so that this ends however many are prepared.
        let renamed = self.open.iter().any(|name| !open.contains(name) && !self.known.contains(name));
        self.open.retain(|name| open.contains(name));
        if renamed {
            self.later.extend(prepared.difference(&self.known).cloned());
            self.known.extend(prepared.iter().cloned());
        }
        self.later.retain(|name| open.contains(name));
        !(self.open.is_empty() && self.later.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn writers(highest: i64, open: &[&str]) -> Writers {
        let prepared = open.iter().filter(|name| name.starts_with("prepared")).map(ToString::to_string).collect();
        Writers { highest, open: Some(open.iter().map(ToString::to_string).collect()), prepared }
    }

    #[test]
    fn what_was_written_is_complete_when_all_who_wrote_then_have_ended() {
        let (mut safe_point, now) = (SafePoint::default(), Instant::now());
        let table = [
            (writers(10, &["a", "b"]), 0),
            (writers(20, &["b", "c"]), 0),
            (writers(30, &["c"]), 10),
            (writers(40, &["c", "d"]), 10),
            (writers(50, &["d"]), 30),
            (writers(60, &[]), 60),
        ];
        for (step, (writers, complete)) in table.into_iter().enumerate() {
            safe_point.learn(writers, now);
            assert_eq!(safe_point.complete(), complete, "step {step}");
        }
    }

    #[test]
    fn a_writer_that_was_prepared_under_another_name_is_waited_for() {
        let (mut safe_point, now) = (SafePoint::default(), Instant::now());
        let table = [
            (writers(10, &["a", "b", "prepared-1"]), 0),
            // Is it `a`, which is gone? `prepared-1` was known.
            (writers(20, &["b", "prepared-1", "prepared-2", "c"]), 0),
            (writers(30, &["prepared-2", "prepared-3"]), 0),
            // `b` may have become the third. A fourth cannot be one of those of the beginning.
            (writers(40, &["prepared-3", "prepared-4"]), 0),
            (writers(50, &["prepared-4", "prepared-5"]), 10),
            (writers(60, &["prepared-5"]), 10),
            (writers(70, &["prepared-6"]), 50),
            (writers(80, &[]), 80),
        ];
        for (step, (writers, complete)) in table.into_iter().enumerate() {
            safe_point.learn(writers, now);
            assert_eq!(safe_point.complete(), complete, "step {step}");
        }
    }

    #[test]
    fn where_nobody_tells_a_minute_is_waited() {
        let (mut safe_point, now) = (SafePoint::default(), Instant::now());
        let unknown = |highest| Writers { highest, open: None, prepared: Vec::new() };
        for (seconds, highest, complete) in [(0, 10, 0), (59, 20, 0), (60, 30, 10), (119, 40, 10), (120, 50, 30)] {
            safe_point.learn(unknown(highest), now + Duration::from_secs(seconds));
            assert_eq!(safe_point.complete(), complete, "after {seconds} s");
        }
    }
}
