//! Support for tests of the programs: running one, and databases to run it on.
//!
//! Everything panics where it fails, as a test does.
#![allow(
    clippy::expect_used,
    clippy::missing_panics_doc,
    clippy::panic,
    reason = "a test fails by panicking, and so do the functions that tests have in common"
)]

mod collector;

use std::future::Future;
use std::panic::resume_unwind;
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use mysql_async::prelude::Queryable as _;
use mysql_async::{Conn, Opts, OptsBuilder};
use serde_json::Value;
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{AssertSqlSafe, Connection as _, SqliteConnection};
use tokio::task::{JoinHandle, JoinSet};
use tokio_postgres::{Client, NoTls};

pub use collector::{CollectedSpan, Collector};

/// A program that was built.
#[derive(Debug, Clone, Copy)]
pub struct Program(pub &'static str);

impl Program {
    /// The command, with output captured and nothing inherited that could change it.
    #[must_use]
    pub fn command(self, args: &[&str]) -> Command {
        let mut command = Command::new(self.0);
        command.args(args).env_remove("RUST_LOG").env_remove("PILLARBOX_STORE");
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// Runs the command to its end.
    #[must_use]
    pub fn run(self, args: &[&str]) -> Ended {
        self.command(args).output().expect("the command starts").into()
    }

    /// Runs the command to its end without blocking the runtime.
    pub async fn run_async(self, args: &[&str]) -> Ended {
        let mut command = self.command(args);
        let ended = tokio::task::spawn_blocking(move || command.output()).await.expect("no panic");
        ended.expect("the command starts").into()
    }
}

/// The exit code and the output of a command that has ended.
#[derive(Debug)]
pub struct Ended {
    /// The exit code; `None` if a signal ended it.
    pub code: Option<i32>,
    /// All it wrote to stdout.
    pub stdout: String,
    /// All it wrote to stderr.
    pub stderr: String,
}

impl From<Output> for Ended {
    fn from(output: Output) -> Self {
        let text = |bytes| String::from_utf8(bytes).expect("output is UTF-8");
        Self { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) }
    }
}

impl Ended {
    /// The one line of JSON on stdout.
    pub fn json(&self) -> Value {
        assert_eq!(self.stdout.lines().count(), 1, "exactly one line of JSON is expected: {self:?}");
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}

/// The names of an object's fields, in order.
pub fn keys(value: &Value) -> Vec<&str> {
    let mut keys: Vec<_> = value.as_object().expect("an object").keys().map(String::as_str).collect();
    keys.sort_unstable();
    keys
}

/// Runs `test` on a PostgreSQL database of its own, which is dropped afterwards, even if the test fails.
pub async fn with_postgres<F: Future<Output = ()> + Send + 'static>(test: impl FnOnce(String) -> F) {
    let server = std::env::var("PILLARBOX_TEST_POSTGRES_URL")
        .unwrap_or_else(|_| "postgres://postgres@127.0.0.1:5432/postgres".to_owned());
    let (admin, _connection) = connect(&server).await;
    let name = format!("pillarbox_cli_{:016x}", rand_suffix());
    admin.batch_execute(&format!("CREATE DATABASE {name}")).await.expect("the test user may create databases");
    let outcome = JoinSet::from_iter([test(database_url(&server, &name))]).join_next().await;
    admin.batch_execute(&format!("DROP DATABASE {name} WITH (FORCE)")).await.expect("the database can be dropped");
    if let Some(Err(error)) = outcome {
        resume_unwind(error.into_panic());
    }
}

/// Runs `test` on a MySQL or MariaDB database of its own, which is dropped afterwards, even if the test fails.
pub async fn with_mysql<F: Future<Output = ()> + Send + 'static>(test: impl FnOnce(String) -> F) {
    let server =
        std::env::var("PILLARBOX_TEST_MYSQL_URL").unwrap_or_else(|_| "mysql://root@127.0.0.1:3306/test".to_owned());
    let mut admin = mysql(&server).await;
    let name = format!("pillarbox_cli_{:016x}", rand_suffix());
    admin.query_drop(format!("CREATE DATABASE {name}")).await.expect("the test user may create databases");
    let outcome = JoinSet::from_iter([test(database_url(&server, &name))]).join_next().await;
    admin.query_drop(format!("DROP DATABASE {name}")).await.expect("the database can be dropped");
    if let Some(Err(error)) = outcome {
        resume_unwind(error.into_panic());
    }
}

/// A connection to a MySQL or MariaDB server.
pub async fn mysql(url: &str) -> Conn {
    let options = OptsBuilder::from_opts(Opts::from_url(url).expect("a URL of MySQL")).prefer_socket(false);
    Conn::new(options).await.unwrap_or_else(|error| {
        panic!(
            "these tests need MariaDB or MySQL and cannot reach it ({error}); run them by ./scripts/test, or name a server: \
             PILLARBOX_TEST_MYSQL_URL=mysql://USER@HOST:PORT/DATABASE"
        )
    })
}

/// A client, and the task that drives its connection.
pub async fn connect(url: &str) -> (Client, JoinHandle<()>) {
    let connected = tokio_postgres::connect(url, NoTls).await;
    let (client, connection) = connected.unwrap_or_else(|error| {
        panic!(
            "these tests need PostgreSQL and cannot reach it ({error}); run them by ./scripts/test, or name a server: \
             PILLARBOX_TEST_POSTGRES_URL=postgres://USER@HOST:PORT/DATABASE"
        )
    });
    #[expect(clippy::disallowed_methods, reason = "a test has no task set of an outbox")]
    let driver = tokio::spawn(async move {
        // Ends when the client is dropped, or with an error that the client's next call reports.
        let _ = connection.await;
    });
    (client, driver)
}

/// The first column of the only row.
pub async fn count(client: &Client, sql: &str) -> i64 {
    client.query_one(sql, &[]).await.unwrap_or_else(|error| panic!("{sql}: {error:?}")).get(0)
}

/// Runs SQL on a SQLite database.
pub async fn execute(file: &str, sql: &str) {
    let mut connection = sqlite_connection(file).await;
    sqlx::raw_sql(AssertSqlSafe(sql)).execute(&mut connection).await.unwrap_or_else(|error| panic!("{sql}: {error}"));
}

/// The first column of all rows of a SQLite query, as text.
pub async fn column(file: &str, sql: &str) -> Vec<String> {
    let mut connection = sqlite_connection(file).await;
    let rows = sqlx::query_scalar(AssertSqlSafe(sql)).fetch_all(&mut connection).await;
    rows.unwrap_or_else(|error| panic!("{sql}: {error}"))
}

async fn sqlite_connection(file: &str) -> SqliteConnection {
    let options = SqliteConnectOptions::new().filename(file).busy_timeout(Duration::from_secs(10));
    SqliteConnection::connect_with(&options).await.expect("the database opens")
}

/// Sends a signal, such as `-TERM`, to a command that is running.
pub fn send(signal: &str, process: &Child) {
    let sent = Command::new("kill").args([signal, &process.id().to_string()]).status().expect("kill is there");
    assert!(sent.success(), "{signal}");
}

/// Waits for a running command to end, without blocking the runtime.
pub async fn end_of(process: Child) -> Ended {
    tokio::task::spawn_blocking(|| process.wait_with_output()).await.expect("no panic").expect("it ends").into()
}

/// Repeats a query until its answer is true. A query that fails, as for a table that does not exist yet, is repeated
/// too.
pub async fn wait_until(client: &Client, sql: &str) {
    let answered = async {
        while !matches!(client.query_one(sql, &[]).await.map(|row| row.get(0)), Ok(true)) {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), answered).await.unwrap_or_else(|_| panic!("never true: {sql}"));
}

/// The same server, another database.
pub fn database_url(server: &str, name: &str) -> String {
    let (base, options) = server.split_once('?').map_or((server, String::new()), |(b, o)| (b, format!("?{o}")));
    let authority = base.find("://").expect("a URL") + 3;
    let end = base[authority..].find('/').map_or(base.len(), |slash| authority + slash);
    format!("{}/{name}{options}", &base[..end])
}

fn rand_suffix() -> u64 {
    use pillarbox_core::clock::Random as _;
    pillarbox_core::clock::SystemRandom.next_u64()
}
