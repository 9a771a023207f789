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
    /// Adds the receipt of a write.
    pub fn add(&self, written: &Written) {
        self.state.lock().receipts.push(written.clone().into());
    }

    /// Commits `transaction`, and lets those of the events go on that it committed.
    pub async fn commit<T: Finish<M>, M>(&self, transaction: T) -> Result<(), T::Error> {
        let probe = {
            let mut state = self.state.lock();
            state.committing = true;
            ask(&mut state.receipts)
        };
        let found = Found::by(&probe, pin!(transaction.commit_verified(&probe)).await?);
        let receipts = std::mem::take(&mut self.state.lock().receipts);
        let mut probed = &probe.rows[..];
        for receipt in &receipts {
            let (rows, others) = probed.split_at(receipt.probed);
            receipt.written.committed(rows, &found);
            probed = others;
        }
        Ok(())
    }
}

impl From<Written> for Receipts {
    fn from(written: Written) -> Self {
        Self { state: Mutex::new(State { receipts: vec![written.into()], committing: false }) }
    }
}

impl Drop for Receipts {
    fn drop(&mut self) {
        let State { receipts, committing } = &*self.state.lock();
        for Receipt { written, .. } in receipts {
            if *committing {
                written.look_for();
            } else {
                written.rolled_back();
            }
        }
    }
}

/// The probe of a commit: the rows of each receipt, in their order.
fn ask(receipts: &mut [Receipt]) -> Probe {
    let mut rows = Vec::with_capacity(receipts.len());
    for Receipt { written, probed } in &mut *receipts {
        let first = rows.len();
        written.verify(&mut rows);
        *probed = rows.len() - first;
    }
    if rows.is_empty() {
        return Probe::none();
    }
    if let Some(sql) = Written::tally_query(receipts.iter().map(|receipt| &receipt.written)) {
        return Probe { rows, sql: Some(sql), is_of_tally: true };
    }
    let mut rest = &rows[..];
    let queries = receipts.iter().filter_map(|receipt| {
        let (of_it, others) = rest.split_at(receipt.probed);
        rest = others;
        receipt.written.query(of_it)
    });
    let queries: Vec<String> = queries.collect();
    let sql = (!queries.is_empty()).then(|| queries.join("\nUNION ALL\n"));
    Probe { rows, sql, is_of_tally: false }
}
