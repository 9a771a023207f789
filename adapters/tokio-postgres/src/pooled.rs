use std::ops::Deref;
use std::pin::pin;
use std::task::{Context, Waker};

use deadpool_postgres::{Client, Pool, PoolError};
use pillarbox_core::store::RowId;
use pillarbox_core::write::{Begin, Command, Connection, ConnectionId, Dialect, Finish, Insert, Lookup, Probe};
use tokio_postgres::SimpleQueryMessage;

use crate::TokioPostgres;
use crate::begin::{before_commit, row_id};
use crate::insert::{insert_prepared, read, run_prepared};

/// A transaction that owns its connection: what `outbox.begin(&pool)` begins.
///
/// It dereferences to deadpool's client, whose statements all run in the transaction. The client's own `transaction()` knows of
/// none around it and would end it, so it does not compile: where you nest transactions, begin on a client,
/// `outbox.begin(&mut client)`, or set savepoints by SQL.
/// Dropped before it was ended, at whatever await, it rolls back before the connection does anything else.
///
/// ```compile_fail,E0596
/// # use pillarbox_engine::run::Outbox;
/// # use pillarbox_tokio_postgres as _;
/// async fn nest(outbox: &Outbox, pool: &deadpool_postgres::Pool) {
///     let mut tx = outbox.begin(pool).await.unwrap();
///     let _ = tx.transaction().await;
/// }
/// ```
///
/// ```compile_fail,E0596
/// # use pillarbox_tokio_postgres::PooledTx;
/// async fn nest(mut tx: PooledTx) {
///     let _ = tx.transaction().await;
/// }
/// ```
#[derive(Debug)]
pub struct PooledTransaction {
    client: Client,
    open: bool,
}

impl PooledTransaction {
    async fn end(mut self, sql: &str) -> Result<Vec<SimpleQueryMessage>, PoolError> {
        let answers = self.client.simple_query(sql).await?;
        self.open = false;
        Ok(answers)
    }
}

impl Deref for PooledTransaction {
    type Target = Client;

    fn deref(&self) -> &Client {
        &self.client
    }
}

impl Drop for PooledTransaction {
    fn drop(&mut self) {
        if self.open {
            // The driver sends a statement when it is first polled, in the order of the polls, and needs no further one.
            let mut rollback = pin!(self.client.batch_execute("ROLLBACK"));
            let _ = rollback.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        }
    }
}

impl Begin<TokioPostgres> for &Pool {
    type Transaction = PooledTransaction;
    type Error = PoolError;

    async fn begin(self) -> Result<PooledTransaction, PoolError> {
        // Open before `BEGIN` is sent, so that a future dropped in between rolls back what may have begun.
        let transaction = PooledTransaction { client: self.get().await?, open: true };
        transaction.batch_execute("BEGIN").await?;
        Ok(transaction)
    }
}

#[diagnostic::do_not_recommend]
impl Connection<TokioPostgres> for PooledTransaction {
    type Error = PoolError;

    fn dialect(&self) -> Dialect {
        Dialect::POSTGRES
    }

    /// The type says so.
    fn in_transaction(&mut self) -> Option<bool> {
        Some(true)
    }

    async fn insert(&mut self, insert: &Insert<'_>) -> Result<Vec<i64>, PoolError> {
        Ok(insert_prepared(&self.client, &self.client, insert).await?)
    }

    async fn run(&mut self, command: &Command<'_>) -> Result<u64, PoolError> {
        Ok(run_prepared(&self.client, &self.client, command).await?)
    }

    async fn read(&mut self, lookup: &Lookup<'_>) -> Result<Vec<String>, PoolError> {
        Ok(read(&self.client, lookup).await?)
    }

    fn id(&self) -> ConnectionId {
        ConnectionId::of::<tokio_postgres::Client>(&self.client)
    }
}

impl Finish<TokioPostgres> for PooledTransaction {
    type Error = PoolError;
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

    /// One round trip: what follows a statement that fails is not run.
    async fn commit_verified(self, probe: &Probe) -> Result<Vec<RowId>, PoolError> {
        let answers = self.end(&format!("{}; COMMIT", before_commit(probe))).await?;
        Ok(answers.iter().filter_map(row_id).collect())
    }

    async fn rollback(self) -> Result<(), PoolError> {
        self.end("ROLLBACK").await.map(drop)
    }
}
