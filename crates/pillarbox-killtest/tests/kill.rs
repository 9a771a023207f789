//! `kill -9` of processes in the middle of handlers' transactions: each payment is booked exactly once.
//!
//! Four processes of the service deliver; one after the other is killed at any moment and started again. `PILLARBOX_TEST_KILLS` says how
//! many times.
#![allow(clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

use std::process::{Child, Command, Stdio};
use std::time::Duration;

use mysql_async::prelude::Queryable as _;
use pillarbox::{MysqlStore, PostgresStore, SqliteStore, Store};
use pillarbox_core::clock::{Random as _, SystemRandom};
use pillarbox_programtest::{column, connect, count, execute, mysql, with_mysql, with_postgres};
use tokio::time::{sleep, timeout};

const PROCESSES: usize = 4;
/// Payments that are added before each kill.
const PAYMENTS: usize = 20;
/// The longest time between two kills, in milliseconds.
const LONGEST: f64 = 60.0;
/// Nothing is left to be done after that.
const PATIENCE: Duration = Duration::from_secs(90);

/// A database, as the test sees it.
enum Database {
    Postgres(tokio_postgres::Client),
    Mysql(mysql_async::Conn),
    Sqlite(String),
}

impl Database {
    async fn execute(&mut self, sql: &str) {
        match self {
            Self::Postgres(client) => client.batch_execute(sql).await.unwrap_or_else(|error| panic!("{sql}: {error}")),
            Self::Mysql(conn) => conn.query_drop(sql).await.unwrap_or_else(|error| panic!("{sql}: {error}")),
            Self::Sqlite(file) => execute(file, sql).await,
        }
    }

    async fn number(&mut self, sql: &str) -> i64 {
        match self {
            Self::Postgres(client) => count(client, sql).await,
            Self::Mysql(conn) => conn.query_first(sql).await.expect("the query runs").expect("a row"),
            Self::Sqlite(file) => {
                let sql = format!("SELECT CAST(number AS text) FROM ({sql})");
                column(file, &sql).await.first().and_then(|text| text.parse().ok()).expect("a number")
            }
        }
    }

    /// Ends some of the sessions, wherever they are in a transaction.
    async fn cut(&mut self) {
        if let Self::Postgres(client) = self {
            let sql = "SELECT count(pg_terminate_backend(pid)) FROM (SELECT pid FROM pg_stat_activity
                       WHERE datname = current_database() AND pid <> pg_backend_pid() ORDER BY random() LIMIT 3) AS chosen";
            count(client, sql).await;
        }
    }
}

/// A process of the service, which is killed when it is dropped: a test that fails leaves none behind.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        // One that has ended already needs no killing.
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

fn start(url: &str, mode: &str) -> Process {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pillarbox-killtest-worker"));
    command.args([url, mode]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    Process(command.spawn().expect("the worker starts"))
}

async fn each_payment_is_booked_once(mut database: Database, url: &str, mode: &str) {
    let kills = std::env::var("PILLARBOX_TEST_KILLS").map_or(40, |kills| kills.parse().expect("a number"));
    database.execute("CREATE TABLE booking (event_id varchar(64) NOT NULL)").await;
    let mut processes: Vec<Process> = (0..PROCESSES).map(|_| start(url, mode)).collect();
    for round in 0..kills {
        let rows: Vec<String> =
            (0..PAYMENTS).map(|n| format!("('p-{}', 'payment', '{{}}')", round * PAYMENTS + n)).collect();
        let insert = format!("INSERT INTO outbox_event (event_id, event_type, payload) VALUES {}", rows.join(", "));
        database.execute(&insert).await;
        sleep(Duration::from_secs_f64(SystemRandom.next_f64() * LONGEST / 1000.0)).await;
        if round % 5 == 0 {
            database.cut().await;
        }
        drop(processes.remove(0));
        processes.push(start(url, mode));
    }
    let pending = "SELECT count(*) AS number FROM outbox_event WHERE status IN (0, 2)";
    let over = async {
        while database.number(pending).await > 0 {
            sleep(Duration::from_millis(20)).await;
        }
    };
    let in_time = timeout(PATIENCE, over).await.is_ok();
    drop(processes);
    let left = database.number(pending).await;
    assert!(in_time, "{left} events are left after {PATIENCE:?}");

    let payments = i64::try_from(kills * PAYMENTS).expect("few");
    let bookings = database.number("SELECT count(*) AS number FROM booking").await;
    let booked = database.number("SELECT count(DISTINCT event_id) AS number FROM booking").await;
    assert_eq!((bookings, booked), (payments, payments), "bookings, and payments that were booked");
    let done = "SELECT count(*) AS number FROM outbox_event WHERE status = 1 AND event_type";
    for event_type in ["payment", "booked"] {
        let events = database.number(&format!("{done} = '{event_type}'")).await;
        assert_eq!(events, payments, "{event_type}");
    }
}

async fn on_postgres(mode: &'static str) {
    with_postgres(move |url| async move {
        let store = PostgresStore::connect(&url).await.expect("connects");
        store.migrate().await.expect("migrates");
        store.close().await;
        let (client, _connection) = connect(&url).await;
        each_payment_is_booked_once(Database::Postgres(client), &url, mode).await;
    })
    .await;
}

#[tokio::test]
async fn on_postgres_each_payment_is_booked_once_by_many_nodes() {
    on_postgres("multi_node").await;
}

#[tokio::test]
async fn on_postgres_each_payment_is_booked_once_in_partitions() {
    on_postgres("partitioned").await;
}

#[tokio::test]
async fn on_mysql_each_payment_is_booked_once() {
    with_mysql(|url| async move {
        let store = MysqlStore::connect(&url).await.expect("connects");
        store.migrate().await.expect("migrates");
        store.close().await;
        let conn = mysql(&url).await;
        each_payment_is_booked_once(Database::Mysql(conn), &url, "multi_node").await;
    })
    .await;
}

#[tokio::test]
async fn on_sqlite_each_payment_is_booked_once() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("ledger.db").display().to_string();
    let store = SqliteStore::open(&file).await.expect("opens");
    store.migrate().await.expect("migrates");
    store.close().await;
    each_payment_is_booked_once(Database::Sqlite(file.clone()), &file, "multi_node").await;
}
