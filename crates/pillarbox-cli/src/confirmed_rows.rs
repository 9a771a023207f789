use std::collections::HashMap;
use std::hash::{BuildHasher as _, RandomState};

use pillarbox::Store;
use pillarbox::maintain::OperatorAction;

use crate::failure::Failure;

/// The rows of which an operator has confirmed the change: 16 bytes for each.
///
/// Between the question and the answer the database may fail over to a replica that lags, and give their numbers to other events. So each
/// row is known by its event and its handler as well.
#[derive(Debug)]
pub(crate) struct ConfirmedRows {
    /// In the order of the table: the number of each, and a hash of what it was for.
    rows: Vec<(i64, u64)>,
    hasher: RandomState,
}

impl ConfirmedRows {
    /// The rows with these numbers, as they are now.
    pub(crate) async fn of(store: &dyn Store, seqs: &[i64]) -> Result<Self, Failure> {
        let mut matched = Self { rows: Vec::with_capacity(seqs.len()), hasher: RandomState::new() };
        for page in seqs.chunks(OperatorAction::PAGE) {
            let found = matched.look_up(store, page).await?;
            matched.rows.extend(page.iter().filter_map(|seq| Some((*seq, *found.get(seq)?))));
        }
        Ok(matched)
    }

    pub(crate) fn len(&self) -> usize {
        self.rows.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The rows, some hundreds at a time.
    pub(crate) fn pages(&self) -> impl Iterator<Item = &[(i64, u64)]> {
        self.rows.chunks(OperatorAction::PAGE)
    }

    /// The numbers of the rows of a page that are not for another event now.
    pub(crate) async fn unchanged(&self, store: &dyn Store, page: &[(i64, u64)]) -> Result<Vec<i64>, Failure> {
        let seqs: Vec<i64> = page.iter().map(|(seq, _)| *seq).collect();
        let found = self.look_up(store, &seqs).await?;
        let is_unchanged = |(seq, hash): &&(i64, u64)| found.get(seq).is_none_or(|now| now == hash);
        Ok(page.iter().filter(is_unchanged).map(|(seq, _)| *seq).collect())
    }

    async fn look_up(&self, store: &dyn Store, seqs: &[i64]) -> Result<HashMap<i64, u64>, Failure> {
        let found = store.identify(seqs).await?;
        Ok(found.iter().map(|row| (row.seq, self.hasher.hash_one(row))).collect())
    }
}
