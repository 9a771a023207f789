use std::future::Future;
use std::time::Duration;

use mysql_async::prelude::Queryable as _;
use pillarbox::{MysqlStore, PostgresStore, SqliteStore, Store};
use pillarbox_programtest::{column, connect, count, execute, mysql, with_mysql, with_postgres};
use tokio::time::{sleep, timeout};

/// The number of processes that have joined.
pub(crate) const NODES: &str = "SELECT count(*) AS number FROM outbox_node";
pub(crate) const BOOKINGS: &str = "SELECT count(*) AS number FROM booking";

/// A database with an outbox and the table `booking`, as a test sees it.
pub(crate) struct Database {
    pub(crate) url: String,
    connection: Connection,
}

enum Connection {
    Postgres(tokio_postgres::Client),
    Mysql(mysql_async::Conn),
    Sqlite,
}

impl Database {
    /// Connects to a new database and makes its tables.
    pub(crate) async fn create(url: &str) -> Self {
        if url.starts_with("postgres:") {
            migrate(PostgresStore::connect(url).await.expect("connects")).await;
        } else if url.starts_with("mysql:") {
            migrate(MysqlStore::connect(url).await.expect("connects")).await;
        } else {
            migrate(SqliteStore::open(url).await.expect("opens")).await;
        }
        let mut database = Self::connect(url).await;
        database.execute("CREATE TABLE booking (event_id varchar(64) NOT NULL)").await;
        database
    }

    pub(crate) async fn connect(url: &str) -> Self {
        let connection = if url.starts_with("postgres:") {
            Connection::Postgres(connect(url).await.0)
        } else if url.starts_with("mysql:") {
            Connection::Mysql(mysql(url).await)
        } else {
            Connection::Sqlite
        };
        Self { url: url.to_owned(), connection }
    }

    pub(crate) async fn execute(&mut self, sql: &str) {
        match &mut self.connection {
            Connection::Postgres(client) => {
                client.batch_execute(sql).await.unwrap_or_else(|error| panic!("{sql}: {error}"));
            }
            Connection::Mysql(conn) => conn.query_drop(sql).await.unwrap_or_else(|error| panic!("{sql}: {error}")),
            Connection::Sqlite => execute(&self.url, sql).await,
        }
    }

    /// The only column, `number`, of the only row.
    pub(crate) async fn number(&mut self, sql: &str) -> i64 {
        match &mut self.connection {
            Connection::Postgres(client) => count(client, sql).await,
            Connection::Mysql(conn) => conn.query_first(sql).await.expect("the query runs").expect("a row"),
            Connection::Sqlite => {
                let sql = format!("SELECT CAST(number AS text) FROM ({sql})");
                column(&self.url, &sql).await.first().and_then(|text| text.parse().ok()).expect("a number")
            }
        }
    }

    /// Asks until the number is as wanted.
    pub(crate) async fn wait_for(&mut self, sql: &str, wanted: i64, patience: Duration) {
        let mut number = None;
        let becomes_so = async {
            while number != Some(wanted) {
                if number.is_some() {
                    sleep(Duration::from_millis(20)).await;
                }
                number = Some(self.number(sql).await);
            }
        };
        if timeout(patience, becomes_so).await.is_err() {
            panic!("{sql}: it is {number:?} after {patience:?}, and not {wanted}");
        }
    }

    /// Ends some of the sessions, wherever they are in a transaction.
    pub(crate) async fn cut(&mut self) {
        if let Connection::Postgres(client) = &self.connection {
            let sql = "SELECT count(pg_terminate_backend(pid)) FROM (SELECT pid FROM pg_stat_activity
                       WHERE datname = current_database() AND pid <> pg_backend_pid() ORDER BY random() LIMIT 3) AS chosen";
            count(client, sql).await;
        }
    }
}

async fn migrate(store: impl Store) {
    store.migrate().await.expect("migrates");
    store.close().await;
}

/// Runs a test on a database of its own on the server of PostgreSQL that all tests share.
pub(crate) async fn on_postgres<F: Future<Output = ()> + Send + 'static>(
    test: impl FnOnce(Database) -> F + Send + 'static,
) {
    with_postgres(|url| async move { test(Database::create(&url).await).await }).await;
}

/// The same, on MariaDB or MySQL.
pub(crate) async fn on_mysql<F: Future<Output = ()> + Send + 'static>(
    test: impl FnOnce(Database) -> F + Send + 'static,
) {
    with_mysql(|url| async move { test(Database::create(&url).await).await }).await;
}

/// The same, in a file.
pub(crate) async fn on_sqlite<F: Future<Output = ()>>(test: impl FnOnce(Database) -> F) {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("ledger.db").display().to_string();
    test(Database::create(&file).await).await;
}
