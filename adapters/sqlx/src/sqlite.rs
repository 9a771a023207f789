use std::time::Duration;

use pillarbox_core::clock::{Random as _, SystemRandom};
use pillarbox_core::store::RowId;
use pillarbox_core::write::{Begin, Bind, Command, Connection, Dialect, Finish, Insert, Lookup, Probe, Statement};
use sqlx::query::Query;
use sqlx::sqlite::SqliteArguments;
use sqlx::{
    AssertSqlSafe, Connection as _, Executor as _, Row as _, SqlSafeStr as _, Sqlite, SqliteConnection, SqlitePool,
    SqliteTransaction,
};
use tokio::time::{Instant, sleep};

use crate::Sqlx;
use crate::binds::{row_ids, unsupported};
use crate::transaction::is_outermost;

#[diagnostic::do_not_recommend]
impl Connection<Sqlx> for SqliteConnection {
    type Error = sqlx::Error;

    fn dialect(&self) -> Dialect {
        Dialect::SQLITE
    }

    fn in_transaction(&mut self) -> Option<bool> {
        Some(self.is_in_transaction())
    }

    async fn insert(&mut self, insert: &Insert<'_>) -> Result<Vec<i64>, sqlx::Error> {
        ensure_open(self).await?;
        let mut seqs = Vec::with_capacity(insert.rows.len());
        for statement in &insert.statements {
            let first = seqs.len();
            for row in query(statement)?.fetch_all(&mut *self).await? {
                seqs.push(row.try_get(0)?);
            }
            // `RETURNING` promises no order; the store promises that they ascend in the order of the rows.
            seqs[first..].sort_unstable();
        }
        Ok(seqs)
    }

    async fn run(&mut self, command: &Command<'_>) -> Result<u64, sqlx::Error> {
        ensure_open(self).await?;
        let mut rows = 0;
        for statement in &command.statements {
            rows = query(statement)?.execute(&mut *self).await?.rows_affected();
        }
        Ok(rows)
    }

    async fn read(&mut self, lookup: &Lookup<'_>) -> Result<Vec<String>, sqlx::Error> {
        let mut texts = Vec::new();
        for statement in &lookup.statements {
            for row in query(statement)?.fetch_all(&mut *self).await? {
                texts.push(row.try_get(0)?);
            }
        }
        Ok(texts)
    }
}

/// Fails where no transaction is open: what is sent next would commit by itself, without the business rows.
///
/// SQLite ends a whole transaction by itself after some errors, such as a full disk, and sqlx queues the rollback of a nested one whose beginning
/// was given up, which may end the one around it. sqlx counts neither. Within a transaction `BEGIN` fails, and that is all it does.
async fn ensure_open(connection: &mut SqliteConnection) -> Result<(), sqlx::Error> {
    match connection.execute("BEGIN").await {
        Err(sqlx::Error::Database(error)) if error.message().contains("within a transaction") => Ok(()),
        Err(error) => Err(error),
        Ok(_) => {
            connection.execute("ROLLBACK").await?;
            let ended = "the transaction is not open any more: a statement, or SQLite itself after an error, has ended it; begin a new one and repeat all of it";
            Err(sqlx::Error::Protocol(ended.to_owned()))
        }
    }
}

impl Begin<Sqlx> for &SqlitePool {
    type Transaction = SqliteTransaction<'static>;
    type Error = sqlx::Error;

    /// Begins with [`begin_immediate`].
    async fn begin(self) -> Result<SqliteTransaction<'static>, sqlx::Error> {
        begin_immediate(self).await
    }
}

impl Finish<Sqlx> for SqliteTransaction<'_> {
    type Error = sqlx::Error;
    type Inner = SqliteConnection;
    const IS_ONLY_BORROWED: bool = true;

    /// sqlx takes a transaction for a nested one where SQLite itself has ended an earlier one of the connection, so that none is refused for it: the
    /// rows are looked up.
    fn commit_is_final(&self) -> bool {
        is_outermost::<Sqlite>(self)
    }

    fn inner(&self) -> &SqliteConnection {
        self
    }

    fn inner_mut(&mut self) -> &mut SqliteConnection {
        self
    }

    /// SQLite itself refuses to commit where no transaction is open; but sqlx does not ask it where it knows of none, such as after a nested
    /// transaction that failed to begin, and says that it has committed.
    async fn commit_verified(mut self, probe: &Probe) -> Result<Vec<RowId>, sqlx::Error> {
        // Behind the rollbacks that were queued.
        self.ping().await?;
        if !self.is_in_transaction() {
            return Err(sqlx::Error::Protocol(
                "the transaction is not open any more; nothing was committed".to_owned(),
            ));
        }
        let found = match &probe.sql {
            None => Vec::new(),
            Some(sql) => row_ids(&self.fetch_all(sqlx::raw_sql(AssertSqlSafe(sql.clone()))).await?)?,
        };
        SqliteTransaction::commit(self).await?;
        Ok(found)
    }

    async fn rollback(self) -> Result<(), sqlx::Error> {
        SqliteTransaction::rollback(self).await
    }
}

/// Begins a transaction that holds the database's write lock from the start.
///
/// A deferred transaction that reads first and writes later fails with `SQLITE_BUSY` whenever another connection has
/// written in between, and no waiting helps it; an immediate one cannot.
///
/// While another connection holds the lock, it is tried again after waits of 0.2 to 2 ms, for at most the pool's
/// `acquire_timeout`. SQLite's own busy handler sleeps up to 100 ms at a time and starves beside a busy writer, so give
/// the pool's connections a `busy_timeout` of few milliseconds if other processes write a lot.
///
/// A connection whose transaction SQLite itself has ended, as with a full disk, is closed: sqlx counts that transaction for ever, and would begin no
/// other one.
///
/// # Errors
/// sqlx's; `SQLITE_BUSY` when the lock could not be had in time.
pub async fn begin_immediate(pool: &SqlitePool) -> Result<SqliteTransaction<'static>, sqlx::Error> {
    let deadline = Instant::now() + pool.options().get_acquire_timeout();
    let mut wait = SHORTEST_WAIT;
    loop {
        let connection = pool.acquire().await?;
        if connection.is_in_transaction() {
            drop(connection.detach());
            continue;
        }
        match SqliteTransaction::begin(connection, Some("BEGIN IMMEDIATE".into_sql_str())).await {
            Err(error) if is_busy(&error) && Instant::now() < deadline => {
                // Waits of random length do not fall into step with the other writer's transactions.
                sleep(wait.mul_f64(0.5 + SystemRandom.next_f64())).await;
                wait = wait.mul_f64(1.2).min(LONGEST_WAIT);
            }
            begun => return begun,
        }
    }
}

const SHORTEST_WAIT: Duration = Duration::from_micros(200);
const LONGEST_WAIT: Duration = Duration::from_micros(1_300);

/// True if another connection holds the lock: result code 5 in any of its extended forms.
fn is_busy(error: &sqlx::Error) -> bool {
    const SQLITE_BUSY: i32 = 5;
    let code = error.as_database_error().and_then(|error| error.code()?.parse::<i32>().ok());
    code.is_some_and(|code| code & 0xff == SQLITE_BUSY)
}

/// A statement of the store with its values bound. The text is the store's own, none of it comes from a user.
fn query<'q>(statement: &'q Statement<'_>) -> Result<Query<'q, Sqlite, SqliteArguments>, sqlx::Error> {
    let mut query = sqlx::query(AssertSqlSafe(statement.sql.clone())).persistent(statement.reusable);
    for bind in &statement.binds {
        query = match bind {
            Bind::Int(value) => query.bind(*value),
            Bind::Text(value) => query.bind(*value),
            Bind::Bytes(value) => query.bind(*value),
            _ => return Err(unsupported("SQLite")),
        };
    }
    Ok(query)
}
