use pillarbox_core::event::EventId;
use pillarbox_core::store::RowId;
use pillarbox_core::write::{Begin, Finish, Probe, Uninterrupted};
use sea_orm::{
    ConnectionTrait as _, DatabaseConnection, DatabaseTransaction, DbBackend, DbErr, QueryResult,
    SqliteTransactionMode, Statement, TransactionOptions, TransactionTrait as _,
};

use crate::SeaOrm;
use crate::insert::{COMMIT_MYSQL, ended, is_open_sqlite};

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

    /// SeaORM's own commit says that all is well where it is not: it releases a savepoint where a nested transaction is open, PostgreSQL answers the
    /// `COMMIT` of a failed transaction with `ROLLBACK`, and MySQL and SQLite commit nothing, or only what came last, where they have rolled the
    /// transaction back. So each of these is looked for before it.
    async fn commit_verified(self, probe: &Probe) -> Result<Vec<RowId>, DbErr> {
        let backend = self.get_database_backend();
        let found = match &probe.sql {
            None => Vec::new(),
            Some(sql) => {
                let probe = Statement::from_string(backend, sql);
                self.query_all_raw(probe).await?.iter().map(row_id).collect::<Result<_, _>>()?
            }
        };
        match backend {
            DbBackend::Postgres => commit_and_chain(self, COMMIT_POSTGRES).await?,
            DbBackend::MySql => commit_and_chain(self, COMMIT_MYSQL).await?,
            _ => commit_sqlite(self).await?,
        }
        Ok(found)
    }

    async fn rollback(self) -> Result<(), DbErr> {
        DatabaseTransaction::rollback(self).await
    }
}

/// A savepoint fails in a transaction in which a statement has failed, and where none is open.
const COMMIT_POSTGRES: &str = "SAVEPOINT pillarbox; COMMIT AND CHAIN";

/// Commits by a text of ours, which fails where it cannot be, and leaves SeaORM the empty transaction that follows. At that SeaORM itself fails where a
/// nested one is open; no statement of PostgreSQL would tell before.
async fn commit_and_chain(transaction: DatabaseTransaction, commit: &str) -> Result<(), DbErr> {
    transaction.execute_unprepared(commit).await?;
    transaction.commit().await.map_err(|error| {
        let problem =
            "the transaction has committed, and SeaORM cannot end its own; end nested transactions before this one";
        DbErr::Custom(format!("{problem}: {error}"))
    })
}

/// SQLite has no `COMMIT AND CHAIN`. Of the savepoints that sqlx, on which SeaORM runs, sets for nested transactions the first is there if one is open.
async fn commit_sqlite(transaction: DatabaseTransaction) -> Result<(), DbErr> {
    if !is_open_sqlite(&transaction).await? {
        // The transaction that has asked stays open, so that SeaORM has one to roll back: it would count this one for ever.
        return Err(ended());
    }
    match transaction.execute_unprepared("RELEASE SAVEPOINT _sqlx_savepoint_1").await {
        Err(error) if error.to_string().contains("no such savepoint") => {}
        Err(error) => return Err(error),
        Ok(_) if is_open_sqlite(&transaction).await? => {
            // Nothing is left to commit for whoever ends the nested one.
            transaction.execute_unprepared("ROLLBACK; BEGIN; SAVEPOINT _sqlx_savepoint_1").await?;
            let problem =
                "a nested transaction is open, so that nothing was committed; end nested transactions before this one";
            return Err(DbErr::Custom(problem.to_owned()));
        }
        // sqlx takes this transaction for a nested one, as it does once SQLite itself has ended one of the connection. So this was the commit;
        // SeaORM needs something to end.
        Ok(_) => transaction.execute_unprepared("ROLLBACK; SAVEPOINT _sqlx_savepoint_1").await.map(drop)?,
    }
    transaction.commit().await
}

/// A row that a probe has found.
fn row_id(row: &QueryResult) -> Result<RowId, DbErr> {
    let (event_id, handler): (String, Option<String>) = (row.try_get_by_index(1)?, row.try_get_by_index(2)?);
    let event_id = EventId::from_stored(&event_id);
    Ok(RowId { seq: row.try_get_by_index(0)?, event_id, handler: handler.map(String::into_boxed_str) })
}
