use pillarbox_core::event::EventId;
use pillarbox_core::store::RowId;
use pillarbox_core::write::{Begin, Finish, Probe, Uninterrupted};
use sea_orm::{
    ConnectionTrait as _, DatabaseConnection, DatabaseTransaction, DbBackend, DbErr, QueryResult,
    SqliteTransactionMode, Statement, TransactionOptions, TransactionTrait as _,
};

use crate::SeaOrm;
use crate::insert::STILL_OPEN_MYSQL;

impl Begin<SeaOrm> for &DatabaseConnection {
    type Transaction = DatabaseTransaction;
    type Error = DbErr;

    /// Begins with `BEGIN IMMEDIATE` on SQLite: a deferred transaction that reads first and writes later fails with
    /// `SQLITE_BUSY` whenever another connection has written in between, and no waiting helps it.
    async fn begin(self) -> Result<DatabaseTransaction, DbErr> {
        let mode = SqliteTransactionMode::Immediate;
        let connection = self.clone();
        let begin = async move {
            let sqlite_transaction_mode = (connection.get_database_backend() == DbBackend::Sqlite).then_some(mode);
            let options = TransactionOptions { sqlite_transaction_mode, ..TransactionOptions::default() };
            connection.begin_with_options(options).await
        };
        // sqlx 0.9.0 counts a transaction only once `BEGIN` has been answered. Dropped before that, it returns the
        // connection to the pool inside a transaction that nobody knows of; so `BEGIN` is always seen through.
        Uninterrupted::new(Box::pin(begin)).await
    }
}

impl Finish<SeaOrm> for DatabaseTransaction {
    type Error = DbErr;
    type Inner = Self;
    // A nested transaction is an object of its own, which can be kept while events are written on this one.
    const IS_ONLY_BORROWED: bool = false;

    fn inner(&self) -> &Self {
        self
    }

    fn inner_mut(&mut self) -> &mut Self {
        self
    }

    /// PostgreSQL answers the `COMMIT` of a failed transaction with `ROLLBACK`, which SeaORM takes for success, and MySQL commits
    /// what came after a transaction that it has rolled back. A savepoint fails in either, and where somebody has ended the
    /// transaction by a statement of their own. SQLite itself refuses to commit where no transaction is open.
    async fn commit_verified(self, probe: &Probe) -> Result<Vec<RowId>, DbErr> {
        let still_open = match self.get_database_backend() {
            DbBackend::Postgres => Some("SAVEPOINT pillarbox"),
            DbBackend::MySql => Some(STILL_OPEN_MYSQL),
            _ => None,
        };
        if let Some(still_open) = still_open {
            self.execute_unprepared(still_open).await?;
        }
        let found = match &probe.sql {
            None => Vec::new(),
            Some(sql) => {
                let probe = Statement::from_string(self.get_database_backend(), sql);
                self.query_all_raw(probe).await?.iter().map(row_id).collect::<Result<_, _>>()?
            }
        };
        DatabaseTransaction::commit(self).await?;
        Ok(found)
    }

    async fn rollback(self) -> Result<(), DbErr> {
        DatabaseTransaction::rollback(self).await
    }
}

/// A row that a probe has found.
fn row_id(row: &QueryResult) -> Result<RowId, DbErr> {
    let (event_id, handler): (String, Option<String>) = (row.try_get_by_index(1)?, row.try_get_by_index(2)?);
    let event_id = EventId::from_stored(&event_id);
    Ok(RowId { seq: row.try_get_by_index(0)?, event_id, handler: handler.map(String::into_boxed_str) })
}
