use std::fmt;
use std::future::Future;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use deadpool_postgres::{
    Hook, HookError, ManagerConfig, Object, Pool, PoolError, RecyclingMethod, Runtime, TimeoutType, Transaction,
};
use futures_util::TryStreamExt as _;
use pillarbox_core::error::{StoreError, StoreErrorKind};
use pillarbox_core::store::operation::CALL_LIMIT;
use pillarbox_core::store::{History, HistoryKeeper};
use tokio::time::Instant;
use tokio_postgres::error::SqlState;
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Client, Config, Error, IsolationLevel, Row, RowStream, SimpleQueryMessage};

use crate::connector::{Connector, Wire};
use crate::error::Failure;
use crate::url::Target;

/// The limit of a migration: it may wait for other migrations, write a table anew and build indexes.
const MIGRATION_DEADLINE: Duration = Duration::from_secs(3600);

/// A value to bind with its type: told the types, the server needs no round trip to infer them.
pub(crate) type Param<'a> = (&'a (dyn ToSql + Sync), Type);

/// Within a transaction, what the engine's own sessions say anyway and those of a pooler do not: a table most of which is
/// pending looks worth reading as a whole, but is not known to be still like that.
pub(crate) const BY_INDEX: &str =
    "SET LOCAL enable_seqscan = off; SET LOCAL enable_bitmapscan = off; SET LOCAL jit = off";

/// A setting of the sessions of an examination. A session that lacks it was not begun by this side: there is a pooler in between.
pub(crate) const EXAMINATION: &str = "pillarbox.examination";

/// The store's connections.
pub(crate) struct Sessions {
    pool: Pool,
    /// One connection for renewals alone: none of them ever waits behind another statement.
    lease: Pool,
    /// True if a pooler in transaction mode stands in between, to which a prepared statement means nothing.
    pooler: bool,
    /// For the connections that listen.
    config: Config,
    connector: Connector,
    create_timeout: Duration,
    /// The limit of a call.
    deadline: Duration,
    /// The limit of a statement, where a session of an examination cannot have it as a setting.
    statement_limit: Duration,
    address: String,
    history: Arc<HistoryKeeper>,
    /// The query for the run of the server behind a pooler, as the first connection has found it.
    run: Arc<OnceLock<&'static str>>,
}

impl fmt::Debug for Sessions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sessions").field("address", &self.address).field("pooler", &self.pooler).finish_non_exhaustive()
    }
}

impl Sessions {
    pub(crate) fn new(mut target: Target, pool_size: usize, connect_timeout: Duration) -> Result<Self, StoreError> {
        let address = target.address();
        let connector = match target.connector.take() {
            Some(connector) => connector,
            None => target.tls.connector()?,
        };
        if !target.pooler {
            let options = session_options(target.config.get_options());
            target.config.options(options);
        }
        let hosts = target.config.get_hosts().len().max(target.config.get_hostaddrs().len()).max(1);
        target.config.connect_timeout(connect_timeout);
        // The driver's timeout ends with the TCP handshake; the pool's covers TLS and authentication as well.
        let create_timeout = connect_timeout.saturating_mul(u32::try_from(hosts).unwrap_or(u32::MAX));
        Self::open(target.config, connector, target.pooler, pool_size, create_timeout, address)
    }

    fn open(
        config: Config,
        connector: Connector,
        pooler: bool,
        pool_size: usize,
        create_timeout: Duration,
        address: String,
    ) -> Result<Self, StoreError> {
        let settings = ManagerConfig { recycling_method: RecyclingMethod::Fast };
        let (history, run) = (Arc::new(HistoryKeeper::default()), Arc::new(OnceLock::new()));
        let pool = |size| {
            let (created, used) = (Arc::clone(&history), Arc::clone(&history));
            let found = pooler.then(|| Arc::clone(&run));
            Pool::builder(connector.manager(config.clone(), settings.clone()))
                .max_size(size)
                .post_create(Hook::async_fn(move |client, _| {
                    let (history, found) = (Arc::clone(&created), found.clone());
                    Box::pin(async move {
                        history.reached(&server(client).await.map_err(HookError::Backend)?);
                        if let Some(found) = found.filter(|found| found.get().is_none()) {
                            // Another connection may have found the same by now.
                            let _ = found.set(run_query(client).await.map_err(HookError::Backend)?);
                        }
                        Ok(())
                    })
                }))
                .pre_recycle(Hook::sync_fn(move |client, metrics| {
                    if client.is_closed() {
                        used.lost();
                    }
                    if used.is_outdated(Instant::from_std(metrics.created)) {
                        return Err(HookError::message("its server is not the one that others have reached since"));
                    }
                    Ok(())
                }))
                .create_timeout(Some(create_timeout))
                .runtime(Runtime::Tokio1)
                .build()
                .map_err(|error| StoreError::new(StoreErrorKind::Config, "set up the connections", error.to_string()))
        };
        let (events, lease) = (pool(pool_size)?, pool(1)?);
        let (deadline, statement_limit) = (CALL_LIMIT, CALL_LIMIT);
        Ok(Self {
            pool: events,
            lease,
            pooler,
            config,
            connector,
            create_timeout,
            deadline,
            statement_limit,
            address,
            history,
            run,
        })
    }

    /// Sessions with the same server for an examination: one connection, whose statements the server ends after `limit`. A pooler takes no
    /// such settings; there each transaction makes its own.
    pub(crate) fn for_examination(&self, limit: Duration) -> Result<Self, StoreError> {
        let mut config = self.config.clone();
        config.application_name("pillarbox doctor");
        if !self.pooler {
            let (options, limit) = (config.get_options().unwrap_or_default(), limit.as_millis());
            config
                .options(format!("{options} -c statement_timeout={limit} -c lock_timeout={limit} -c {EXAMINATION}=on"));
        }
        let address = self.address.clone();
        let opened = Self::open(config, self.connector.clone(), self.pooler, 1, self.create_timeout, address)?;
        Ok(Self { deadline: limit + self.create_timeout, statement_limit: limit, ..opened })
    }

    /// The history of the database, as far as the connections have seen it.
    pub(crate) fn history(&self) -> History {
        self.history.read()
    }

    /// The limit of a statement of an examination.
    pub(crate) fn statement_limit(&self) -> Duration {
        self.statement_limit
    }

    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    /// Runs a call of the store and names it in its error. It is bounded, even if network or server hang.
    pub(crate) async fn call<T>(
        &self,
        operation: &'static str,
        work: impl Future<Output = Result<T, Failure>>,
    ) -> Result<T, StoreError> {
        self.bounded(self.deadline, operation, work).await
    }

    /// As [`call`](Self::call), with the patience a migration needs. The work is told when it has to end, and has the time of a call for
    /// its last questions.
    pub(crate) async fn patient_call<T, W: Future<Output = Result<T, Failure>>>(
        &self,
        operation: &'static str,
        work: impl FnOnce(Instant) -> W,
    ) -> Result<T, StoreError> {
        let until = Instant::now() + MIGRATION_DEADLINE;
        self.bounded(MIGRATION_DEADLINE + self.deadline, operation, work(until)).await
    }

    async fn bounded<T>(
        &self,
        deadline: Duration,
        operation: &'static str,
        work: impl Future<Output = Result<T, Failure>>,
    ) -> Result<T, StoreError> {
        let answer = tokio::time::timeout(deadline, work).await.unwrap_or_else(|_| {
            let message = format!("there was no answer within {} s", deadline.as_secs());
            Err(Failure::Refused(StoreErrorKind::Unavailable, message))
        });
        answer.map_err(|failure| failure.during(operation, &self.address))
    }

    pub(crate) async fn session(&self) -> Result<Session, Failure> {
        Ok(self.opened(self.pool.get().await?))
    }

    /// The session for renewals. Any other use of it could make them wait.
    pub(crate) async fn lease_session(&self) -> Result<Session, Failure> {
        Ok(self.opened(self.lease.get().await?))
    }

    fn opened(&self, client: Object) -> Session {
        Session {
            client: Some(client),
            pooler: self.pooler,
            history: Arc::clone(&self.history),
            run: Arc::clone(&self.run),
            refused: AtomicBool::new(false),
        }
    }

    /// Opens a connection beside the pool. Only the caller's polls drive it.
    pub(crate) async fn connect(&self) -> Result<(Client, Wire), Failure> {
        let connecting = self.connector.connect(self.config.clone());
        match tokio::time::timeout(self.create_timeout, connecting).await {
            Ok(connected) => Ok(connected?),
            Err(_) => Err(PoolError::Timeout(TimeoutType::Create).into()),
        }
    }

    /// True if a pooler in transaction mode stands in between.
    pub(crate) fn is_pooled(&self) -> bool {
        self.pooler
    }

    pub(crate) fn close(&self) {
        self.pool.close();
        self.lease.close();
    }
}

/// The query for the server's history: whose data it has, and on which timeline, which is another one after each promotion and
/// each recovery to a point in time. It reads from where the server writes, since the control file may lag behind a promotion.
const SERVER: &str = "SELECT 'system ' || (SELECT system_identifier FROM pg_control_system()) || ', ' || \
    CASE WHEN pg_is_in_recovery() THEN 'standby' ELSE 'timeline ' || substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8) END";
/// The same where that is not allowed, or not there: a service that fails over starts another server.
const STARTED: &str = "SELECT 'started ' || pg_postmaster_start_time()";

/// The query for the run of a server: its answer is another one once the server has restarted. If only its processes have, after one
/// of them crashed, they have begun their statistics anew. Before PostgreSQL 15 these were in a file for which the question would wait, and
/// a crash of one process goes unnoticed there.
const RUN: &str = "SELECT concat_ws(' ', extract(epoch FROM pg_postmaster_start_time()), \
    CASE WHEN current_setting('server_version_num')::int >= 150000 \
    THEN extract(epoch FROM pg_stat_get_bgwriter_stat_reset_time()) END)";
/// The same where that is not allowed, or not there.
const RUN_OF_POSTMASTER: &str = "SELECT extract(epoch FROM pg_postmaster_start_time())::text";

/// Names the server that a connection has reached.
async fn server(client: &Client) -> Result<String, Error> {
    let rows = match client.query_typed(SERVER, &[]).await {
        Err(error) if is_not_there(&error) => client.query_typed(STARTED, &[]).await?,
        answer => answer?,
    };
    rows.first().map_or_else(|| Ok(String::new()), |row| row.try_get(0))
}

/// The query for the run of the server behind a pooler.
async fn run_query(client: &Client) -> Result<&'static str, Error> {
    match client.query_typed(RUN, &[]).await {
        Err(error) if is_not_there(&error) => Ok(RUN_OF_POSTMASTER),
        answer => answer.map(|_| RUN),
    }
}

/// True if a function may not be called, or is not there.
fn is_not_there(error: &Error) -> bool {
    let refused = [SqlState::INSUFFICIENT_PRIVILEGE, SqlState::UNDEFINED_FUNCTION, SqlState::FEATURE_NOT_SUPPORTED];
    error.code().is_some_and(|code| refused.contains(code))
}

/// The time for which a transaction may wait for this side before the server ends it.
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// Settings of the engine's own sessions, followed by the user's, which win.
///
/// A statement is planned once for all values: to plan a fetch costs the server as much as to find some hundred rows. A queue's statistics,
/// always out of date, would talk the planner into sorting and reading the whole table; with both off there is one way
/// to the rows, for any values. `off` forbids neither if nothing else is possible. Claims pass over rows that others have changed meanwhile, which stricter isolation
/// makes an error. The server ends by itself what this side has given up on, and soon the transaction of a process that
/// stands still, whose locks would stop the others.
fn session_options(user: Option<&str>) -> String {
    let (deadline, pause) = (CALL_LIMIT.as_millis(), LONGEST_PAUSE.as_millis());
    let ours = format!(
        "-c plan_cache_mode=force_generic_plan -c max_parallel_workers_per_gather=0 -c jit=off -c enable_seqscan=off \
         -c enable_bitmapscan=off -c enable_sort=off -c default_transaction_isolation=read\\ committed \
         -c statement_timeout={deadline} -c idle_in_transaction_session_timeout={pause}"
    );
    match user {
        Some(user) => format!("{ours} {user}"),
        None => ours,
    }
}

/// A connection for one call.
///
/// Only a call that ran to its successful end gives it back. After an error, a timeout, or when the call's future was
/// dropped, the state of the connection is unknown, and its server may no longer be the primary; it is
/// closed, and the server rolls back the open transaction.
#[derive(Debug)]
pub(crate) struct Session {
    client: Option<Object>,
    pooler: bool,
    history: Arc<HistoryKeeper>,
    /// The query for the run of the server behind a pooler.
    run: Arc<OnceLock<&'static str>>,
    /// True if the server answered, and refused.
    refused: AtomicBool,
}

impl Session {
    /// Runs a statement that is its own transaction: one round trip, once it is prepared.
    pub(crate) async fn query(&self, sql: &str, params: &[Param<'_>]) -> Result<Vec<Row>, Failure> {
        self.ask(sql, params).await.inspect_err(|failure| {
            // A server that refuses a statement is still there.
            self.refused.store(failure.is_refusal(), Ordering::Relaxed);
        })
    }

    async fn ask(&self, sql: &str, params: &[Param<'_>]) -> Result<Vec<Row>, Failure> {
        let client = self.client.as_ref().ok_or_else(ended)?;
        if self.pooler {
            return Ok(client.query_typed(sql, params).await?);
        }
        let types: Vec<Type> = params.iter().map(|(_, ty)| ty.clone()).collect();
        let values: Vec<&(dyn ToSql + Sync)> = params.iter().map(|(value, _)| *value).collect();
        let statement = client.prepare_typed_cached(sql, &types).await?;
        Ok(client.query(&statement, &values).await?)
    }

    /// As [`query`](Self::query), of rows that may be more than anybody has room for. `take` sees each as it arrives, while the server
    /// sends the next ones, and says what is kept of it; or, with `None`, stops the reading. Then there is no answer, and the connection is
    /// of no use, since the server still sends what is left. An error of `take` ends the session, as one of the server does.
    ///
    /// `by_index` is for a statement that needs the settings of [`BY_INDEX`], which no session behind a pooler has. There it is also noticed
    /// if the server has restarted, which the connection to the pooler survives.
    pub(crate) async fn query_until<T: Send>(
        &mut self,
        sql: &str,
        params: &[Param<'_>],
        by_index: bool,
        take: impl FnMut(Row) -> Result<Option<T>, Error> + Send,
    ) -> Result<Option<Vec<T>>, Failure> {
        let answer = self.ask_until(sql, params, by_index, take).await;
        // A server that refuses a statement is still there, and so is one that is not listened to.
        let refused = match &answer {
            Ok(rows) => rows.is_none(),
            Err(failure) => failure.is_refusal(),
        };
        self.refused.store(refused, Ordering::Relaxed);
        answer
    }

    /// As [`query`](Self::query), for a statement that needs the settings of [`BY_INDEX`].
    pub(crate) async fn query_by_index(&mut self, sql: &str, params: &[Param<'_>]) -> Result<Vec<Row>, Failure> {
        self.query_until(sql, params, true, |row| Ok(Some(row))).await?.ok_or_else(ended)
    }

    async fn ask_until<T: Send>(
        &mut self,
        sql: &str,
        params: &[Param<'_>],
        by_index: bool,
        take: impl FnMut(Row) -> Result<Option<T>, Error> + Send,
    ) -> Result<Option<Vec<T>>, Failure> {
        let client = self.client.as_ref().ok_or_else(ended)?;
        if self.pooler {
            // In a transaction, since the server that tells how long it has been running has to be the one that answers.
            let settings = if by_index { BY_INDEX } else { "" };
            let run = self.run.get().unwrap_or(&RUN_OF_POSTMASTER);
            let begin = format!("BEGIN ISOLATION LEVEL READ COMMITTED; {settings}; {run}");
            for message in client.simple_query(&begin).await? {
                if let SimpleQueryMessage::Row(row) = message {
                    self.history.answered(row.try_get(0)?.unwrap_or_default());
                }
            }
            let rows = read(client.query_typed_raw(sql, params.iter().cloned()).await?, take).await?;
            if rows.is_some() {
                client.batch_execute("COMMIT").await?;
            }
            return Ok(rows);
        }
        let types: Vec<Type> = params.iter().map(|(_, ty)| ty.clone()).collect();
        let statement = client.prepare_typed_cached(sql, &types).await?;
        read(client.query_raw(&statement, params.iter().map(|(value, _)| *value)).await?, take).await
    }

    /// Begins a transaction. Its statements are rare, so they are not prepared.
    ///
    /// Each of them sees what was committed before it began: one that waited for a lock would otherwise decide by the
    /// state of things before the wait.
    pub(crate) async fn transaction(&mut self) -> Result<Transaction<'_>, Failure> {
        let client = self.client.as_mut().ok_or_else(ended)?;
        Ok(client.build_transaction().isolation_level(IsolationLevel::ReadCommitted).start().await?)
    }

    /// Gives the connection back for the next call.
    pub(crate) fn finish(mut self) {
        self.client = None;
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        if let Some(client) = self.client.take() {
            if !self.refused.load(Ordering::Relaxed) {
                self.history.lost();
            }
            drop(Object::take(client));
        }
    }
}

/// Reads rows until they end; `None` if `take` stops it.
async fn read<T: Send>(
    stream: RowStream,
    mut take: impl FnMut(Row) -> Result<Option<T>, Error> + Send,
) -> Result<Option<Vec<T>>, Failure> {
    let (mut stream, mut taken) = (pin!(stream), Vec::new());
    while let Some(row) = stream.try_next().await? {
        let Some(row) = take(row)? else { return Ok(None) };
        taken.push(row);
    }
    Ok(Some(taken))
}

/// Cannot happen: ending a session consumes it.
fn ended() -> Failure {
    Failure::Refused(StoreErrorKind::Unexpected, "the session has ended".to_owned())
}
