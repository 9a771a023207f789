use std::collections::HashSet;
use std::time::Duration;

use tokio::time::Instant;

use crate::error::StoreError;
use crate::store::{Store, Writers};

/// How often to ask at the most.
const ASK_EVERY: Duration = Duration::from_millis(200);
/// Where the database does not tell who may still commit: for how long a transaction is taken to be open at the most.
const LONGEST: Duration = Duration::from_secs(60);

/// Knows up to which `seq` the table is complete: no transaction that is still open can commit a row at or below it.
///
/// A database gives out `seq` when a row is inserted, and shows the row when its transaction commits. So a row may appear below
/// rows that were read long ago. Where the order of a key counts, reading may go on above a row only when none can appear
/// below it any more: another event of its key may have been written after it, and committed, above.
///
/// The proof takes two looks: who has the table open for writing after `seq` was given out; and later, that none of those
/// is still there.
#[derive(Debug, Default)]
pub(crate) struct Horizon {
    complete: i64,
    /// Complete once none of these transactions is open any more.
    next: Option<(i64, HashSet<String>)>,
    /// The same without knowing the transactions, and since when.
    aged: Option<(i64, Instant)>,
    asked: Option<Instant>,
}

impl Horizon {
    /// The `seq` up to which the table is complete.
    pub(crate) fn complete(&self) -> i64 {
        self.complete
    }

    /// Asks the store, unless it was asked just now.
    pub(crate) async fn advance(&mut self, store: &dyn Store) -> Result<(), StoreError> {
        let now = Instant::now();
        if self.asked.is_some_and(|asked| now < asked + ASK_EVERY) {
            return Ok(());
        }
        let writers = store.writers().await?;
        self.asked = Some(Instant::now());
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
        if open.is_empty() {
            self.complete = self.complete.max(writers.highest);
            self.next = None;
            return;
        }
        let (seq, waited_for) = self.next.get_or_insert_with(|| (writers.highest, open.clone()));
        if waited_for.is_disjoint(&open) {
            self.complete = self.complete.max(*seq);
            self.next = Some((writers.highest, open));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn writers(highest: i64, open: &[&str]) -> Writers {
        Writers { highest, open: Some(open.iter().map(ToString::to_string).collect()) }
    }

    #[test]
    fn what_was_written_is_complete_when_all_who_wrote_then_have_ended() {
        let (mut horizon, now) = (Horizon::default(), Instant::now());
        let table = [
            (writers(10, &["a", "b"]), 0),
            (writers(20, &["b", "c"]), 0),
            (writers(30, &["c"]), 10),
            (writers(40, &["c", "d"]), 10),
            (writers(50, &["d"]), 30),
            (writers(60, &[]), 60),
        ];
        for (step, (writers, complete)) in table.into_iter().enumerate() {
            horizon.learn(writers, now);
            assert_eq!(horizon.complete(), complete, "step {step}");
        }
    }

    #[test]
    fn where_nobody_tells_a_minute_is_waited() {
        let (mut horizon, now) = (Horizon::default(), Instant::now());
        let unknown = |highest| Writers { highest, open: None };
        for (seconds, highest, complete) in [(0, 10, 0), (59, 20, 0), (60, 30, 10), (119, 40, 10), (120, 50, 30)] {
            horizon.learn(unknown(highest), now + Duration::from_secs(seconds));
            assert_eq!(horizon.complete(), complete, "after {seconds} s");
        }
    }
}
