use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use deadpool::Runtime;
use deadpool::managed::{Manager, Metrics, Object, Pool, RecycleError, RecycleResult};
use mysql_async::prelude::Queryable as _;
use mysql_async::{Conn, Error, Opts, OptsBuilder, Row};
use pillarbox_core::clock::{Random as _, SystemRandom};
use pillarbox_core::error::{StoreError, StoreErrorKind};
use pillarbox_core::store::operation::CALL_LIMIT;
use pillarbox_core::store::{History, HistoryKeeper};
use tokio::time::Instant;

use crate::answer::{Answer, Answers};
use crate::error::Failure;

/// The limit of a migration: it may wait for other migrations, and adopting a table copies it.
const MIGRATION_DEADLINE: Duration = Duration::from_secs(3600);
/// The number of times that a transaction that lost against another one is run before the caller hears of it.
const ATTEMPTS: u32 = 4;
/// The longest time that a call waits until the server has ended a connection that was closed while it sent rows.
const GONE_WITHIN: Duration = Duration::from_millis(500);
/// The idle time after which a connection is asked whether it still lives.
const TRUSTED: Duration = Duration::from_secs(1);
/// The idle time after which a connection is replaced, well before the server ends it.
const STALE: Duration = Duration::from_secs(45);

/// Settings of every session of the engine, made in one round trip.
///
/// By its variables or its `init_connect` a server may give a session another character set than the driver asks for, let any statement or
/// commit begin a transaction, and refuse updates of whole tables. The collation is the one that the driver asks for.
///
/// At the default isolation level claims lock the gaps between rows and run into deadlocks. The server ends by itself what
/// this side has given up on, also the transaction of a client that vanished or stands still, whose locks would stop the
/// others: MariaDB soon; MySQL, which knows no such limit, when it takes the whole connection for idle. MariaDB would turn a
/// long list into a join. Comments with a number are read by MySQL only, with an `M` by MariaDB only.
const SETUP: &str = "SET NAMES utf8mb4 COLLATE utf8mb4_general_ci; \
                     SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED; \
                     SET SESSION autocommit = 1, completion_type = 0, sql_safe_updates = 0, \
                     time_zone = '+00:00', sql_mode = 'STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION', \
                     innodb_lock_wait_timeout = 10, wait_timeout = 60 \
                     /*!80001 , max_execution_time = 30000 */ \
                     /*M!100600 , max_statement_time = 30, idle_transaction_timeout = 5, \
                     in_predicate_conversion_threshold = 0 */";

/// The query for the name that tells a server from every other, the replica that is promoted in its place among them.
const SERVER: &str = "SELECT CONCAT_WS(' ', CONCAT(@@hostname, ':', @@port), CONCAT('server_id ', @@server_id), @@datadir /*!80001 , @@server_uuid */)";

/// The query for the seconds that a server has been up.
const UPTIME: &str = "SHOW GLOBAL STATUS LIKE 'Uptime'";

/// The store's connections. A clone shares them.
#[derive(Clone)]
pub(crate) struct Sessions {
    pool: Pool<Connector>,
    /// One connection for renewals alone: none of them ever waits behind another statement.
    lease: Pool<Connector>,
    options: Opts,
    connect_timeout: Duration,
    /// The limit of a call.
    deadline: Duration,
    /// The number of times that a transaction that lost against another one is run.
    attempts: u32,
    address: String,
    history: Arc<HistoryKeeper>,
}

impl Sessions {
    /// Adds the settings that every connection of a store needs. `setup` holds the statements that the user's own options run at first. If
    /// these name no database, `schema` is used, that of the tables: servers look for a table's second name in a DELETE in the database of the connection.
    pub(crate) fn new(
        options: OptsBuilder,
        setup: &[String],
        schema: Option<&str>,
        address: String,
        pool_size: usize,
        connect_timeout: Duration,
    ) -> Result<Self, StoreError> {
        let mut options: Opts = options
            // A peer that vanished without a word is noticed.
            .tcp_keepalive(Some(Duration::from_secs(30)))
            // A change counts the rows that it found, not only the ones that it found different.
            .client_found_rows(true)
            // The driver runs them from the last to the first, so the user's come before the store's own.
            .setup(std::iter::once(SETUP).chain(setup.iter().map(String::as_str)).collect())
            .into();
        if options.db_name().is_none() {
            options = OptsBuilder::from_opts(options).db_name(schema).into();
        }
        Self::open(options, address, pool_size, connect_timeout)
    }

    fn open(options: Opts, address: String, pool_size: usize, connect_timeout: Duration) -> Result<Self, StoreError> {
        let history = Arc::new(HistoryKeeper::default());
        let pool = |size| {
            Pool::builder(Connector { options: options.clone(), history: Arc::clone(&history) })
                .max_size(size)
                .create_timeout(Some(connect_timeout))
                .recycle_timeout(Some(connect_timeout))
                .runtime(Runtime::Tokio1)
                .build()
                .map_err(|error| StoreError::new(StoreErrorKind::Config, "set up the connections", error.to_string()))
        };
        let (pool, lease) = (pool(pool_size)?, pool(1)?);
        Ok(Self { pool, lease, options, connect_timeout, deadline: CALL_LIMIT, attempts: ATTEMPTS, address, history })
    }

    /// Sessions with the same server for an examination: one connection, whose statements the server ends after `limit`.
    pub(crate) fn for_examination(&self, limit: Duration) -> Result<Self, StoreError> {
        let (millis, seconds) = (limit.as_millis().max(1), limit.as_secs().max(1));
        // Some limits count in whole seconds.
        let limits = format!(
            "SET SESSION lock_wait_timeout = {seconds}, innodb_lock_wait_timeout = {seconds} \
             /*!80001 , max_execution_time = {millis} */ /*M!100600 , max_statement_time = {} */",
            limit.as_secs_f64()
        );
        // The driver runs them from the last to the first.
        let setup = std::iter::once(limits).chain(self.options.setup().iter().cloned()).collect::<Vec<_>>();
        let options = OptsBuilder::from_opts(self.options.clone()).setup(setup).into();
        let opened = Self::open(options, self.address.clone(), 1, self.connect_timeout)?;
        Ok(Self { deadline: limit + Duration::from_secs(1) + self.connect_timeout, attempts: 1, ..opened })
    }

    /// The history of the database, as far as the connections have seen it.
    pub(crate) fn history(&self) -> History {
        self.history.read()
    }

    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    /// Runs a call of the store, which is one transaction, and names it in its error. It is bounded, even if
    /// network or server hang. If it lost against another transaction it begins anew a few times, each after a short while
    /// of random length, so that the two do not meet again.
    pub(crate) async fn call<T, F>(&self, operation: &'static str, work: impl Fn() -> F) -> Result<T, StoreError>
    where
        F: Future<Output = Result<T, Failure>>,
    {
        let attempts = async {
            let mut attempt = 1;
            loop {
                match work().await {
                    Err(failure) if failure.is_contention() && attempt < self.attempts => pause(attempt).await,
                    answer => break answer,
                }
                attempt += 1;
            }
        };
        self.bounded(self.deadline, operation, attempts).await
    }

    /// Runs a migration, with the patience it needs.
    pub(crate) async fn patient_call<T>(
        &self,
        operation: &'static str,
        work: impl Future<Output = Result<T, Failure>>,
    ) -> Result<T, StoreError> {
        self.bounded(MIGRATION_DEADLINE, operation, work).await
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
        Ok(Session { connection: Some(self.pool.get().await?), history: Arc::clone(&self.history), refused: false })
    }

    /// Runs statements in one round trip on a session of their own, and returns the answer of each.
    pub(crate) async fn run(&self, script: impl AsRef<str> + Send) -> Result<Answers, Failure> {
        let mut session = self.session().await?;
        let answers = session.run(script).await?;
        session.finish();
        Ok(answers)
    }

    /// The session for renewals. Any other use of it could make them wait.
    pub(crate) async fn lease_session(&self) -> Result<Session, Failure> {
        Ok(Session { connection: Some(self.lease.get().await?), history: Arc::clone(&self.history), refused: false })
    }

    pub(crate) fn close(&self) {
        self.pool.close();
        self.lease.close();
    }
}

// The driver's connections show the password.
impl fmt::Debug for Sessions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sessions").field("address", &self.address).finish_non_exhaustive()
    }
}

/// Waits a random while, longer after each attempt.
async fn pause(attempt: u32) {
    let longest = Duration::from_millis(10) * (1 << attempt);
    tokio::time::sleep(longest.mul_f64(SystemRandom.next_f64())).await;
}

/// Makes connections, and tells which may be used once more.
pub(crate) struct Connector {
    options: Opts,
    history: Arc<HistoryKeeper>,
}

impl Manager for Connector {
    type Type = Conn;
    type Error = Error;

    async fn create(&self) -> Result<Conn, Error> {
        let mut connection = Conn::new(self.options.clone()).await?;
        let server: Option<String> = connection.query_first(SERVER).await?;
        self.history.reached(&server.unwrap_or_default());
        let uptime: Option<(String, u64)> = connection.query_first(UPTIME).await?;
        if let Some((_name, seconds)) = uptime {
            self.history.up_for(Duration::from_secs(seconds));
        }
        Ok(connection)
    }

    async fn recycle(&self, connection: &mut Conn, metrics: &Metrics) -> RecycleResult<Error> {
        let idle = metrics.last_used();
        if connection.is_disconnected() {
            self.history.lost();
        }
        if self.history.is_outdated(Instant::from_std(metrics.created)) {
            return Err(RecycleError::message("its server is not the one that others have reached since"));
        }
        if connection.is_disconnected() || idle > STALE {
            return Err(RecycleError::message("the connection is too old, or closed"));
        }
        if idle > TRUSTED {
            connection.ping().await.inspect_err(|_| self.history.lost())?;
        }
        Ok(())
    }
}

/// The answers of statements whose rows are bounded by their size.
pub(crate) enum Within {
    /// All of them.
    Answers(Answers),
    /// A statement returned more bytes than there was room for, which this many of its rows reach.
    Cut {
        /// At least one.
        rows: usize,
    },
}

/// A connection for one call.
///
/// Only a call that ran to its successful end gives it back. After an error, a timeout, or when the call's future was
/// dropped, the state of the connection is unknown, and its server may no longer be the primary; it is
/// closed, and the server rolls back the open transaction.
pub(crate) struct Session {
    connection: Option<Object<Connector>>,
    history: Arc<HistoryKeeper>,
    /// True if the server answered last, and refused.
    refused: bool,
}

impl Session {
    /// Runs statements in one round trip, and returns the answer of each.
    pub(crate) async fn run(&mut self, script: impl AsRef<str> + Send) -> Result<Answers, Failure> {
        match self.run_within(script, |_| 0, usize::MAX).await? {
            Within::Answers(answers) => Ok(answers),
            Within::Cut { .. } => Err(ended()),
        }
    }

    /// Runs statements in one round trip, and stops at the first whose rows are more than `max_bytes` by `size`.
    /// The connection is of no use after that: the server still sends what is left.
    pub(crate) async fn run_within(
        &mut self,
        script: impl AsRef<str> + Send,
        size: impl Fn(&Row) -> usize + Send,
        max_bytes: usize,
    ) -> Result<Within, Failure> {
        let answers = self.ask(script, size, max_bytes).await;
        // A server that refuses a statement is still there, and so is one that is not listened to.
        self.refused = match &answers {
            Ok(Within::Cut { .. }) => true,
            Ok(Within::Answers(_)) => false,
            Err(failure) => failure.is_refusal(),
        };
        answers
    }

    async fn ask(
        &mut self,
        script: impl AsRef<str> + Send,
        size: impl Fn(&Row) -> usize + Send,
        max_bytes: usize,
    ) -> Result<Within, Failure> {
        let connection = self.connection.as_mut().ok_or_else(ended)?;
        let mut result = connection.query_iter(script.as_ref()).await?;
        let mut answers = Vec::new();
        loop {
            let matched = result.affected_rows();
            let (mut rows, mut bytes) = (Vec::new(), 0);
            while let Some(row) = result.next().await? {
                if bytes >= max_bytes {
                    return Ok(Within::Cut { rows: rows.len() });
                }
                bytes += size(&row);
                rows.push(row);
            }
            answers.push(Answer { rows, matched });
            if result.is_empty() {
                // Reading the rows before it, the driver has passed by a last answer that has none. If there is no such
                // statement this is the last answer once more, which nobody asks for.
                answers.push(Answer { rows: Vec::new(), matched: result.affected_rows() });
                // The error of a statement after the first waits here to be asked for.
                result.drop_result().await?;
                return Ok(Within::Answers(Answers(answers)));
            }
        }
    }

    /// The server's number of this connection, where no proxy stands between; `None` once it is closed.
    pub(crate) fn number(&self) -> Option<u32> {
        self.connection.as_ref().map(|connection| connection.id())
    }

    /// Waits for a while until the server has ended a connection that was given up, and with it the locks of its transaction.
    pub(crate) async fn outlast(&mut self, number: u32) -> Result<(), Failure> {
        let is_there = format!("SELECT 1 FROM `information_schema`.`PROCESSLIST` WHERE `ID` = {number}");
        let mut pause = Duration::from_millis(1);
        while pause < GONE_WITHIN && !self.run(&is_there).await?.rows(0).is_empty() {
            tokio::time::sleep(pause).await;
            pause *= 2;
        }
        Ok(())
    }

    /// Gives the connection back for the next call.
    pub(crate) fn finish(mut self) {
        self.connection = None;
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        if let Some(connection) = self.connection.take() {
            if !self.refused {
                self.history.lost();
            }
            drop(Object::take(connection));
        }
    }
}

/// Cannot happen: ending a session consumes it.
fn ended() -> Failure {
    Failure::Refused(StoreErrorKind::Unexpected, "the session has ended".to_owned())
}
