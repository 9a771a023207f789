use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::Writers;

/// A proof, still to be completed, that the table is complete up to a `seq`: no transaction that is still open can commit a row at
/// or below it.
///
/// A database gives out `seq` when a row is inserted, and shows the row when its transaction commits, so rows appear out of order.
/// The proof takes two looks: the first names the transactions that could commit rows when `seq` was the highest, a later one shows
/// that none of them is still there. A transaction that is prepared in between may go by another name afterwards: so if one of them has
/// gone, the ones prepared meanwhile are waited for as well.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Proof {
    seq: i64,
    /// The transactions that were open when `seq` was the highest, and still are.
    open: BTreeSet<String>,
    /// Transactions that were prepared since then; each may be one of `open` that is gone under its old name.
    later: BTreeSet<String>,
    /// Prepared transactions that have been waited for or counted as such.
    known: BTreeSet<String>,
}

impl Proof {
    /// Notes another look, and returns the `seq` up to which the table is complete now, if that is proven by it. `next` is the
    /// proof under way, and afterwards the one that follows. Nothing is proven where the database does not name its transactions.
    pub fn advance(next: &mut Option<Self>, writers: Writers) -> Option<i64> {
        let open: BTreeSet<String> = writers.open?.into_iter().collect();
        if open.is_empty() {
            *next = None;
            return Some(writers.highest);
        }
        let prepared: BTreeSet<String> = writers.prepared.into_iter().collect();
        if let Some(proof) = next
            && proof.observe(&open, &prepared)
        {
            return None;
        }
        let begun = Self { seq: writers.highest, open, later: BTreeSet::new(), known: prepared };
        next.replace(begun).map(|proof| proof.seq)
    }

    /// Notes the transactions that are open now, prepared ones included. True if one of those waited for may be among them.
    fn observe(&mut self, open: &BTreeSet<String>, prepared: &BTreeSet<String>) -> bool {
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

    fn check(table: &[(i64, &[&str], Option<i64>)]) {
        let mut next = None;
        for (step, (highest, open, proven)) in table.iter().enumerate() {
            let prepared = open.iter().filter(|name| name.starts_with("prepared")).map(ToString::to_string).collect();
            let open = Some(open.iter().map(ToString::to_string).collect());
            let found = Proof::advance(&mut next, Writers { highest: *highest, open, prepared });
            assert_eq!(found, *proven, "step {step}");
        }
    }

    #[test]
    fn rows_are_complete_when_all_transactions_that_wrote_then_have_ended() {
        check(&[
            (10, &["a", "b"], None),
            (20, &["b", "c"], None),
            (30, &["c"], Some(10)),
            (40, &["c", "d"], None),
            (50, &["d"], Some(30)),
            (60, &[], Some(60)),
        ]);
    }

    #[test]
    fn a_writer_that_was_prepared_under_another_name_is_waited_for() {
        check(&[
            (10, &["a", "b", "prepared-1"], None),
            // Is it `a`, which is gone? `prepared-1` was known.
            (20, &["b", "prepared-1", "prepared-2", "c"], None),
            (30, &["prepared-2", "prepared-3"], None),
            // `b` may have become the third. A fourth cannot be one of those of the beginning.
            (40, &["prepared-3", "prepared-4"], None),
            (50, &["prepared-4", "prepared-5"], Some(10)),
            (60, &["prepared-5"], None),
            (70, &["prepared-6"], Some(50)),
            (80, &[], Some(80)),
        ]);
    }

    #[test]
    fn nothing_is_proven_where_the_database_does_not_tell() {
        let mut next = None;
        assert_eq!(Proof::advance(&mut next, Writers { highest: 10, open: None, prepared: Vec::new() }), None);
        assert_eq!(next, None);
    }
}
