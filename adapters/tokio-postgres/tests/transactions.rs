//! The adapter on PostgreSQL.

#![allow(clippy::expect_used, clippy::panic, reason = "a test's helpers fail as the test does")]

use std::sync::Arc;

use deadpool_postgres::{Client, Manager, Pool};
use pillarbox_core::write::{Begin, Bind, Connection, Finish, Insert, Statement};
use pillarbox_testkit::adapters::{keep, kept, probe};
use pillarbox_testkit::drop_after;
use pillarbox_tokio_postgres as _;
use tokio_postgres::NoTls;

/// A pool of one connection, so that whatever a test leaves behind is what it finds next.
fn pool() -> Pool {
    let url = std::env::var("PILLARBOX_TEST_POSTGRES_URL")
        .unwrap_or_else(|_| "postgres://postgres@127.0.0.1:5432/postgres".to_owned());
    let config = url.parse().expect("PILLARBOX_TEST_POSTGRES_URL is a URL");
    Pool::builder(Manager::new(config, NoTls)).max_size(1).build().expect("a pool")
}

async fn client() -> Client {
    pool().get().await.unwrap_or_else(|error| {
        panic!(
            "these tests need PostgreSQL and cannot reach it ({error}); run them by ./scripts/test, or name a server: \
             PILLARBOX_TEST_POSTGRES_URL=postgres://USER@HOST:PORT/DATABASE"
        )
    })
}

fn insert<'a>(sql: &str, binds: Vec<Bind<'a>>, reusable: bool) -> Insert<'a> {
    Insert { rows: &[], statements: vec![Statement { sql: Arc::from(sql), binds, reusable }] }
}

const TABLE: &str = "CREATE TEMP TABLE bound (seq bigint GENERATED ALWAYS AS IDENTITY, i bigint, t text, b bytea)";
const ONE: &str = "INSERT INTO bound (i, t, b) VALUES ($1::bigint, $2::text, $3::bytea) RETURNING seq";
const MANY: &str =
    "INSERT INTO bound (i, t, b) SELECT * FROM unnest($1::bigint[], $2::text[], $3::bytea[]) RETURNING seq";

/// Values and NULLs, alone and in arrays.
async fn binds_arrive_as_they_are<C: Connection<M>, M>(transaction: &mut C, reusable: bool) {
    assert_eq!(transaction.in_transaction(), Some(true));
    let (text, bytes) = ("{\"a\" : 1}😀", [0_u8, 255, 92]);
    let value = vec![Bind::Int(Some(i64::MIN)), Bind::Text(Some(text)), Bind::Bytes(Some(&bytes))];
    let nulls = vec![Bind::Int(None), Bind::Text(None), Bind::Bytes(None)];
    let arrays = vec![
        Bind::Ints(vec![Some(i64::MIN), None]),
        Bind::Texts(vec![Some(text), None]),
        Bind::ByteArrays(vec![Some(&bytes), None]),
    ];
    assert_eq!(transaction.insert(&insert(ONE, value, reusable)).await.expect("inserts"), [1]);
    assert_eq!(transaction.insert(&insert(ONE, nulls, reusable)).await.expect("inserts"), [2]);
    assert_eq!(transaction.insert(&insert(MANY, arrays, reusable)).await.expect("inserts"), [3, 4]);
}

async fn check_bound(transaction: &tokio_postgres::Transaction<'_>) {
    let rows = transaction.query("SELECT i, t, b FROM bound ORDER BY seq", &[]).await.expect("selects");
    for (row, null) in rows.iter().zip([false, true, false, true]) {
        let (i, t, b): (Option<i64>, Option<&str>, Option<&[u8]>) = (row.get(0), row.get(1), row.get(2));
        let value = (Some(i64::MIN), Some("{\"a\" : 1}😀"), Some(&[0_u8, 255, 92][..]));
        assert_eq!((i, t, b), if null { (None, None, None) } else { value });
    }
    assert_eq!(rows.len(), 4);
}

#[tokio::test]
async fn both_drivers_bind_alike() {
    let mut client = client().await;
    for reusable in [false, true] {
        let mut pooled = (&mut client).begin().await.expect("begins");
        pooled.execute(TABLE, &[]).await.expect("creates");
        binds_arrive_as_they_are(&mut pooled, reusable).await;
        check_bound(&pooled).await;
        assert_eq!(pooled.statement_cache.size(), if reusable { 2 } else { 0 }, "only what comes again is prepared");
        Finish::rollback(pooled).await.expect("rolls back");

        let bare: &mut tokio_postgres::Client = &mut client;
        let mut bare = bare.begin().await.expect("begins");
        bare.execute(TABLE, &[]).await.expect("creates");
        binds_arrive_as_they_are(&mut bare, reusable).await;
        check_bound(&bare).await;
        Finish::rollback(bare).await.expect("rolls back");
    }
}

/// Nothing was written, and nobody may be told otherwise.
#[tokio::test]
async fn a_failed_transaction_does_not_seem_to_commit() {
    let mut client = client().await;
    let failed = (&mut client).begin().await.expect("begins");
    failed.execute("SELECT 1 / 0", &[]).await.expect_err("divides by zero");
    Finish::commit(failed).await.expect_err("there is nothing to commit");
    assert!(!is_inside_a_transaction(&client).await);

    let bare: &mut tokio_postgres::Client = &mut client;
    let failed = bare.begin().await.expect("begins");
    failed.execute("SELECT 1 / 0", &[]).await.expect_err("divides by zero");
    Finish::commit(failed).await.expect_err("there is nothing to commit");
    assert!(!is_inside_a_transaction(&client).await);
}

/// Nor may what was rolled back by a statement.
#[tokio::test]
async fn a_transaction_that_was_ended_by_hand_does_not_seem_to_commit() {
    let pool = pool();
    let pooled = (&pool).begin().await.expect("begins");
    pooled.batch_execute("ROLLBACK").await.expect("rolls back");
    Finish::commit(pooled).await.expect_err("there is nothing to commit");

    let mut client = pool.get().await.expect("connects");
    assert!(!is_inside_a_transaction(&client).await);
    let ended = (&mut client).begin().await.expect("begins");
    ended.batch_execute("ROLLBACK").await.expect("rolls back");
    Finish::commit(ended).await.expect_err("there is nothing to commit");
    assert!(!is_inside_a_transaction(&client).await);
}

/// The pool's one connection is outside any transaction after each of these, and what was not committed is not there.
#[tokio::test]
async fn a_transaction_of_the_pool_gives_its_connection_back_clean() {
    let pool = pool();
    let table = format!("pillarbox_pooled_{}", std::process::id());
    let create = format!("DROP TABLE IF EXISTS {table}; CREATE TABLE {table} (i int)");
    pool.get().await.expect("connects").batch_execute(&create).await.expect("creates");
    let count = async || -> i64 {
        let client = pool.get().await.expect("connects");
        assert!(!is_inside_a_transaction(&client).await);
        client.query_one(&format!("SELECT count(*) FROM {table}"), &[]).await.expect("selects").get(0)
    };
    let insert = format!("INSERT INTO {table} VALUES (1)");
    let begun = async || {
        let transaction = (&pool).begin().await.expect("begins");
        transaction.batch_execute(&insert).await.expect("inserts");
        transaction
    };
    drop(begun().await);
    assert_eq!(count().await, 0, "dropped");
    Finish::rollback(begun().await).await.expect("rolls back");
    assert_eq!(count().await, 0, "rolled back");
    Finish::commit(begun().await).await.expect("commits");
    assert_eq!(count().await, 1, "committed");
    let failed = begun().await;
    failed.batch_execute("SELECT 1 / 0").await.expect_err("divides by zero");
    Finish::commit(failed).await.expect_err("there is nothing to commit");
    assert_eq!(count().await, 1, "failed");
    for waits in 0..20 {
        let _ = drop_after(waits, (&pool).begin()).await;
        assert_eq!(count().await, 1, "its begin dropped after {waits} waits");
    }
    pool.get().await.expect("connects").batch_execute(&format!("DROP TABLE {table}")).await.expect("drops");
}

/// A dropped future leaves the connection outside any transaction, wherever it was.
#[tokio::test]
async fn nothing_dropped_leaves_a_transaction_open() {
    let mut client = client().await;
    let whole = async |client: &mut Client| {
        let mut transaction = client.begin().await.expect("begins");
        let statement = insert("SELECT $1::bigint", vec![Bind::Int(Some(7))], true);
        assert_eq!(transaction.insert(&statement).await.expect("inserts"), [7]);
        Finish::commit(transaction).await.expect("commits");
    };
    let mut finished = false;
    for waits in 0..100 {
        finished = drop_after(waits, whole(&mut client)).await.is_some();
        assert!(!is_inside_a_transaction(&client).await, "dropped after {waits} waits");
        if finished {
            break;
        }
    }
    assert!(finished, "it waits fewer than 100 times");
}

/// By the server's account: outside of a transaction, each statement has a transaction id of its own.
async fn is_inside_a_transaction(client: &Client) -> bool {
    let id = async || -> String {
        client.query_one("SELECT pg_current_xact_id()::text", &[]).await.expect("selects").get(0)
    };
    id().await == id().await
}

const KEPT: &str = "CREATE TEMP TABLE kept (seq bigint, event_id varchar(36))";

/// One row kept, one rolled back to a savepoint whose failure is ignored, one in a savepoint that is released.
fn around_savepoints() -> [String; 5] {
    let failing = format!("SAVEPOINT undone; {}", keep(2));
    let undo = "ROLLBACK TO SAVEPOINT undone".to_owned();
    [keep(1), failing, "SELECT 1 / 0".to_owned(), undo, format!("SAVEPOINT kept; {}; RELEASE SAVEPOINT kept", keep(3))]
}

/// The three kinds of a transaction alike: what was rolled back to a savepoint is not committed.
#[tokio::test]
async fn a_commit_tells_what_it_committed_of_savepoints() {
    let pool = pool();
    pool.get().await.expect("connects").batch_execute(KEPT).await.expect("creates");
    macro_rules! commits {
        ($transaction:expr) => {{
            let transaction = $transaction;
            for statement in around_savepoints() {
                let _division_by_zero = transaction.batch_execute(&statement).await;
            }
            let mut found = transaction.commit_verified(&probe()).await.expect("commits");
            found.sort_by_key(|row| row.seq);
            assert_eq!(found, kept([1, 3]));
        }};
    }
    commits!((&pool).begin().await.expect("begins"));
    let mut client = pool.get().await.expect("connects");
    client.batch_execute("TRUNCATE kept").await.expect("empties it");
    commits!((&mut client).begin().await.expect("begins"));
    client.batch_execute("TRUNCATE kept").await.expect("empties it");
    let bare: &mut tokio_postgres::Client = &mut client;
    commits!(bare.begin().await.expect("begins"));
}

/// Of both drivers. A transaction of the pool has none.
#[tokio::test]
async fn a_commit_tells_what_it_committed_of_nested_transactions() {
    let pool = pool();
    pool.get().await.expect("connects").batch_execute(KEPT).await.expect("creates");
    macro_rules! commits {
        ($transaction:expr) => {{
            let mut transaction = $transaction;
            transaction.batch_execute(&keep(1)).await.expect("inserts");
            let nested = transaction.transaction().await.expect("begins");
            nested.batch_execute(&keep(2)).await.expect("inserts");
            nested.rollback().await.expect("rolls back");
            let nested = transaction.transaction().await.expect("begins");
            nested.batch_execute(&keep(3)).await.expect("inserts");
            nested.commit().await.expect("commits");
            let mut found = transaction.commit_verified(&probe()).await.expect("commits");
            found.sort_by_key(|row| row.seq);
            assert_eq!(found, kept([1, 3]));
        }};
    }
    let mut client = pool.get().await.expect("connects");
    commits!((&mut client).begin().await.expect("begins"));
    client.batch_execute("TRUNCATE kept").await.expect("empties it");
    let bare: &mut tokio_postgres::Client = &mut client;
    commits!(bare.begin().await.expect("begins"));
}

/// Its error was ignored, or it was ended by hand: no probe makes that a success. Chained, the rest of it is committed.
#[tokio::test]
async fn a_verified_commit_fails_where_there_is_nothing_to_commit() {
    let pool = pool();
    pool.get().await.expect("connects").batch_execute(KEPT).await.expect("creates");
    for end in ["SELECT 1 / 0", "ROLLBACK", "COMMIT"] {
        let pooled = (&pool).begin().await.expect("begins");
        let _ended = pooled.batch_execute(end).await;
        pooled.commit_verified(&probe()).await.expect_err("there is nothing to commit");
        let mut client = pool.get().await.expect("connects");
        let transaction = (&mut client).begin().await.expect("begins");
        let _ended = transaction.batch_execute(end).await;
        transaction.commit_verified(&probe()).await.expect_err("there is nothing to commit");
        assert!(!is_inside_a_transaction(&client).await);
    }
    let pooled = (&pool).begin().await.expect("begins");
    let chained = format!("{}; ROLLBACK AND CHAIN; {}", keep(1), keep(2));
    for statement in chained.split("; ") {
        pooled.batch_execute(statement).await.expect("is done");
    }
    assert_eq!(pooled.commit_verified(&probe()).await.expect("commits"), kept([2]));
}

#[tokio::test]
async fn a_guard_knows_its_connection_in_every_form() {
    let pool = pool();
    let mut client = pool.get().await.expect("connects");
    let mut transaction = (&mut client).begin().await.expect("begins");
    let id = Connection::id(&transaction);
    assert_eq!(Connection::id(&*transaction), id, "the driver's inside of the pool's");
    assert_eq!(Connection::id(&transaction.transaction().await.expect("begins")), id);
}
