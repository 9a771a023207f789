use std::borrow::Cow;
use std::pin::pin;
use std::sync::Arc;

use pillarbox_core::clock::Timestamp;
use pillarbox_core::event::EventId;
use pillarbox_core::ownership::{Fence, NodeId};
use pillarbox_core::planted_bug;
use pillarbox_core::row::Verdict;
use pillarbox_core::store::RowId;
use pillarbox_core::write::{
    Action, Begin, Command, Connection, Dialect, Finish, Insert, Lookup, NewRow, Probe, Question,
};

use super::MemoryStore;
use super::admin::record;
use super::inbox::{Answer, Message, Waiting};
use super::row::Stored;
use super::tables::Tables;

/// The marker of the in-memory store in [`Connection`].
#[derive(Debug, Clone, Copy)]
pub struct Memory;

/// A statement in a transaction of the in-memory store was refused; it changed nothing, and the transaction stays usable.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MemoryError {
    /// The id is taken, by a row in the table or in a transaction that is still open; for the same handler, if it names one.
    #[error("event `{id}` exists already; give every event an id of its own")]
    DuplicateEvent {
        /// The id.
        id: EventId,
    },
    /// The database would wait for the other transaction; here the second one is refused.
    #[error("another open transaction writes an event with the unique key `{key}`; end it first, or try again")]
    UniqueKeyInUse {
        /// The unique key.
        key: Box<str>,
    },
    /// There is no savepoint of this name.
    #[error("there is no savepoint `{name}` in this transaction")]
    NoSavepoint {
        /// The name.
        name: Box<str>,
    },
    /// The database would make the transaction wait for another one, or let the other wait; here the one that commits second fails.
    #[error(
        "event `{id}`, which this transaction completes, was changed by another one; the transaction is rolled back"
    )]
    Conflict {
        /// The id of the event.
        id: EventId,
    },
    /// Another transaction has recorded the message and waits for this one; roll back, and receive the message again.
    #[error("two transactions wait for each other's messages; roll back and try again")]
    Deadlock,
    /// The connection is asked for something that this release does not know.
    #[error("the in-memory store does not know this change or question; use one release of all pillarbox crates")]
    Unknown,
}

/// An open transaction on a [`MemoryStore`]. Its rows are invisible until it commits; dropping it rolls it back.
#[derive(Debug)]
#[must_use = "a transaction that is dropped rolls back"]
pub struct MemoryTransaction {
    tables: Arc<Tables>,
    rows: Vec<Inserted>,
    completions: Vec<Completion>,
    messages: Vec<(Message, Timestamp)>,
    /// Its number, if it has received a message.
    number: Option<u64>,
    /// The first `seq` that it was given, even if that row was rolled back.
    first: Option<i64>,
    savepoints: Vec<Savepoint>,
    /// The number of times that the tables had gone back when it began: once more, and it is lost.
    returns: u64,
}

#[derive(Debug)]
struct Inserted {
    seq: i64,
    row: NewRow,
    at: Timestamp,
}

/// A verdict that is recorded with the commit.
#[derive(Debug)]
struct Completion {
    node: NodeId,
    fence: Fence,
    verdict: Verdict,
}

#[derive(Debug)]
struct Savepoint {
    name: Box<str>,
    /// The number of rows at the savepoint.
    rows: usize,
    /// The number of completions at the savepoint.
    completions: usize,
    /// The number of messages at the savepoint.
    messages: usize,
}

impl MemoryTransaction {
    pub(super) fn new(tables: Arc<Tables>) -> Self {
        Self {
            returns: tables.returns(),
            tables,
            rows: Vec::new(),
            completions: Vec::new(),
            messages: Vec::new(),
            number: None,
            first: None,
            savepoints: Vec::new(),
        }
    }

    /// Makes its rows visible, unless it is rolled back for a [conflict](MemoryError::Conflict).
    pub fn commit(self) {
        drop(self.try_commit());
    }

    fn try_commit(mut self) -> Result<(), MemoryError> {
        let tables = Arc::clone(&self.tables);
        let mut state = tables.lock();
        if self.is_lost() {
            return Ok(());
        }
        for Completion { node, fence, verdict } in &self.completions {
            if !state.would_settle(node, *fence, verdict) {
                // Dropping it locks again.
                drop(state);
                return Err(MemoryError::Conflict { id: verdict.row.event_id.clone() });
            }
        }
        for Completion { node, fence, verdict } in &self.completions {
            state.settle(node, *fence, std::slice::from_ref(verdict), tables.now());
        }
        let rows = std::mem::take(&mut self.rows);
        if let Some(first) = self.first.take() {
            state.transaction_ended(first);
        }
        state.commit(rows.into_iter().map(|Inserted { seq, row, at }| (seq, Stored::new(row, at))));
        state.inbox.commit(std::mem::take(&mut self.messages));
        drop(state);
        Ok(())
    }

    /// True if the tables have gone back since it began.
    fn is_lost(&self) -> bool {
        self.tables.returns() != self.returns
    }

    /// Forgets its rows; their `seq` stays unused.
    pub fn rollback(self) {
        drop(self);
    }

    /// Sets a savepoint, as the SQL statement `SAVEPOINT` does.
    pub fn savepoint(&mut self, name: &str) {
        let (rows, completions, messages) = (self.rows.len(), self.completions.len(), self.messages.len());
        self.savepoints.push(Savepoint { name: name.into(), rows, completions, messages });
    }

    /// Forgets the rows that were written since a savepoint, as `ROLLBACK TO SAVEPOINT` does.
    ///
    /// # Errors
    /// [`MemoryError::NoSavepoint`].
    pub fn rollback_to(&mut self, name: &str) -> Result<(), MemoryError> {
        let index = self.find(name)?;
        self.savepoints.truncate(index + 1);
        let Savepoint { rows: kept, completions, messages, .. } = self.savepoints[index];
        self.completions.truncate(completions);
        let unreceived = self.messages.split_off(messages);
        let kept = if planted_bug::is_active("savepoint_ignored") { self.rows.len() } else { kept };
        let undone = self.rows.split_off(kept);
        let mut state = self.tables.lock();
        state.release(undone.iter().map(|inserted| &inserted.row));
        state.inbox.release(&unreceived);
        drop(state);
        self.tables.ended.notify_waiters();
        Ok(())
    }

    /// Forgets a savepoint and keeps the rows, as `RELEASE SAVEPOINT` does.
    ///
    /// # Errors
    /// [`MemoryError::NoSavepoint`].
    pub fn release(&mut self, name: &str) -> Result<(), MemoryError> {
        let index = self.find(name)?;
        self.savepoints.truncate(index);
        Ok(())
    }

    fn find(&self, name: &str) -> Result<usize, MemoryError> {
        let found = self.savepoints.iter().rposition(|savepoint| *savepoint.name == *name);
        found.ok_or_else(|| MemoryError::NoSavepoint { name: name.into() })
    }

    fn complete(&mut self, node: &NodeId, fence: Fence, verdict: &Verdict) -> bool {
        let completes = !self.is_lost() && self.tables.lock().would_settle(node, fence, verdict);
        if completes {
            self.completions.push(Completion { node: node.clone(), fence, verdict: verdict.clone() });
        }
        completes
    }

    /// Records a message, unless it is there. Waits for a transaction that has recorded it and is open.
    async fn receive(&mut self, consumer: &str, message_id: &str) -> Result<bool, MemoryError> {
        let message = (Box::from(consumer), Box::from(message_id));
        let tables = Arc::clone(&self.tables);
        let number = *self.number.get_or_insert_with(|| tables.next_transaction());
        loop {
            // Before the look, so that no end in between is missed.
            let mut ended = pin!(tables.ended.notified());
            ended.as_mut().enable();
            if self.is_lost() {
                return Ok(true);
            }
            let answer = tables.lock().inbox.record(&message, number);
            match answer {
                Answer::First => {
                    self.messages.push((message, tables.now()));
                    return Ok(true);
                }
                Answer::Again => return Ok(false),
                Answer::Deadlock => return Err(MemoryError::Deadlock),
                Answer::Wait => {
                    let _waiting = Waiting { tables: &tables, transaction: number };
                    ended.await;
                }
            }
        }
    }

    fn insert(&mut self, rows: &[NewRow]) -> Result<Vec<i64>, MemoryError> {
        let mut state = self.tables.lock();
        if let [row] = rows
            && row.unique_key().is_some()
            && let Some(pending) = state.take_unique_key(row, |seq| self.rows.iter().any(|own| own.seq == seq))?
        {
            return Ok(vec![-pending]);
        }
        let seqs = state.reserve(rows)?;
        if let (None, Some(first)) = (self.first, seqs.first()) {
            state.transaction_writes(*first);
            self.first = Some(*first);
        }
        drop(state);
        let at = self.tables.now();
        self.rows.extend(seqs.iter().zip(rows).map(|(seq, row)| Inserted { seq: *seq, row: row.clone(), at }));
        Ok(seqs)
    }
}

impl MemoryTransaction {
    /// The highest `seq` that it sees, descending.
    fn newest(&self, limit: usize) -> Vec<i64> {
        let mut seqs: Vec<i64> = self.tables.lock().rows().keys().rev().take(limit).copied().collect();
        seqs.extend(self.rows.iter().map(|inserted| inserted.seq));
        seqs.sort_unstable_by(|a, b| b.cmp(a));
        seqs.truncate(limit);
        seqs
    }

    /// The rows at these places that it sees, ascending. Rows that it completes are pending still.
    fn records(&self, seqs: &[i64]) -> Vec<String> {
        let mut seqs = seqs.to_vec();
        seqs.sort_unstable();
        seqs.dedup();
        let state = self.tables.lock();
        let own = |seq| self.rows.iter().find(|inserted| inserted.seq == seq);
        let read = |seq| match own(seq) {
            Some(Inserted { row, at, .. }) => Some(record(seq, &Stored::new(row.clone(), *at)).to_json()),
            None => state.rows().get(&seq).map(|row| record(seq, row).to_json()),
        };
        seqs.into_iter().filter_map(read).collect()
    }
}

impl Drop for MemoryTransaction {
    fn drop(&mut self) {
        if self.first.is_none() && self.number.is_none() {
            return;
        }
        let mut state = self.tables.lock();
        if self.is_lost() {
            return;
        }
        if let Some(first) = self.first {
            state.transaction_ended(first);
            state.release(self.rows.iter().map(|inserted| &inserted.row));
        }
        state.inbox.release(&self.messages);
        drop(state);
        if self.number.is_some() {
            self.tables.ended.notify_waiters();
        }
    }
}

#[diagnostic::do_not_recommend]
impl Connection<Memory> for MemoryTransaction {
    type Error = MemoryError;

    fn dialect(&self) -> Dialect {
        Dialect::MEMORY
    }

    fn in_transaction(&mut self) -> Option<bool> {
        Some(true)
    }

    async fn insert(&mut self, insert: &Insert<'_>) -> Result<Vec<i64>, MemoryError> {
        Self::insert(self, insert.rows)
    }

    async fn run(&mut self, command: &Command<'_>) -> Result<u64, MemoryError> {
        match command.action {
            Action::Complete { node, fence, verdict } => Ok(u64::from(self.complete(node, fence, verdict))),
            Action::Receive { consumer, message_id } => Ok(u64::from(self.receive(consumer, message_id).await?)),
            _ => Err(MemoryError::Unknown),
        }
    }

    async fn read(&mut self, lookup: &Lookup<'_>) -> Result<Vec<String>, MemoryError> {
        match lookup.question {
            Question::Newest(limit) => Ok(self.newest(limit).iter().map(i64::to_string).collect()),
            Question::Records(seqs) => Ok(self.records(seqs)),
            _ => Err(MemoryError::Unknown),
        }
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
    const IS_ONLY_BORROWED: bool = true;

    fn commit_is_final(&self) -> bool {
        true
    }

    fn inner(&self) -> &Self {
        self
    }

    fn inner_mut(&mut self) -> &mut Self {
        self
    }

    async fn commit_verified(self, probe: &Probe) -> Result<Vec<RowId>, MemoryError> {
        let mut probed = Cow::Borrowed(&probe.rows);
        if !probed.is_sorted() {
            probed.to_mut().sort_unstable();
        }
        let found = self.rows.iter().filter(|inserted| probed.binary_search(&inserted.seq).is_ok());
        let found = found.map(|inserted| inserted.row.id(inserted.seq)).collect();
        self.try_commit()?;
        Ok(found)
    }

    async fn rollback(self) -> Result<(), MemoryError> {
        Self::rollback(self);
        Ok(())
    }
}
