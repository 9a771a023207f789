use std::collections::BTreeSet;

use pillarbox_core::hash::guarded::HashMap;
use pillarbox_core::planted_bug;
use pillarbox_core::row::Status;
use pillarbox_core::store::{Heads, OrderKey};

use super::row::Stored;

/// The index of heads: rows of a key that failed, behind which its later ones may have to wait. A row that is delivered
/// at its first attempt never enters it.
#[derive(Debug, Clone, Default)]
pub(super) struct HeadIndex {
    retry: HashMap<OrderKey, BTreeSet<i64>>,
    dead: HashMap<OrderKey, BTreeSet<i64>>,
}

impl HeadIndex {
    /// Enters the row if its state makes it a head.
    pub(super) fn insert(&mut self, seq: i64, row: &Stored) {
        if let Some(index) = self.of(row.status)
            && let Some(key) = row.order_key()
        {
            index.entry(key).or_default().insert(seq);
        }
    }

    /// Takes the row out, if its state made it a head.
    pub(super) fn remove(&mut self, seq: i64, row: &Stored) {
        if let Some(index) = self.of(row.status)
            && let Some(key) = row.order_key()
            && let Some(seqs) = index.get_mut(&key)
        {
            seqs.remove(&seq);
            if seqs.is_empty() {
                index.remove(&key);
            }
        }
    }

    /// True if the row at `seq` of this key has to wait for an earlier one.
    pub(super) fn block(&self, seq: i64, key: &OrderKey, heads: Heads) -> bool {
        let before = |index: &HashMap<OrderKey, BTreeSet<i64>>| {
            index.get(key).and_then(BTreeSet::first).is_some_and(|head| *head < seq)
        };
        match heads {
            Heads::None => false,
            _ if planted_bug::is_active("fetch_ignores_heads") => false,
            Heads::Retry => before(&self.retry),
            Heads::RetryAndDead => before(&self.retry) || before(&self.dead),
        }
    }

    fn of(&mut self, status: Status) -> Option<&mut HashMap<OrderKey, BTreeSet<i64>>> {
        match status {
            Status::Retry => Some(&mut self.retry),
            Status::Dead => Some(&mut self.dead),
            Status::New | Status::Done => None,
        }
    }
}
