use std::fmt;
use std::future::{Future, ready};
#[cfg(feature = "sqlite")]
use std::time::Duration;

use diesel::connection::{AnsiTransactionManager, TransactionManager, TransactionManagerStatus};
use diesel::r2d2::{ConnectionManager, PooledConnection, R2D2Connection};
use diesel::result::Error;
#[cfg(feature = "sqlite")]
use diesel::sql_types::BigInt;
use diesel::{QueryResult, RunQueryDsl as _, sql_query};
use pillarbox_core::store::RowId;
use pillarbox_core::write::{
    Begin, Command, Connection, ConnectionId, Dialect, Finish, Insert, Lookup, Probe, Synchronous,
};

use crate::Diesel;
use crate::rows::{FoundRow, Line, Seq};
use crate::statement::Bound;

/// A connection whose transaction is open, which is rolled back when it is dropped. Returned by the guard's `begin`, which
/// dereferences to the connection.
pub struct Transaction<'a, C: Blocks>(&'a mut C);

/// A connection of diesel's own, which blocks its thread.
#[doc(hidden)]
pub trait Blocks: diesel::Connection<TransactionManager = AnsiTransactionManager> {
    const DIALECT: Dialect;
    /// A statement that fails where `COMMIT` would seem to succeed, though it rolls back or has nothing to commit.
    const BEFORE_COMMIT: Option<&'static str>;
    /// The database ends a transaction by itself after some errors, and diesel does not notice.
    const ENDS_TRANSACTIONS: bool;

    fn insert(&mut self, insert: &Insert<'_>) -> QueryResult<Vec<i64>>;
    fn run(&mut self, command: &Command<'_>) -> QueryResult<u64>;
    fn read(&mut self, lookup: &Lookup<'_>) -> QueryResult<Vec<String>>;
    fn probe(&mut self, sql: &str) -> QueryResult<Vec<RowId>>;
}

macro_rules! blocks {
    ($connection:ty, $dialect:expr, $begin:expr, $before_commit:expr, $ends_transactions:expr) => {
        impl Blocks for $connection {
            const DIALECT: Dialect = $dialect;
            const BEFORE_COMMIT: Option<&'static str> = $before_commit;
            const ENDS_TRANSACTIONS: bool = $ends_transactions;

            fn insert(&mut self, insert: &Insert<'_>) -> QueryResult<Vec<i64>> {
                ensure_open(self)?;
                let mut seqs = Vec::with_capacity(insert.rows.len());
                for statement in &insert.statements {
                    let first = seqs.len();
                    seqs.extend(Bound(statement).load::<Seq>(self)?.into_iter().map(|Seq(seq)| seq));
                    // `RETURNING` promises no order; the store promises that they ascend in the order of the rows.
                    seqs[first..].sort_unstable();
                }
                Ok(seqs)
            }

            fn run(&mut self, command: &Command<'_>) -> QueryResult<u64> {
                ensure_open(self)?;
                let mut rows = 0;
                for statement in &command.statements {
                    // Statements about savepoints too: of the databases, MySQL alone prepares none, and it has no blocking connection here.
                    rows = Bound(statement).execute(self)?;
                }
                Ok(rows as u64)
            }

            fn read(&mut self, lookup: &Lookup<'_>) -> QueryResult<Vec<String>> {
                let mut texts = Vec::new();
                for statement in &lookup.statements {
                    texts.extend(Bound(statement).load::<Line>(self)?.into_iter().map(|Line(text)| text));
                }
                Ok(texts)
            }

            fn probe(&mut self, sql: &str) -> QueryResult<Vec<RowId>> {
                Ok(sql_query(sql).load::<FoundRow>(self)?.into_iter().map(|FoundRow(row)| row).collect())
            }
        }

        impl Synchronous<Diesel> for $connection {}

        /// The connection of a transaction that diesel's own `transaction` has begun.
        #[diagnostic::do_not_recommend]
        impl Connection<Diesel> for $connection {
            type Error = Error;

            fn dialect(&self) -> Dialect {
                Self::DIALECT
            }

            fn in_transaction(&mut self) -> Option<bool> {
                Some(depth(self) > 0)
            }

            fn insert(&mut self, insert: &Insert<'_>) -> impl Future<Output = QueryResult<Vec<i64>>> + Send {
                ready(Blocks::insert(self, insert))
            }

            fn run(&mut self, command: &Command<'_>) -> impl Future<Output = QueryResult<u64>> + Send {
                ready(Blocks::run(self, command))
            }

            fn read(&mut self, lookup: &Lookup<'_>) -> impl Future<Output = QueryResult<Vec<String>>> + Send {
                ready(Blocks::read(self, lookup))
            }
        }

        impl Synchronous<Diesel> for &mut $connection {}

        impl<'a> Begin<Diesel> for &'a mut $connection {
            type Transaction = Transaction<'a, $connection>;
            type Error = Error;

            /// Fails in a transaction that diesel has begun. On PostgreSQL one that was begun by executing the text `BEGIN` is not seen, and the
            /// guard's commit or rollback ends it.
            async fn begin(self) -> QueryResult<Transaction<'a, $connection>> {
                $begin(self)?;
                Ok(Transaction(self))
            }
        }
    };
}

#[cfg(feature = "postgres")]
blocks!(diesel::PgConnection, Dialect::POSTGRES, begin, Some("SAVEPOINT pillarbox"), false);
// SQLite itself refuses to commit where no transaction is open.
#[cfg(feature = "sqlite")]
blocks!(diesel::SqliteConnection, Dialect::SQLITE, begin_immediate, None, true);

#[cfg(feature = "postgres")]
fn begin(connection: &mut diesel::PgConnection) -> QueryResult<()> {
    AnsiTransactionManager::begin_transaction_sql(connection, "BEGIN")
}

/// Begins with the write lock: a deferred transaction that reads first and writes later fails with `SQLITE_BUSY` whenever another connection has
/// written in between, and no waiting helps it.
///
/// diesel has SQLite fail at once while another connection holds the lock. So it is tried again for about [`LOCK_WAIT`], unless the
/// connection has a `busy_timeout` of its own.
#[cfg(feature = "sqlite")]
#[expect(clippy::disallowed_methods, reason = "diesel blocks its thread, which may wait")]
fn begin_immediate(connection: &mut diesel::SqliteConnection) -> QueryResult<()> {
    let mut waited = Duration::ZERO;
    loop {
        match AnsiTransactionManager::begin_transaction_sql(&mut *connection, "BEGIN IMMEDIATE") {
            Err(error) if is_locked(&error) && waited < LOCK_WAIT && !waits_by_itself(connection)? => {
                std::thread::sleep(PAUSE);
                waited += PAUSE;
            }
            begun => return begun,
        }
    }
}

/// The time for which the write lock of SQLite is waited for; rusqlite waits as long.
#[cfg(feature = "sqlite")]
const LOCK_WAIT: Duration = Duration::from_secs(5);

/// Short, because a busy writer leaves the lock free for moments only.
#[cfg(feature = "sqlite")]
const PAUSE: Duration = Duration::from_millis(1);

#[cfg(feature = "sqlite")]
fn is_locked(error: &Error) -> bool {
    matches!(error, Error::DatabaseError(_, problem) if problem.message().contains("database is locked"))
}

#[cfg(feature = "sqlite")]
fn waits_by_itself(connection: &mut diesel::SqliteConnection) -> QueryResult<bool> {
    let timeout: i64 = diesel::dsl::sql::<BigInt>("PRAGMA busy_timeout").get_result(connection)?;
    Ok(timeout > 0)
}

/// Fails where no transaction is open: what is sent next would commit by itself, without the business rows. Within a transaction `BEGIN` fails, and
/// that is all it does.
fn ensure_open<C: Blocks>(connection: &mut C) -> QueryResult<()> {
    if !C::ENDS_TRANSACTIONS {
        return Ok(());
    }
    match connection.batch_execute("BEGIN") {
        Err(Error::DatabaseError(_, problem)) if problem.message().contains("within a transaction") => Ok(()),
        Err(error) => Err(error),
        Ok(()) => {
            connection.batch_execute("ROLLBACK")?;
            Err(Error::NotInTransaction)
        }
    }
}

/// The number of transactions and savepoints that diesel has begun; none on a connection that is broken.
fn depth<C: Blocks>(connection: &mut C) -> u32 {
    match AnsiTransactionManager::transaction_manager_status_mut(connection) {
        TransactionManagerStatus::Valid(status) => status.transaction_depth().map_or(0, u32::from),
        TransactionManagerStatus::InError => 0,
    }
}

impl<C> Synchronous<Diesel> for PooledConnection<ConnectionManager<C>> where C: R2D2Connection + Blocks + 'static {}

/// The connection of a pool of r2d2, in diesel's own `transaction`.
#[diagnostic::do_not_recommend]
impl<C> Connection<Diesel> for PooledConnection<ConnectionManager<C>>
where
    C: R2D2Connection + Blocks + 'static,
{
    type Error = Error;

    fn dialect(&self) -> Dialect {
        C::DIALECT
    }

    fn in_transaction(&mut self) -> Option<bool> {
        Some(depth::<C>(self) > 0)
    }

    fn insert(&mut self, insert: &Insert<'_>) -> impl Future<Output = QueryResult<Vec<i64>>> + Send {
        ready(C::insert(self, insert))
    }

    fn run(&mut self, command: &Command<'_>) -> impl Future<Output = QueryResult<u64>> + Send {
        ready(C::run(self, command))
    }

    fn read(&mut self, lookup: &Lookup<'_>) -> impl Future<Output = QueryResult<Vec<String>>> + Send {
        ready(C::read(self, lookup))
    }

    fn id(&self) -> ConnectionId {
        ConnectionId::of::<C>(self)
    }
}

impl<C: Blocks> Synchronous<Diesel> for Transaction<'_, C> {}

#[diagnostic::do_not_recommend]
impl<C: Blocks> Connection<Diesel> for Transaction<'_, C> {
    type Error = Error;

    fn dialect(&self) -> Dialect {
        C::DIALECT
    }

    fn in_transaction(&mut self) -> Option<bool> {
        Some(depth(self.0) > 0)
    }

    fn insert(&mut self, insert: &Insert<'_>) -> impl Future<Output = QueryResult<Vec<i64>>> + Send {
        ready(self.0.insert(insert))
    }

    fn run(&mut self, command: &Command<'_>) -> impl Future<Output = QueryResult<u64>> + Send {
        ready(self.0.run(command))
    }

    fn read(&mut self, lookup: &Lookup<'_>) -> impl Future<Output = QueryResult<Vec<String>>> + Send {
        ready(self.0.read(lookup))
    }

    /// Nested transactions are of the same connection.
    fn id(&self) -> ConnectionId {
        ConnectionId::of::<C>(self.0)
    }
}

impl<C: Blocks> Finish<Diesel> for Transaction<'_, C> {
    type Error = Error;
    type Inner = C;
    const IS_ONLY_BORROWED: bool = true;

    fn commit_is_final(&self) -> bool {
        true
    }

    fn inner(&self) -> &C {
        self.0
    }

    fn inner_mut(&mut self) -> &mut C {
        self.0
    }

    /// PostgreSQL answers the `COMMIT` of a failed transaction with `ROLLBACK`, which diesel takes for success; a savepoint fails
    /// there, and where somebody has ended the transaction by a statement of their own.
    fn commit_verified(self, probe: &Probe) -> impl Future<Output = QueryResult<Vec<RowId>>> + Send {
        ready(self.commit(probe))
    }

    fn rollback(self) -> impl Future<Output = QueryResult<()>> + Send {
        ready(AnsiTransactionManager::rollback_transaction(&mut *self.0))
    }
}

impl<C: Blocks> Transaction<'_, C> {
    fn commit(self, probe: &Probe) -> QueryResult<Vec<RowId>> {
        match depth(self.0) {
            0 => return Err(Error::NotInTransaction),
            1 => {}
            // A savepoint that somebody has begun by hand is still open: releasing it would commit nothing.
            _ => return Err(Error::AlreadyInTransaction),
        }
        if let Some(statement) = C::BEFORE_COMMIT {
            self.0.batch_execute(statement)?;
        }
        let found = match &probe.sql {
            None => Vec::new(),
            Some(sql) => self.0.probe(sql)?,
        };
        AnsiTransactionManager::commit_transaction(&mut *self.0)?;
        Ok(found)
    }
}

/// Rolls back whatever is still open. A connection that cannot is broken, by diesel's own account, and no pool keeps it.
impl<C: Blocks> Drop for Transaction<'_, C> {
    fn drop(&mut self) {
        while depth(self.0) > 0 {
            if AnsiTransactionManager::rollback_transaction(&mut *self.0).is_err() {
                break;
            }
        }
    }
}

impl<C: Blocks> fmt::Debug for Transaction<'_, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Transaction").field("dialect", &C::DIALECT).finish_non_exhaustive()
    }
}
