use mysql_async::prelude::Queryable as _;
use mysql_async::{Conn, DriverError, Error, Pool, Transaction, TxOpts};
use pillarbox_core::event::EventId;
use pillarbox_core::store::RowId;
use pillarbox_core::write::{Begin, Finish, Probe};

use crate::MysqlAsync;
use crate::open::{ensure_open, is_open};

impl Begin<MysqlAsync> for &Pool {
    type Transaction = Transaction<'static>;
    type Error = Error;

    async fn begin(self) -> Result<Transaction<'static>, Error> {
        self.start_transaction(TxOpts::default()).await
    }
}

impl<'a> Begin<MysqlAsync> for &'a mut Conn {
    type Transaction = Transaction<'a>;
    type Error = Error;

    /// Fails if a transaction is open on the connection, as one that was begun by executing the text `BEGIN`: `START TRANSACTION` would commit
    /// it. The driver rolls one back that was dropped, before it does anything else.
    async fn begin(self) -> Result<Transaction<'a>, Error> {
        // It may be one that was dropped, or the last answer was an error: only the server knows.
        if is_open(self) != Some(false) {
            self.ping().await?;
            if is_open(self) == Some(true) {
                return Err(DriverError::NestedTransaction.into());
            }
        }
        self.start_transaction(TxOpts::default()).await
    }
}

impl Finish<MysqlAsync> for Transaction<'_> {
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

    /// Commits, or fails if the server has already rolled the transaction back: it answers `COMMIT` with success then, and the
    /// outbox would deliver events that do not exist. A probe is a round trip of its own.
    async fn commit_verified(mut self, probe: &Probe) -> Result<Vec<RowId>, Error> {
        let mut found = Vec::new();
        if let Some(sql) = &probe.sql {
            let row = |(seq, event_id, handler): (i64, String, Option<String>)| RowId {
                seq,
                event_id: EventId::from_stored(&event_id),
                handler: handler.map(String::into_boxed_str),
            };
            found = self.query_map(sql, row).await?;
        }
        ensure_open(&mut self).await?;
        Transaction::commit(self).await?;
        Ok(found)
    }

    async fn rollback(self) -> Result<(), Error> {
        Transaction::rollback(self).await
    }
}
