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
    /// True if the commit asks for the rows although there is a tally.
    asks_for_rows: bool,
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

    /// Has the commit ask for the rows, since something else than a write changes what the tally says.
    pub(crate) fn ask_for_rows(&self) {
        self.state.lock().asks_for_rows = true;
    }

    /// Commits `transaction`, and lets those of the events go on that it committed.
    pub async fn commit<T: Finish<M>, M>(&self, transaction: T) -> Result<(), T::Error> {
        let probe = {
            let mut state = self.state.lock();
            state.committing = true;
            let asks_for_rows = state.asks_for_rows;
            ask(&mut state.receipts, asks_for_rows)
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
        Self { state: Mutex::new(State { receipts: vec![written.into()], ..State::default() }) }
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

/// The probe of a commit: the rows of each receipt, in their order.
fn ask(receipts: &mut [Receipt], asks_for_rows: bool) -> Probe {
    let mut rows = Vec::with_capacity(receipts.len());
    for Receipt { written, probed } in &mut *receipts {
        let first = rows.len();
        written.verify(&mut rows);
        *probed = rows.len() - first;
    }
    if rows.is_empty() {
        return Probe::none();
    }
    let tally = Written::tally_query(receipts.iter().map(|receipt| &receipt.written));
    if let Some(sql) = tally.filter(|_| !asks_for_rows) {
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
