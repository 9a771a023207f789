use std::fmt;
use std::future::Future;
use std::ops::DerefMut;
use std::pin::pin;
use std::task::{Context, Waker};

use diesel::connection::TransactionDepthChange::DecreaseDepth;
use diesel::connection::TransactionManagerStatus;
use diesel::result::{Error, UnexpectedEndOfRow};
use diesel::{QueryResult, sql_query};
use diesel_async::pooled_connection::PoolError as DriverError;
use diesel_async::pooled_connection::deadpool::{Object, Pool, PoolError};
use diesel_async::{
    AnsiTransactionManager, AsyncConnection, RunQueryDsl as _, SimpleAsyncConnection as _, TransactionManager as _,
};
use pillarbox_core::store::RowId;
use pillarbox_core::write::{Action, Begin, Command, Connection, ConnectionId, Dialect, Finish, Insert, Lookup, Probe};

use crate::Diesel;
use crate::rows::{FoundRow, Line, Seq};
use crate::statement::Bound;

/// A connection of diesel-async.
#[doc(hidden)]
pub trait Awaits: AsyncConnection<TransactionManager = AnsiTransactionManager> + 'static {
    const DIALECT: Dialect;
    /// A statement that fails where `COMMIT` would seem to succeed, though it rolls back or has nothing to commit.
    const STILL_OPEN: &'static str;
    /// The driver takes a statement while the answer to the one before is not read.
    const PIPELINES: bool;

    fn insert(&mut self, insert: &Insert<'_>) -> impl Future<Output = QueryResult<Vec<i64>>> + Send;
    fn run(&mut self, command: &Command<'_>) -> impl Future<Output = QueryResult<u64>> + Send;
    fn read(&mut self, lookup: &Lookup<'_>) -> impl Future<Output = QueryResult<Vec<String>>> + Send;
    fn probe(&mut self, sql: &str) -> impl Future<Output = QueryResult<Vec<RowId>>> + Send;
}

macro_rules! awaits {
    ($connection:ty, $dialect:expr, $still_open:expr, $pipelines:expr) => {
        impl Awaits for $connection {
            const DIALECT: Dialect = $dialect;
            const STILL_OPEN: &'static str = $still_open;
            const PIPELINES: bool = $pipelines;

            async fn insert(&mut self, insert: &Insert<'_>) -> QueryResult<Vec<i64>> {
                ensure_open(self).await?;
                let mut seqs = Vec::with_capacity(insert.rows.len());
                for statement in &insert.statements {
                    let first = seqs.len();
                    let rows = returned(Bound(statement).load::<Seq>(self).await)?;
                    seqs.extend(rows.into_iter().map(|Seq(seq)| seq));
                    // `RETURNING` promises no order; the store promises that they ascend in the order of the rows.
                    seqs[first..].sort_unstable();
                }
                // MySQL returns nothing from an insert. Of a single row it says what was generated.
                if seqs.is_empty() && insert.rows.len() == 1 && Self::DIALECT == Dialect::MYSQL {
                    let generated = sql_query("SELECT CAST(LAST_INSERT_ID() AS SIGNED)").load::<Seq>(self).await?;
                    seqs.extend(generated.into_iter().map(|Seq(seq)| seq));
                }
                Ok(seqs)
            }

            async fn run(&mut self, command: &Command<'_>) -> QueryResult<u64> {
                ensure_open(self).await?;
                let mut rows = 0;
                for statement in &command.statements {
                    // MySQL prepares no statement about a savepoint, so it is sent as text.
                    if matches!(command.action, Action::Savepoint) {
                        self.batch_execute(&statement.sql).await?;
                        continue;
                    }
                    rows = Bound(statement).execute(self).await?;
                }
                Ok(rows as u64)
            }

            async fn read(&mut self, lookup: &Lookup<'_>) -> QueryResult<Vec<String>> {
                let mut texts = Vec::new();
                for statement in &lookup.statements {
                    texts.extend(Bound(statement).load::<Line>(self).await?.into_iter().map(|Line(text)| text));
                }
                Ok(texts)
            }

            async fn probe(&mut self, sql: &str) -> QueryResult<Vec<RowId>> {
                let rows: Vec<FoundRow> = sql_query(sql).load(self).await?;
                Ok(rows.into_iter().map(|FoundRow(row)| row).collect())
            }
        }

        /// The connection of a transaction that diesel-async's own `transaction` has begun.
        #[diagnostic::do_not_recommend]
        impl Connection<Diesel> for $connection {
            type Error = Error;

            fn dialect(&self) -> Dialect {
                Self::DIALECT
            }

            fn in_transaction(&mut self) -> Option<bool> {
                Some(depth(self) > 0)
            }

            async fn insert(&mut self, insert: &Insert<'_>) -> QueryResult<Vec<i64>> {
                Awaits::insert(self, insert).await
            }

            async fn run(&mut self, command: &Command<'_>) -> QueryResult<u64> {
                Awaits::run(self, command).await
            }

            async fn read(&mut self, lookup: &Lookup<'_>) -> QueryResult<Vec<String>> {
                Awaits::read(self, lookup).await
            }
        }

        impl<'a> Begin<Diesel> for &'a mut $connection {
            type Transaction = AsyncTransaction<&'a mut $connection>;
            type Error = Error;

            /// Fails in a transaction that diesel-async has begun. One that was begun by executing the text `BEGIN` is not seen: on
            /// PostgreSQL the guard's commit or rollback ends it, and on MySQL it is committed.
            async fn begin(self) -> QueryResult<AsyncTransaction<&'a mut $connection>> {
                AsyncTransaction::begin(self).await
            }
        }

        impl Holder for Object<$connection> {
            type Error = PoolError;

            fn error(error: Error) -> PoolError {
                PoolError::Backend(DriverError::QueryError(error))
            }
        }

        impl Begin<Diesel> for &Pool<$connection> {
            type Transaction = AsyncTransaction<Object<$connection>>;
            type Error = PoolError;

            async fn begin(self) -> Result<AsyncTransaction<Object<$connection>>, PoolError> {
                AsyncTransaction::begin(self.get().await?).await
            }
        }

        /// The connection of a pool, in diesel-async's own `transaction`.
        #[diagnostic::do_not_recommend]
        impl Connection<Diesel> for Object<$connection> {
            type Error = Error;

            fn dialect(&self) -> Dialect {
                <$connection>::DIALECT
            }

            fn in_transaction(&mut self) -> Option<bool> {
                Some(depth::<$connection>(self) > 0)
            }

            async fn insert(&mut self, insert: &Insert<'_>) -> QueryResult<Vec<i64>> {
                Awaits::insert(&mut **self, insert).await
            }

            async fn run(&mut self, command: &Command<'_>) -> QueryResult<u64> {
                Awaits::run(&mut **self, command).await
            }

            async fn read(&mut self, lookup: &Lookup<'_>) -> QueryResult<Vec<String>> {
                Awaits::read(&mut **self, lookup).await
            }

            fn id(&self) -> ConnectionId {
                ConnectionId::of::<$connection>(self)
            }
        }
    };
}

#[cfg(feature = "async-postgres")]
awaits!(diesel_async::AsyncPgConnection, Dialect::POSTGRES, "SAVEPOINT pillarbox", true);
// A savepoint is gone as soon as it is set, where no transaction is open.
#[cfg(feature = "async-mysql")]
awaits!(diesel_async::AsyncMysqlConnection, Dialect::MYSQL, "SAVEPOINT pillarbox; RELEASE SAVEPOINT pillarbox", false);

/// After a deadlock MySQL has rolled back the whole transaction, and what it is sent next commits by itself; so it is asked before
/// each write.
async fn ensure_open<C: Awaits>(connection: &mut C) -> QueryResult<()> {
    if C::DIALECT == Dialect::MYSQL {
        connection.batch_execute(C::STILL_OPEN).await?;
    }
    Ok(())
}

/// The rows of an insert: none where the server answers without any, which diesel-async takes for an error.
fn returned(rows: QueryResult<Vec<Seq>>) -> QueryResult<Vec<Seq>> {
    match rows {
        Err(Error::DeserializationError(error)) if error.is::<UnexpectedEndOfRow>() => Ok(Vec::new()),
        rows => rows,
    }
}

/// The number of transactions and savepoints that diesel-async has begun; none on a connection that is broken.
fn depth<C: Awaits>(connection: &mut C) -> u32 {
    match AnsiTransactionManager::transaction_manager_status_mut(connection) {
        TransactionManagerStatus::Valid(status) => status.transaction_depth().map_or(0, u32::from),
        TransactionManagerStatus::InError => 0,
    }
}

/// Begins, or fails inside of another transaction, where a savepoint would be all there is to commit.
async fn begin<C: Awaits>(connection: &mut C) -> QueryResult<()> {
    AnsiTransactionManager::begin_transaction_sql(connection, "BEGIN").await
}

/// PostgreSQL answers the `COMMIT` of a failed transaction with `ROLLBACK`, and MySQL commits what came after a transaction that it
/// has rolled back; diesel-async takes both for success. A savepoint fails there, and where somebody has ended the transaction by a
/// statement of their own.
async fn commit<C: Awaits>(connection: &mut C, probe: &Probe) -> QueryResult<Vec<RowId>> {
    match depth(connection) {
        0 => return Err(Error::NotInTransaction),
        1 => {}
        // A savepoint that somebody has begun by hand is still open: releasing it would commit nothing.
        _ => return Err(Error::AlreadyInTransaction),
    }
    connection.batch_execute(C::STILL_OPEN).await?;
    let found = match &probe.sql {
        None => Vec::new(),
        Some(sql) => connection.probe(sql).await?,
    };
    AnsiTransactionManager::commit_transaction(connection).await?;
    Ok(found)
}

/// A connection that a transaction holds until its end: borrowed, or of a pool.
#[doc(hidden)]
pub trait Holder: DerefMut<Target: Awaits + Sized> + Send {
    type Error: std::error::Error + Send + Sync + 'static;

    fn error(error: Error) -> Self::Error;
}

impl<C: Awaits> Holder for &mut C {
    type Error = Error;

    fn error(error: Error) -> Error {
        error
    }
}

/// A connection whose transaction is open, which is rolled back when it is dropped. The guard dereferences to the connection.
pub struct AsyncTransaction<H: Holder>(H);

impl<H: Holder> AsyncTransaction<H> {
    /// Open before `BEGIN` is sent, so that a future dropped in between rolls back what may have begun; but not where another transaction is
    /// open, which that would roll back.
    async fn begin(mut holder: H) -> Result<Self, H::Error> {
        if depth(&mut *holder) > 0 {
            return Err(H::error(Error::AlreadyInTransaction));
        }
        let mut transaction = Self(holder);
        begin(&mut *transaction.0).await.map_err(H::error)?;
        Ok(transaction)
    }
}

#[diagnostic::do_not_recommend]
impl<H: Holder> Connection<Diesel> for AsyncTransaction<H> {
    type Error = H::Error;

    fn dialect(&self) -> Dialect {
        H::Target::DIALECT
    }

    fn in_transaction(&mut self) -> Option<bool> {
        Some(depth(&mut *self.0) > 0)
    }

    async fn insert(&mut self, insert: &Insert<'_>) -> Result<Vec<i64>, H::Error> {
        self.0.deref_mut().insert(insert).await.map_err(H::error)
    }

    async fn run(&mut self, command: &Command<'_>) -> Result<u64, H::Error> {
        self.0.deref_mut().run(command).await.map_err(H::error)
    }

    async fn read(&mut self, lookup: &Lookup<'_>) -> Result<Vec<String>, H::Error> {
        self.0.deref_mut().read(lookup).await.map_err(H::error)
    }

    /// Nested transactions are of the same connection.
    fn id(&self) -> ConnectionId {
        ConnectionId::of::<H::Target>(&self.0)
    }
}

impl<H: Holder> Finish<Diesel> for AsyncTransaction<H> {
    type Error = H::Error;
    type Inner = H::Target;
    const IS_ONLY_BORROWED: bool = true;

    fn commit_is_final(&self) -> bool {
        true
    }

    fn inner(&self) -> &H::Target {
        &self.0
    }

    fn inner_mut(&mut self) -> &mut H::Target {
        &mut self.0
    }

    async fn commit_verified(mut self, probe: &Probe) -> Result<Vec<RowId>, H::Error> {
        commit(&mut *self.0, probe).await.map_err(H::error)
    }

    async fn rollback(mut self) -> Result<(), H::Error> {
        AnsiTransactionManager::rollback_transaction(&mut *self.0).await.map_err(H::error)
    }
}

/// Sends `ROLLBACK` if the transaction may be open: drivers do that when a statement is first polled.
///
/// A connection of PostgreSQL is as good as new then, since what it is sent next comes after that. One of MySQL, which would have to
/// read the answer first, and one that was dropped within `BEGIN` or `COMMIT` stay broken by diesel-async's account.
impl<H: Holder> Drop for AsyncTransaction<H> {
    fn drop(&mut self) {
        let connection = &mut *self.0;
        if !AnsiTransactionManager::is_broken_transaction_manager(connection) {
            return;
        }
        {
            let mut rollback = pin!(connection.batch_execute("ROLLBACK"));
            let _ = rollback.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        }
        let status = AnsiTransactionManager::transaction_manager_status_mut(connection);
        if let (true, TransactionManagerStatus::Valid(status)) = (<H::Target>::PIPELINES, status) {
            while status.transaction_depth().is_some() && status.change_transaction_depth(DecreaseDepth).is_ok() {}
        }
    }
}

impl<H: Holder> fmt::Debug for AsyncTransaction<H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AsyncTransaction").field("dialect", &<H::Target>::DIALECT).finish_non_exhaustive()
    }
}
