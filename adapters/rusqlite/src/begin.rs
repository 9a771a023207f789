use std::future::{Future, ready};

use pillarbox_core::event::EventId;
use pillarbox_core::store::RowId;
use pillarbox_core::write::{Begin, Finish, Probe, Synchronous};
use rusqlite::{Connection, Error, Row, Transaction, TransactionBehavior};

use crate::Rusqlite;

impl Synchronous<Rusqlite> for &mut Connection {}

impl<'a> Begin<Rusqlite> for &'a mut Connection {
    type Transaction = Transaction<'a>;
    type Error = Error;

    /// Begins with `BEGIN IMMEDIATE`: a deferred transaction that reads first and writes later fails with `SQLITE_BUSY` whenever
    /// another connection has written in between, and no waiting helps it.
    async fn begin(self) -> Result<Transaction<'a>, Error> {
        self.transaction_with_behavior(TransactionBehavior::Immediate)
    }
}

impl Finish<Rusqlite> for Transaction<'_> {
    type Error = Error;
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

    /// SQLite itself refuses to commit where no transaction is open.
    fn commit_verified(self, probe: &Probe) -> impl Future<Output = Result<Vec<RowId>, Error>> + Send {
        ready(commit(self, probe))
    }

    fn rollback(self) -> impl Future<Output = Result<(), Error>> + Send {
        ready(Transaction::rollback(self))
    }
}

fn commit(transaction: Transaction<'_>, probe: &Probe) -> Result<Vec<RowId>, Error> {
    let found = match &probe.sql {
        None => Vec::new(),
        Some(sql) => transaction.prepare(sql)?.query_map([], row_id)?.collect::<Result<_, _>>()?,
    };
    transaction.commit()?;
    Ok(found)
}

/// A row that a probe has found.
fn row_id(row: &Row<'_>) -> Result<RowId, Error> {
    let (event_id, handler): (String, Option<String>) = (row.get(1)?, row.get(2)?);
    let event_id = EventId::from_stored(&event_id);
    Ok(RowId { seq: row.get(0)?, event_id, handler: handler.map(String::into_boxed_str) })
}
