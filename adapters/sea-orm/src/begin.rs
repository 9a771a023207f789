use std::ops::Deref;

use pillarbox_core::event::EventId;
use pillarbox_core::store::RowId;
use pillarbox_core::write::{
    Begin, Command, Connection, ConnectionId, Dialect, Finish, Insert, Lookup, Probe, Uninterrupted,
};
use sea_orm::{
    ConnectionTrait as _, DatabaseConnection, DatabaseTransaction, DbBackend, DbErr, QueryResult,
    SqliteTransactionMode, Statement, TransactionOptions, TransactionTrait as _,
};

use crate::SeaOrm;
use crate::insert::{ended, ensure_open, is_open_sqlite};

/// A transaction that is nested in no other one: what `outbox.begin(&db)` begins. It dereferences to SeaORM's.
#[derive(Debug)]
pub struct OutermostTransaction(DatabaseTransaction);

impl Deref for OutermostTransaction {
    type Target = DatabaseTransaction;

    fn deref(&self) -> &DatabaseTransaction {
        &self.0
    }
}

impl Begin<SeaOrm> for &DatabaseConnection {
    type Transaction = OutermostTransaction;
    type Error = DbErr;

    /// Begins with `BEGIN IMMEDIATE` on SQLite: a deferred transaction that reads first and writes later fails with
    /// `SQLITE_BUSY` whenever another connection has written in between, and no waiting helps it.
    async fn begin(self) -> Result<OutermostTransaction, DbErr> {
        let mode = SqliteTransactionMode::Immediate;
        let connection = self.clone();
        let begin = async move {
            let sqlite_transaction_mode = (connection.get_database_backend() == DbBackend::Sqlite).then_some(mode);
            let options = TransactionOptions { sqlite_transaction_mode, ..TransactionOptions::default() };
            connection.begin_with_options(options).await
        };
        // sqlx 0.9.0 counts a transaction only once `BEGIN` has been answered. Dropped before that, it returns the
        // connection to the pool inside a transaction that nobody knows of; so `BEGIN` is always seen through.
        Uninterrupted::new(Box::pin(begin)).await.map(OutermostTransaction)
    }
}

#[diagnostic::do_not_recommend]
impl Connection<SeaOrm> for OutermostTransaction {
    type Error = DbErr;

    fn dialect(&self) -> Dialect {
        Connection::dialect(&self.0)
    }

    /// The type says so.
    fn in_transaction(&mut self) -> Option<bool> {
        Some(true)
    }

    fn insert(&mut self, insert: &Insert<'_>) -> impl Future<Output = Result<Vec<i64>, DbErr>> + Send {
        Connection::insert(&mut self.0, insert)
    }

    fn run(&mut self, command: &Command<'_>) -> impl Future<Output = Result<u64, DbErr>> + Send {
        Connection::run(&mut self.0, command)
    }

    fn read(&mut self, lookup: &Lookup<'_>) -> impl Future<Output = Result<Vec<String>, DbErr>> + Send {
        Connection::read(&mut self.0, lookup)
    }

    fn id(&self) -> ConnectionId {
        Connection::id(&self.0)
    }
}

impl Finish<SeaOrm> for OutermostTransaction {
    type Error = DbErr;
    type Inner = DatabaseTransaction;
    // A nested transaction is an object of its own, which can be kept while events are written on this one.
    const IS_ONLY_BORROWED: bool = false;

    fn commit_is_final(&self) -> bool {
        true
    }

    fn inner(&self) -> &DatabaseTransaction {
        &self.0
    }

    fn inner_mut(&mut self) -> &mut DatabaseTransaction {
        &mut self.0
    }

    /// SeaORM's own commit says that all is well where it is not: it releases a savepoint where a nested transaction is open, PostgreSQL answers the
    /// `COMMIT` of a failed transaction with `ROLLBACK`, and MySQL and SQLite commit nothing, or only what came last, where they have rolled the
    /// transaction back. So each of these is looked for before it.
    async fn commit_verified(self, probe: &Probe) -> Result<Vec<RowId>, DbErr> {
        let Self(transaction) = self;
        let found = find(&transaction, probe).await?;
        match transaction.get_database_backend() {
            DbBackend::Postgres => commit_and_chain(transaction, COMMIT_POSTGRES).await?,
            DbBackend::MySql => commit_and_chain(transaction, COMMIT_MYSQL).await?,
            _ => commit_sqlite(transaction).await?,
        }
        Ok(found)
    }

    async fn rollback(self) -> Result<(), DbErr> {
        self.0.rollback().await
    }
}

/// A transaction of the user's own. SeaORM does not say whether it is nested in another one, which a commit by text would end.
impl Finish<SeaOrm> for DatabaseTransaction {
    type Error = DbErr;
    type Inner = Self;

    fn inner(&self) -> &Self {
        self
    }

    fn inner_mut(&mut self) -> &mut Self {
        self
    }

    async fn commit_verified(self, probe: &Probe) -> Result<Vec<RowId>, DbErr> {
        let found = find(&self, probe).await?;
        match self.get_database_backend() {
            DbBackend::Postgres => self.execute_unprepared(STILL_OPEN_POSTGRES).await.map(drop)?,
            // As in `commit_sqlite`, the one that has asked stays open.
            DbBackend::Sqlite if !is_open_sqlite(&self).await? => return Err(ended()),
            DbBackend::Sqlite => {}
            _ => ensure_open(&self).await?,
        }
        DatabaseTransaction::commit(self).await?;
        Ok(found)
    }

    async fn rollback(self) -> Result<(), DbErr> {
        DatabaseTransaction::rollback(self).await
    }
}

/// The rows of a probe that are there.
async fn find(transaction: &DatabaseTransaction, probe: &Probe) -> Result<Vec<RowId>, DbErr> {
    let Some(sql) = &probe.sql else { return Ok(Vec::new()) };
    let probe = Statement::from_string(transaction.get_database_backend(), sql);
    transaction.query_all_raw(probe).await?.iter().map(row_id).collect()
}

/// Fails in a transaction in which a statement has failed, and where none is open.
const STILL_OPEN_POSTGRES: &str = "SAVEPOINT pillarbox";

/// Commits, with that before it, and begins another transaction.
const COMMIT_POSTGRES: &str = "SAVEPOINT pillarbox; COMMIT AND CHAIN";

/// The same on MySQL, where a savepoint is gone as soon as it is set if no transaction is open.
const COMMIT_MYSQL: &str = "SAVEPOINT pillarbox; RELEASE SAVEPOINT pillarbox; COMMIT AND CHAIN";

/// Commits by a text of ours, which fails where it cannot be, and leaves SeaORM the empty transaction that follows. At that SeaORM itself fails where a
/// nested one is open; no statement would tell before, since a savepoint that a nested one was rolled back to looks like one of an open one.
async fn commit_and_chain(transaction: DatabaseTransaction, commit: &str) -> Result<(), DbErr> {
    transaction.execute_unprepared(commit).await?;
    transaction.commit().await.map_err(|error| {
        let problem =
            "the transaction has committed, and SeaORM cannot end its own; end nested transactions before this one";
        DbErr::Custom(format!("{problem}: {error}"))
    })
}

/// SQLite has no `COMMIT AND CHAIN`. Of the savepoints that sqlx, on which SeaORM runs, sets for nested transactions the first is there if one is open;
/// or if one was rolled back, which leaves it.
async fn commit_sqlite(transaction: DatabaseTransaction) -> Result<(), DbErr> {
    if !is_open_sqlite(&transaction).await? {
        // The transaction that has asked stays open, so that SeaORM has one to roll back: it would count this one for ever.
        return Err(ended());
    }
    if release_sqlite(&transaction, "_sqlx_savepoint_1").await? {
        if is_open_sqlite(&transaction).await? {
            ensure_none_nested_sqlite(&transaction).await?;
        } else {
            // sqlx takes this transaction for a nested one, as it does once SQLite itself has ended one of the connection. So this was the commit;
            // SeaORM needs something to end.
            transaction.execute_unprepared("ROLLBACK; SAVEPOINT _sqlx_savepoint_1").await?;
        }
    }
    transaction.commit().await
}

/// Fails if a nested transaction is open, of which the next one tells: the number in the name of its savepoint counts those that are.
async fn ensure_none_nested_sqlite(transaction: &DatabaseTransaction) -> Result<(), DbErr> {
    let next = transaction.begin().await?;
    if !release_sqlite(&next, "_sqlx_savepoint_2").await? {
        return next.commit().await;
    }
    // Nothing is left to commit when the nested one ends, and each end finds something to end.
    next.execute_unprepared("ROLLBACK; BEGIN; SAVEPOINT _sqlx_savepoint_1; SAVEPOINT _sqlx_savepoint_2").await?;
    let problem =
        "a nested transaction is open, so that nothing was committed; end nested transactions before this one";
    Err(DbErr::Custom(problem.to_owned()))
}

/// Releases a savepoint; false if there is none of that name.
async fn release_sqlite(transaction: &DatabaseTransaction, savepoint: &str) -> Result<bool, DbErr> {
    match transaction.execute_unprepared(&format!("RELEASE SAVEPOINT {savepoint}")).await {
        Ok(_) => Ok(true),
        Err(error) if error.to_string().contains("no such savepoint") => Ok(false),
        Err(error) => Err(error),
    }
}

/// A row that a probe has found.
fn row_id(row: &QueryResult) -> Result<RowId, DbErr> {
    let (event_id, handler): (String, Option<String>) = (row.try_get_by_index(1)?, row.try_get_by_index(2)?);
    let event_id = EventId::from_stored(&event_id);
    Ok(RowId { seq: row.try_get_by_index(0)?, event_id, handler: handler.map(String::into_boxed_str) })
}
