use std::pin::pin;

use super::probe::Found;
use super::{Finish, Probe, Written};

use crate::lock::Mutex;

/// The receipts of what was written in one transaction, until the end of the transaction is known.
///
/// While any are left when it is dropped, the transaction was rolled back, or a commit was cancelled half-way: its outcome is
/// unknown then, and the cold path is asked to look.
#[derive(Debug, Default)]
pub struct Receipts {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    receipts: Vec<Receipt>,
    committing: bool,
    /// True if anything other than the guard's own statements may have been executed since the first write, and have rolled back some.
    may_be_undone: bool,
}

#[derive(Debug)]
struct Receipt {
    written: Written,
    /// The number of its rows that the commit is asked about.
    probed: usize,
}

impl From<Written> for Receipt {
    fn from(written: Written) -> Self {
        Self { written, probed: 0 }
    }
}

impl Receipts {
    /// The receipts of a guard, none yet, of a transaction that is [only borrowed](Finish::IS_ONLY_BORROWED) or not.
    pub(super) fn of_guard(is_only_borrowed: bool) -> Self {
        Self { state: Mutex::new(State { may_be_undone: !is_only_borrowed, ..State::default() }) }
    }

    /// Adds the receipt of a write by the guard itself.
    pub fn add(&self, written: &Written) {
        written.keep();
        self.state.lock().receipts.push(written.clone().into());
    }

    /// Adds the receipt of a write on what the guard has lent, which may execute anything else afterwards.
    pub(super) fn add_from_within(&self, written: &Written) {
        written.keep();
        let mut state = self.state.lock();
        state.receipts.push(written.clone().into());
        state.may_be_undone = true;
    }

    /// The guard lends the driver's side of the transaction. The loan ends once the guard writes again.
    pub(super) fn lend(&self) {
        let mut state = self.state.lock();
        state.may_be_undone |= !state.receipts.is_empty();
    }

    /// The guard executes something itself. Unless that succeeds, the database or the driver may have rolled back what was written before.
    pub(super) fn executed<T, E>(
        &self,
        call: impl Future<Output = Result<T, E>>,
    ) -> impl Future<Output = Result<T, E>> {
        let before = std::mem::replace(&mut self.state.lock().may_be_undone, true);
        async move {
            let done = call.await;
            if done.is_ok() {
                self.state.lock().may_be_undone = before;
            }
            done
        }
    }

    /// Commits `transaction`, and lets those of the events go on that it committed. It asks for the rows if any of them may be gone. Unless the
    /// commit `is_final`, the rows have to be looked up once more, where only those are seen that are committed.
    pub async fn commit<T: Finish<M>, M>(&self, transaction: T, is_final: bool) -> Result<(), T::Error> {
        let (probe, may_be_undone) = {
            let State { receipts, committing, may_be_undone } = &mut *self.state.lock();
            *committing = true;
            let rows = rows_to_verify(receipts, is_final);
            let sql = if *may_be_undone { query(receipts, &rows) } else { None };
            (Probe { rows, sql }, *may_be_undone)
        };
        let found = if may_be_undone {
            Found::new(pin!(transaction.commit_verified(&probe)).await?)
        } else {
            pin!(transaction.commit()).await?;
            Found::All
        };
        let receipts = std::mem::take(&mut self.state.lock().receipts);
        let mut probed = &probe.rows[..];
        for receipt in &receipts {
            let (rows, others) = probed.split_at(receipt.probed);
            receipt.written.committed(rows, &found, is_final);
            probed = others;
        }
        Ok(())
    }
}

impl From<Written> for Receipts {
    fn from(written: Written) -> Self {
        Self { state: Mutex::new(State { receipts: vec![written.into()], committing: false, may_be_undone: true }) }
    }
}

impl Drop for Receipts {
    fn drop(&mut self) {
        let State { receipts, committing, .. } = &*self.state.lock();
        for Receipt { written, .. } in receipts {
            if *committing {
                written.look_for();
            } else {
                written.rolled_back();
            }
        }
    }
}

/// The rows of each receipt that the commit has to tell of, in their order.
fn rows_to_verify(receipts: &mut [Receipt], is_final: bool) -> Vec<i64> {
    let mut rows = Vec::with_capacity(receipts.len());
    for Receipt { written, probed } in receipts {
        let first = rows.len();
        written.verify(&mut rows, is_final);
        *probed = rows.len() - first;
    }
    rows
}

/// The query for those of these rows that are there; `None` if there are no rows, or no SQL.
fn query(receipts: &[Receipt], mut rows: &[i64]) -> Option<String> {
    let queries = receipts.iter().filter_map(|Receipt { written, probed }| {
        let (of_it, others) = rows.split_at(*probed);
        rows = others;
        written.query(of_it)
    });
    let queries: Vec<String> = queries.collect();
    (!queries.is_empty()).then(|| queries.join("\nUNION ALL\n"))
}
