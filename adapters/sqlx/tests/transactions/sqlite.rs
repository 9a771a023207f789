//! The adapter on SQLite. What it does together with the store is tested there.
#![expect(clippy::expect_used, reason = "in tests, and in what only they use, a panic is the failure")]

use std::path::PathBuf;
use std::pin::pin;
use std::time::Duration;

use crate::alike::alike;
use pillarbox_core::event::Stamp;
use pillarbox_core::write::{Begin, Bind, Connection, Finish};
use pillarbox_sqlx::begin_immediate;
use pillarbox_testkit::adapters::{self, insert};
use pillarbox_testkit::drop_after;
use sqlx::sqlite::{SqliteConnectOptions, SqlitePoolOptions};
use sqlx::{AssertSqlSafe, Connection as _, Executor as _, Row as _, SqlitePool, query_scalar};
use tokio::time::timeout;

/// A database file with a pool of one connection, so that whatever a test leaves behind is what it finds next.
struct Database {
    file: PathBuf,
    pool: SqlitePool,
}

impl Database {
    async fn new() -> Self {
        let file = std::env::temp_dir().join(format!("pillarbox_sx_{}.db", Stamp::system().next_id()));
        let pool = connect(&file, Duration::from_secs(5)).await;
        pool.execute("CREATE TABLE bound (seq INTEGER PRIMARY KEY, i INTEGER, t TEXT, b BLOB)").await.expect("creates");
        Self { file, pool }
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.file);
    }
}

async fn connect(file: &PathBuf, acquire_timeout: Duration) -> SqlitePool {
    let options = SqliteConnectOptions::new().filename(file).create_if_missing(true).busy_timeout(Duration::ZERO);
    let pool = SqlitePoolOptions::new().max_connections(1).acquire_timeout(acquire_timeout);
    pool.connect_with(options).await.expect("opens")
}

#[tokio::test]
async fn binds_arrive_as_they_are() {
    let database = Database::new().await;
    let mut tx = Begin::begin(&database.pool).await.expect("begins");
    let (text, bytes) = ("{\"a\" : 1}😀", [0_u8, 255, 92]);
    let sql = "INSERT INTO bound (i, t, b) VALUES (?, ?, ?), (?, ?, ?) RETURNING seq";
    let values = [Bind::Int(Some(i64::MIN)), Bind::Text(Some(text)), Bind::Bytes(Some(&bytes))];
    let nulls = [Bind::Int(None), Bind::Text(None), Bind::Bytes(None)];
    let both = insert(sql, values.into_iter().chain(nulls).collect());
    assert_eq!(tx.insert(&both).await.expect("inserts"), [1, 2]);
    let rows = tx.fetch_all("SELECT i, t, b FROM bound ORDER BY seq").await.expect("selects");
    assert_eq!((rows[0].get::<i64, _>(0), rows[0].get::<&str, _>(1)), (i64::MIN, text));
    assert_eq!(rows[0].get::<&[u8], _>(2), bytes);
    let nulls: (Option<i64>, Option<&str>, Option<&[u8]>) = (rows[1].get(0), rows[1].get(1), rows[1].get(2));
    assert_eq!(nulls, (None, None, None));
}

#[tokio::test]
async fn arrays_are_refused() {
    let database = Database::new().await;
    let mut tx = Begin::begin(&database.pool).await.expect("begins");
    let arrays = insert("SELECT ?", vec![Bind::Ints(vec![Some(1)])]);
    let error = tx.insert(&arrays).await.expect_err("SQLite has no arrays");
    assert!(error.to_string().contains("SQLite cannot take"), "{error}");
}

#[tokio::test]
async fn seqs_come_in_the_order_of_the_rows_whatever_the_database_returns() {
    let database = Database::new().await;
    let mut tx = Begin::begin(&database.pool).await.expect("begins");
    let unordered = insert("SELECT * FROM (VALUES (3), (1), (2))", Vec::new());
    assert_eq!(Connection::insert(&mut *tx, &unordered).await.expect("selects"), [1, 2, 3]);
}

#[tokio::test]
async fn only_a_transaction_of_sqlx_is_one() {
    let database = Database::new().await;
    let mut connection = database.pool.acquire().await.expect("connects");
    assert_eq!(Connection::in_transaction(&mut *connection), Some(false));
    connection.execute("BEGIN").await.expect("begins");
    assert_eq!(Connection::in_transaction(&mut *connection), Some(false), "one that sqlx did not begin is not seen");
    connection.execute("ROLLBACK").await.expect("rolls back");
    let mut tx = connection.begin().await.expect("begins");
    assert_eq!((Connection::in_transaction(&mut tx), Connection::in_transaction(&mut *tx)), (Some(true), Some(true)));
    tx.rollback().await.expect("rolls back");
    assert_eq!(Connection::in_transaction(&mut *connection), Some(false));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn dropped_anywhere_nothing_leaves_an_open_transaction() {
    let database = Database::new().await;
    let mut dropped = (0, 0, 0);
    for waits in (0..6).cycle().take(120) {
        dropped.0 += usize::from(drop_after(waits, Begin::begin(&database.pool)).await.is_none());
        let mut tx = Begin::begin(&database.pool).await.expect("no transaction is open");
        let one = insert("INSERT INTO bound (i) VALUES (1) RETURNING seq", Vec::new());
        dropped.1 += usize::from(drop_after(waits, tx.insert(&one)).await.is_none());
        dropped.2 += usize::from(drop_after(waits, Finish::commit(tx)).await.is_none());
        let other = connect(&database.file, Duration::from_secs(5)).await;
        Begin::begin(&other).await.expect("nobody holds the lock");
        other.close().await;
    }
    assert!(dropped.0 > 0 && dropped.1 > 0 && dropped.2 > 0, "{dropped:?} were dropped");
}

#[tokio::test]
async fn beginning_waits_for_the_lock_and_takes_it_at_once() {
    let database = Database::new().await;
    let other = connect(&database.file, Duration::from_millis(300)).await;
    let held = begin_immediate(&database.pool).await.expect("begins");
    let error = begin_immediate(&other).await.expect_err("the lock is held");
    assert!(error.to_string().contains("database is locked"), "{error}");
    let patient = connect(&database.file, Duration::from_secs(10)).await;
    let mut begin = pin!(begin_immediate(&patient));
    assert!(timeout(Duration::from_millis(20), &mut begin).await.is_err(), "it waits");
    Finish::rollback(held).await.expect("rolls back");
    begin.await.expect("the lock came free");
}

#[tokio::test]
async fn rolling_back_and_dropping_undo() {
    let database = Database::new().await;
    let one = insert("INSERT INTO bound (i) VALUES (1) RETURNING seq", Vec::new());
    let mut tx = Begin::begin(&database.pool).await.expect("begins");
    tx.insert(&one).await.expect("inserts");
    Finish::rollback(tx).await.expect("rolls back");
    let mut tx = Begin::begin(&database.pool).await.expect("begins");
    tx.insert(&one).await.expect("inserts");
    drop(tx);
    let left: i64 = query_scalar("SELECT count(*) FROM bound").fetch_one(&database.pool).await.expect("counts");
    assert_eq!(left, 0);
}

async fn kept() -> Database {
    let database = Database::new().await;
    database.pool.execute("CREATE TABLE kept (seq INTEGER, event_id TEXT)").await.expect("creates");
    database
}

#[tokio::test]
async fn the_commit_of_a_transaction_that_was_ended_by_hand_is_an_error() {
    for end in ["ROLLBACK", "COMMIT", "INSERT OR ROLLBACK INTO bound (seq) VALUES (7), (7)"] {
        // sqlx goes on counting a transaction that was ended by hand, so each has a connection of its own.
        let database = kept().await;
        let mut tx = Begin::begin(&database.pool).await.expect("begins");
        tx.execute(keep(1)).await.expect("inserts");
        let _ended = tx.execute(end).await;
        let error = tx.commit_verified(&adapters::probe()).await.expect_err("there is nothing to commit");
        assert!(error.to_string().contains("no transaction is active"), "{end}: {error}");
    }
}

alike!(kept => &kept.pool);
