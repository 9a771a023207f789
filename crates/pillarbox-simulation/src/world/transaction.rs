use std::sync::{Arc, PoisonError};

use pillarbox_core::store::RowId;
use pillarbox_core::write::{Action, Begin, Command, Connection, Dialect, Finish, Insert, Lookup, Probe};
use pillarbox_memory::{Memory, MemoryTransaction};
use tokio::time::sleep;

use super::database::{Held, Prepared};
use super::link::Link;
use crate::check::{Completion, Op, event_number, handler_number};

/// The marker of the simulated driver.
#[derive(Debug)]
pub(crate) struct Simulated;

/// The driver's errors.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DriverError {
    /// The connection is gone, and what was done on it is rolled back, or committed.
    #[error("{0}")]
    Lost(&'static str),
    /// The database refused the statement.
    #[error("{0}")]
    Refused(String),
}

/// A transaction of a writer, on a connection that can break.
#[derive(Debug)]
pub(crate) struct SimulatedTransaction {
    link: Arc<Link>,
    held: Arc<Held>,
    connections: u64,
    /// The rows that it has written and not rolled back.
    rows: Vec<(i64, u32, u8)>,
    /// The verdicts that it records.
    completions: Vec<Completion>,
    savepoint: Option<usize>,
    first: Option<i64>,
}

impl SimulatedTransaction {
    fn take(&self) -> Result<MemoryTransaction, DriverError> {
        let inner = self.held.lock().unwrap_or_else(PoisonError::into_inner).take();
        inner.filter(|_| self.link.carries(self.connections)).ok_or(DriverError::Lost("the connection is gone"))
    }

    fn put(&self, inner: MemoryTransaction) {
        *self.held.lock().unwrap_or_else(PoisonError::into_inner) = Some(inner);
    }

    /// Sets a savepoint.
    pub(crate) fn savepoint(&mut self) -> Result<(), DriverError> {
        let mut inner = self.take()?;
        inner.savepoint("here");
        self.savepoint = Some(self.rows.len());
        self.put(inner);
        Ok(())
    }

    /// Rolls back to the savepoint.
    pub(crate) fn rollback_to(&mut self) -> Result<(), DriverError> {
        let mut inner = self.take()?;
        let rolled_back = inner.rollback_to("here");
        self.put(inner);
        rolled_back.map_err(|error| DriverError::Refused(error.to_string()))?;
        let undone = self.rows.split_off(self.savepoint.unwrap_or_default());
        self.link.tell_story(format_args!("rolls back to a savepoint: {undone:?}"));
        Ok(())
    }

    /// Prepares it for somebody else to end.
    pub(crate) fn prepare(mut self) {
        if let Some(first) = self.first {
            self.link.tell_story(format_args!("prepares {:?}", self.rows));
            let (held, rows) = (Arc::clone(&self.held), std::mem::take(&mut self.rows));
            self.link.database.prepare(Prepared { first, held, rows });
        }
    }
}

impl Connection<Simulated> for SimulatedTransaction {
    type Error = DriverError;

    fn dialect(&self) -> Dialect {
        Dialect::MEMORY
    }

    fn in_transaction(&mut self) -> Option<bool> {
        Some(true)
    }

    async fn insert(&mut self, insert: &Insert<'_>) -> Result<Vec<i64>, DriverError> {
        self.link.travel().await;
        let mut inner = self.take()?;
        if self.link.loses_request() {
            drop(inner);
            return Err(DriverError::Lost("the connection broke"));
        }
        let inserted = Connection::<Memory>::insert(&mut inner, insert).await;
        self.put(inner);
        let seqs = inserted.map_err(|error| DriverError::Refused(error.to_string()))?;
        // A number below zero is that of a row which is pending already.
        for (row, seq) in insert.rows.iter().zip(&seqs).filter(|(_, seq)| **seq > 0) {
            self.first.get_or_insert(*seq);
            self.rows.push((*seq, event_number(row.event_id()), handler_number(row.handler())));
        }
        self.link.tell_story(format_args!("inserts {:?}", self.rows));
        self.link.travel().await;
        Ok(seqs)
    }

    async fn run(&mut self, command: &Command<'_>) -> Result<u64, DriverError> {
        self.link.travel().await;
        let mut inner = self.take()?;
        if self.link.loses_request() {
            drop(inner);
            return Err(DriverError::Lost("the connection broke"));
        }
        let changed = Connection::<Memory>::run(&mut inner, command).await;
        self.put(inner);
        let changed = changed.map_err(|error| DriverError::Refused(error.to_string()))?;
        if let (1, Action::Complete { node, fence, verdict }) = (changed, &command.action) {
            self.link.tell_story(format_args!("completes {}: {:?}", verdict.row.seq, verdict.change));
            let (node, verdict) = ((*node).clone(), (*verdict).clone());
            self.completions.push(Completion { node, fence: *fence, verdict });
        }
        self.link.travel().await;
        Ok(changed)
    }

    async fn read(&mut self, lookup: &Lookup<'_>) -> Result<Vec<String>, DriverError> {
        self.link.travel().await;
        let mut inner = self.take()?;
        if self.link.loses_request() {
            drop(inner);
            return Err(DriverError::Lost("the connection broke"));
        }
        let read = Connection::<Memory>::read(&mut inner, lookup).await;
        self.put(inner);
        read.map_err(|error| DriverError::Refused(error.to_string()))
    }
}

impl Finish<Simulated> for SimulatedTransaction {
    type Error = DriverError;
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

    async fn commit_verified(self, probe: &Probe) -> Result<Vec<RowId>, DriverError> {
        self.link.travel().await;
        let inner = self.take()?;
        if self.link.loses_request() {
            drop(inner);
            return Err(DriverError::Lost("the connection broke before the commit"));
        }
        let found = Finish::<Memory>::commit_verified(inner, probe).await;
        let found = found.map_err(|error| DriverError::Refused(error.to_string()))?;
        self.link.tell_story(format_args!("commits {:?}", self.rows));
        self.link.database.executed(&Op::Commit(self.rows.clone(), self.completions.clone()));
        self.link.travel().await;
        if self.link.loses_answer() || !self.link.carries(self.connections) {
            return Err(DriverError::Lost("the connection broke after the commit"));
        }
        Ok(found)
    }

    async fn rollback(self) -> Result<(), DriverError> {
        let inner = self.take()?;
        self.link.tell_story(format_args!("rolls back {:?}", self.rows));
        inner.rollback();
        Ok(())
    }
}

impl Begin<Simulated> for &Arc<Link> {
    type Transaction = SimulatedTransaction;
    type Error = DriverError;

    async fn begin(self) -> Result<SimulatedTransaction, DriverError> {
        let connections = self.database.connections();
        if !self.carries(connections) {
            sleep(self.database.chance.millis(1, 50)).await;
            return Err(DriverError::Lost("the database cannot be reached"));
        }
        let held = self.database.hold(self.database.store.begin());
        let link = Arc::clone(self);
        Ok(SimulatedTransaction {
            link,
            held,
            connections,
            rows: Vec::new(),
            completions: Vec::new(),
            savepoint: None,
            first: None,
        })
    }
}
