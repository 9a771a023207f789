use std::sync::Arc;

use super::MemoryStore;
use super::row::Stored;
use super::tables::Tables;
use crate::event::EventId;
use crate::write::{Begin, Connection, Dialect, Finish, Insert, NewRow};

/// The marker of the in-memory store in [`Connection`].
#[derive(Debug, Clone, Copy)]
pub struct Memory;

/// An insert into the in-memory table was refused; none of its rows were inserted, and the transaction stays usable.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MemoryError {
    /// The id is taken, by a row in the table or in a transaction that is still open; for the same handler, if it names one.
    #[error("event `{id}` exists already; give every event an id of its own")]
    DuplicateEvent {
        /// The id.
        id: EventId,
    },
}

/// An open transaction on a [`MemoryStore`]. Its rows are invisible until it commits; dropping it rolls it back.
#[derive(Debug)]
#[must_use = "a transaction that is dropped rolls back"]
pub struct MemoryTransaction {
    tables: Arc<Tables>,
    rows: Vec<(i64, NewRow)>,
}

impl MemoryTransaction {
    pub(super) fn new(tables: Arc<Tables>) -> Self {
        Self { tables, rows: Vec::new() }
    }

    /// Makes its rows visible.
    pub fn commit(mut self) {
        let created_at = self.tables.now();
        let rows = std::mem::take(&mut self.rows);
        let mut state = self.tables.lock();
        if let Some((first, _)) = rows.first() {
            state.transaction_ended(*first);
        }
        state.commit(rows.into_iter().map(|(seq, row)| (seq, Stored::new(row, created_at))));
    }

    /// Forgets its rows; their `seq` stays unused.
    pub fn rollback(self) {
        drop(self);
    }

    fn insert(&mut self, rows: &[NewRow]) -> Result<Vec<i64>, MemoryError> {
        let mut state = self.tables.lock();
        let seqs = state.reserve(rows)?;
        if let (true, Some(first)) = (self.rows.is_empty(), seqs.first()) {
            state.transaction_writes(*first);
        }
        drop(state);
        self.rows.extend(seqs.iter().copied().zip(rows.iter().cloned()));
        Ok(seqs)
    }
}

impl Drop for MemoryTransaction {
    fn drop(&mut self) {
        if let Some((first, _)) = self.rows.first() {
            let mut state = self.tables.lock();
            state.transaction_ended(*first);
            state.release(self.rows.iter().map(|(_, row)| row));
        }
    }
}

#[diagnostic::do_not_recommend]
impl Connection<Memory> for MemoryTransaction {
    type Error = MemoryError;

    const DIALECT: Dialect = Dialect::MEMORY;

    fn in_transaction(&self) -> Option<bool> {
        Some(true)
    }

    async fn insert(&mut self, insert: &Insert<'_>) -> Result<Vec<i64>, MemoryError> {
        Self::insert(self, insert.rows)
    }
}

impl Begin<Memory> for &MemoryStore {
    type Transaction = MemoryTransaction;
    type Error = MemoryError;

    async fn begin(self) -> Result<MemoryTransaction, MemoryError> {
        Ok(MemoryStore::begin(self))
    }
}

impl Finish<Memory> for MemoryTransaction {
    type Error = MemoryError;
    type Inner = Self;

    fn inner(&self) -> &Self {
        self
    }

    fn inner_mut(&mut self) -> &mut Self {
        self
    }

    async fn commit(self) -> Result<(), MemoryError> {
        Self::commit(self);
        Ok(())
    }

    async fn rollback(self) -> Result<(), MemoryError> {
        Self::rollback(self);
        Ok(())
    }
}
