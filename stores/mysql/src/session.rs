use std::fmt;
use std::future::Future;
use std::time::Duration;

use deadpool::Runtime;
use deadpool::managed::{Manager, Metrics, Object, Pool, RecycleError, RecycleResult};
use mysql_async::prelude::Queryable as _;
use mysql_async::{Conn, Error, Opts, OptsBuilder, Row};
use pillarbox_core::clock::{Random as _, SystemRandom};
use pillarbox_core::error::{StoreError, StoreErrorKind};

use crate::answer::{Answer, Answers};
use crate::error::Failure;
use crate::url::Target;

/// How long any call may take. What takes longer has lost its server, and is tried again on another connection.
const DEADLINE: Duration = Duration::from_secs(30);
/// How long a migration may take: it may wait for other migrations, and adopting a table copies it.
const MIGRATION_DEADLINE: Duration = Duration::from_secs(3600);
/// How often a transaction that lost against another one is run anew before the caller hears of it.
const ATTEMPTS: u32 = 4;
/// How long a connection may be idle before it is asked whether it still lives.
const TRUSTED: Duration = Duration::from_secs(1);
/// How long a connection may be idle before it is replaced, well before the server ends it.
const STALE: Duration = Duration::from_secs(45);

/// What every session of the engine is set to, in one round trip.
///
/// At the default isolation level claims lock the gaps between rows and run into deadlocks. The server ends by itself what
/// this side has given up on, also the transaction of a client that vanished or stands still, whose locks would stop the
/// others: MariaDB soon; MySQL, which knows no such limit, when it takes the whole connection for idle. MariaDB would turn a
/// long list into a join. Comments with a number are read by MySQL only, with an `M` by MariaDB only.
const SETUP: &str = "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED; \
                     SET SESSION time_zone = '+00:00', sql_mode = 'STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION', \
                     innodb_lock_wait_timeout = 10, wait_timeout = 60 \
                     /*!80001 , max_execution_time = 30000 */ \
                     /*M!100600 , max_statement_time = 30, idle_transaction_timeout = 5, \
                     in_predicate_conversion_threshold = 0 */";

/// The store's connections.
pub(crate) struct Sessions {
    pool: Pool<Connector>,
    /// One connection for what keeps the lease: a renewal must never wait behind statements that read or settle events.
    lease: Pool<Connector>,
    address: String,
}

impl Sessions {
    pub(crate) fn new(target: &Target, pool_size: usize, connect_timeout: Duration) -> Result<Self, StoreError> {
        let options: Opts = OptsBuilder::default()
            .ip_or_hostname(target.host.clone())
            .tcp_port(target.port)
            .socket(target.socket.clone())
            .user(target.user.clone())
            .pass(target.password.clone())
            .db_name(target.database.clone())
            .ssl_opts(target.tls.options()?)
            // A server's socket is of another machine's file system, as often as not.
            .prefer_socket(false)
            // A peer that vanished without a word is noticed.
            .tcp_keepalive(Some(Duration::from_secs(30)))
            // What counts is which rows a change found, not which it found different.
            .client_found_rows(true)
            .setup(vec![SETUP])
            .into();
        let pool = |size| {
            Pool::builder(Connector { options: options.clone() })
                .max_size(size)
                .create_timeout(Some(connect_timeout))
                .recycle_timeout(Some(connect_timeout))
                .runtime(Runtime::Tokio1)
                .build()
                .map_err(|error| StoreError::new(StoreErrorKind::Config, "set up the connections", error.to_string()))
        };
        Ok(Self { pool: pool(pool_size)?, lease: pool(1)?, address: target.address() })
    }

    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    /// Runs a call of the store, which is one transaction, and names it in its error. It is bounded, whatever becomes of
    /// network and server. Where it lost against another transaction it begins anew a few times, each after a short while
    /// of random length, so that the two do not meet again.
    pub(crate) async fn call<T, F>(&self, operation: &'static str, work: impl Fn() -> F) -> Result<T, StoreError>
    where
        F: Future<Output = Result<T, Failure>>,
    {
        let attempts = async {
            let mut attempt = 1;
            loop {
                match work().await {
                    Err(failure) if failure.is_contention() && attempt < ATTEMPTS => pause(attempt).await,
                    answer => break answer,
                }
                attempt += 1;
            }
        };
        self.bounded(DEADLINE, operation, attempts).await
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
        Ok(Session { connection: Some(self.pool.get().await?) })
    }

    /// The session for membership, ownership and lease.
    pub(crate) async fn lease_session(&self) -> Result<Session, Failure> {
        Ok(Session { connection: Some(self.lease.get().await?) })
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
}

impl Manager for Connector {
    type Type = Conn;
    type Error = Error;

    async fn create(&self) -> Result<Conn, Error> {
        Conn::new(self.options.clone()).await
    }

    async fn recycle(&self, connection: &mut Conn, metrics: &Metrics) -> RecycleResult<Error> {
        let idle = metrics.last_used();
        if connection.is_disconnected() || idle > STALE {
            return Err(RecycleError::message("the connection is too old, or closed"));
        }
        if idle > TRUSTED {
            connection.ping().await?;
        }
        Ok(())
    }
}

/// A connection for one call.
///
/// Only a call that ran to its successful end gives it back. After an error, a timeout, or when the call's future was
/// dropped, nobody knows what the connection still has under way, or whether its server is still the primary; it is
/// closed, and the server rolls back what was open.
pub(crate) struct Session {
    connection: Option<Object<Connector>>,
}

impl Session {
    /// Runs statements in one round trip, and returns the answer of each.
    pub(crate) async fn run(&mut self, script: impl AsRef<str> + Send) -> Result<Answers, Failure> {
        let connection = self.connection.as_mut().ok_or_else(ended)?;
        let mut result = connection.query_iter(script.as_ref()).await?;
        let mut answers = Vec::new();
        loop {
            let matched = result.affected_rows();
            let rows = result.collect::<Row>().await?;
            answers.push(Answer { rows, matched });
            if result.is_empty() {
                // Collecting the rows before it, the driver has passed by a last answer that has none. Where there is no such
                // statement this is the last answer once more, which nobody asks for.
                answers.push(Answer { rows: Vec::new(), matched: result.affected_rows() });
                return Ok(Answers(answers));
            }
        }
    }

    /// Whether the server is MariaDB.
    pub(crate) async fn is_mariadb(&mut self) -> Result<bool, Failure> {
        let answers = self.run("SELECT VERSION() LIKE '%MariaDB%'").await?;
        answers.first(0).map_or(Ok(false), |row| crate::answer::is_true(row, 0))
    }

    /// Gives the connection back for the next call.
    pub(crate) fn finish(mut self) {
        self.connection = None;
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        if let Some(connection) = self.connection.take() {
            drop(Object::take(connection));
        }
    }
}

/// Cannot happen: what ends a session consumes it.
fn ended() -> Failure {
    Failure::Refused(StoreErrorKind::Unexpected, "the session has ended".to_owned())
}
