use std::fmt;

use super::{NewRow, Presence, Written};

/// The delivering side as the writing side sees it: it takes rows once their transaction has ended. The engine implements it.
///
/// `seqs` are the numbers of `rows`, in the same order.
pub trait CommitSink: fmt::Debug + Send + Sync + 'static {
    /// The rows as a guard writes them: this node's own, as far as it could deliver them from memory.
    fn claim_for_memory(&self, rows: Vec<NewRow>) -> Vec<NewRow>;

    /// Rows were written in an open transaction.
    fn announce(&self, rows: &[NewRow], seqs: &[i64]);

    /// The receipt of these rows is gone.
    fn forget(&self, seqs: &[i64]);

    /// Adds to `asked` the rows that could be delivered from memory if they are known to be committed.
    fn verify(&self, rows: &[NewRow], seqs: &[i64], asked: &mut Vec<i64>);

    /// The transaction has committed; `presence` tells which rows the commit kept.
    fn committed(&self, rows: &[NewRow], seqs: &[i64], presence: &dyn Fn(&NewRow, i64) -> Presence);

    /// The caller says that the transaction has committed.
    fn notify_committed(&self, written: &Written);

    /// The rows may be committed at any time without anybody saying so.
    fn look_for(&self, rows: &[NewRow], seqs: &[i64]);
}
