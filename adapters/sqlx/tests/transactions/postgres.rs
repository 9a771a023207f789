//! The adapter on PostgreSQL.
#![expect(clippy::expect_used, clippy::panic, reason = "in tests, and in what only they use, a panic is the failure")]

use crate::alike::alike;
use pillarbox_core::write::{Begin, Bind, Connection, Finish};
use pillarbox_sqlx as _;
use pillarbox_testkit::adapters::{self, insert};
use pillarbox_testkit::drop_after;
use pillarbox_testkit::publishers::{Link as _, Proxy};
use sqlx::postgres::PgPoolOptions;
use sqlx::{AssertSqlSafe, Connection as _, Executor as _, PgPool, Row as _, query, query_scalar};
use tokio::net::lookup_host;

/// A pool of one connection, so that whatever a test leaves behind is what it finds next.
async fn pool() -> PgPool {
    let url = std::env::var("PILLARBOX_TEST_POSTGRES_URL")
        .unwrap_or_else(|_| "postgres://postgres@127.0.0.1:5432/postgres".to_owned());
    let connected = PgPoolOptions::new().max_connections(1).connect(&url).await;
    connected.unwrap_or_else(|error| {
        panic!(
            "these tests need PostgreSQL and cannot reach it ({error}); run them by ./scripts/test, or name a server: \
             PILLARBOX_TEST_POSTGRES_URL=postgres://USER@HOST:PORT/DATABASE"
        )
    })
}

/// Whether the pool's connection is inside a transaction, by the server's account: outside of one, each statement has a
/// transaction id of its own.
async fn is_inside_a_transaction(pool: &PgPool) -> bool {
    let mut connection = pool.acquire().await.expect("a connection is free");
    let mut id = async || {
        query_scalar::<_, String>("SELECT pg_current_xact_id()::text")
            .fetch_one(&mut *connection)
            .await
            .expect("selects")
    };
    id().await == id().await
}

#[tokio::test]
async fn binds_arrive_as_they_are() {
    let pool = pool().await;
    let mut tx = Begin::begin(&pool).await.expect("begins");
    tx.execute("CREATE TEMP TABLE bound (seq bigint GENERATED ALWAYS AS IDENTITY, i bigint, t text, b bytea)")
        .await
        .expect("creates");
    let (text, bytes) = ("{\"a\" : 1}😀", [0_u8, 255, 92]);
    let sql = "INSERT INTO bound (i, t, b) VALUES ($1, $2, $3), ($4, $5, $6) RETURNING seq";
    let values = [Bind::Int(Some(i64::MIN)), Bind::Text(Some(text)), Bind::Bytes(Some(&bytes))];
    let nulls = [Bind::Int(None), Bind::Text(None), Bind::Bytes(None)];
    let one_by_one = insert(sql, values.into_iter().chain(nulls).collect());
    assert_eq!(tx.insert(&one_by_one).await.expect("inserts"), [1, 2]);
    let sql = "INSERT INTO bound (i, t, b) SELECT * FROM unnest($1::bigint[], $2::text[], $3::bytea[]) RETURNING seq";
    let arrays = vec![
        Bind::Ints(vec![Some(i64::MIN), None]),
        Bind::Texts(vec![Some(text), None]),
        Bind::ByteArrays(vec![Some(&bytes), None]),
    ];
    assert_eq!(tx.insert(&insert(sql, arrays)).await.expect("inserts"), [3, 4]);
    let rows = query("SELECT i, t, b FROM bound ORDER BY seq").fetch_all(&mut *tx).await.expect("selects");
    for row in [&rows[0], &rows[2]] {
        assert_eq!((row.get::<i64, _>(0), row.get::<&str, _>(1)), (i64::MIN, text));
        assert_eq!(row.get::<&[u8], _>(2), bytes);
    }
    for row in [&rows[1], &rows[3]] {
        let row: (Option<i64>, Option<&str>, Option<&[u8]>) = (row.get(0), row.get(1), row.get(2));
        assert_eq!(row, (None, None, None));
    }
}

#[tokio::test]
async fn seqs_come_in_the_order_of_the_rows_whatever_the_server_returns() {
    let pool = pool().await;
    let mut tx = Begin::begin(&pool).await.expect("begins");
    let mut two = insert("SELECT * FROM (VALUES (3::bigint), (1), (2)) AS v", Vec::new());
    two.statements.extend(insert("SELECT * FROM (VALUES (5::bigint), (4)) AS v", Vec::new()).statements);
    assert_eq!(Connection::insert(&mut *tx, &two).await.expect("selects"), [1, 2, 3, 4, 5]);
}

#[tokio::test]
async fn only_a_transaction_of_sqlx_is_one() {
    let pool = pool().await;
    let mut connection = pool.acquire().await.expect("connects");
    assert_eq!(Connection::in_transaction(&mut *connection), Some(false));
    connection.execute("BEGIN").await.expect("begins");
    assert_eq!(Connection::in_transaction(&mut *connection), Some(false), "one that sqlx did not begin is not seen");
    connection.execute("ROLLBACK").await.expect("rolls back");
    let mut tx = connection.begin_with("BEGIN ISOLATION LEVEL SERIALIZABLE").await.expect("begins");
    assert_eq!((Connection::in_transaction(&mut tx), Connection::in_transaction(&mut *tx)), (Some(true), Some(true)));
    tx.commit().await.expect("commits");
    assert_eq!(Connection::in_transaction(&mut *connection), Some(false));
}

#[tokio::test]
async fn a_begin_dropped_anywhere_leaves_no_open_transaction() {
    let pool = pool().await;
    let (mut dropped, mut finished) = (0, 0);
    for waits in 0..10 {
        for _ in 0..200 {
            match drop_after(waits, Begin::begin(&pool)).await {
                None => dropped += 1,
                Some(begun) => {
                    drop(begun.expect("begins"));
                    finished += 1;
                }
            }
            assert!(!is_inside_a_transaction(&pool).await, "after {waits} waits");
        }
    }
    // On a busy machine the answer is mostly there before anybody waits for it.
    assert!(dropped > 0 && finished > 0, "{dropped} were dropped, {finished} finished");
}

/// Why the adapter does not simply call sqlx's `Pool::begin`. Once this fails, it can.
#[tokio::test]
async fn sqlx_leaves_a_transaction_open_when_its_own_begin_is_dropped() {
    let server = pool().await.connect_options();
    let address = (server.get_host(), server.get_port());
    let address = lookup_host(address).await.expect("resolves").next().expect("an address");
    let proxy = Proxy::to(address).await.expect("listens");
    let through = (*server).clone().host("127.0.0.1").port(proxy.port());
    let options = PgPoolOptions::new().max_connections(1).test_before_acquire(false);
    let pool = options.connect_with(through).await.expect("connects");
    proxy.stall();
    // It waits for the answer to its BEGIN when it is dropped.
    assert!(drop_after(0, pool.begin()).await.is_none(), "nothing answers");
    proxy.pass();
    assert!(is_inside_a_transaction(&pool).await, "this release of sqlx no longer needs the adapter's care");
}

#[tokio::test]
async fn a_commit_or_insert_dropped_anywhere_leaves_no_open_transaction() {
    let pool = pool().await;
    let mut dropped = (0, 0);
    // On a busy machine an answer may be there before it is waited for, so that nothing is dropped in a round.
    for waits in (0..10).cycle().take(1000) {
        let mut tx = Begin::begin(&pool).await.expect("begins");
        let sleep = insert("SELECT 1::bigint FROM pg_sleep(0.001)", Vec::new());
        dropped.0 += usize::from(drop_after(waits, tx.insert(&sleep)).await.is_none());
        dropped.1 += usize::from(drop_after(waits, Finish::commit(tx)).await.is_none());
        assert!(!is_inside_a_transaction(&pool).await, "after {waits} waits");
        if waits == 9 && dropped.0 > 0 && dropped.1 > 0 {
            break;
        }
    }
    assert!(dropped.0 > 0 && dropped.1 > 0, "{dropped:?} were dropped");
}

#[tokio::test]
async fn the_commit_of_a_failed_transaction_is_an_error() {
    let pool = pool().await;
    let mut tx = Begin::begin(&pool).await.expect("begins");
    tx.execute("SELECT 1 / 0").await.expect_err("division by zero");
    // A service that overlooks the error must not be told that its events exist.
    let error = Finish::commit(tx).await.expect_err("PostgreSQL rolls back");
    assert!(error.to_string().contains("current transaction is aborted"), "{error}");
    assert!(!is_inside_a_transaction(&pool).await);
}

#[tokio::test]
async fn the_commit_of_a_transaction_that_was_ended_by_hand_is_an_error() {
    let pool = pool().await;
    let mut tx = Begin::begin(&pool).await.expect("begins");
    tx.execute("ROLLBACK").await.expect("rolls back");
    Finish::commit(tx).await.expect_err("there is nothing to commit");
    assert!(!is_inside_a_transaction(&pool).await);
}

#[tokio::test]
async fn rolling_back_and_dropping_undo() {
    let pool = pool().await;
    pool.execute("CREATE TEMP TABLE undone (seq bigint)").await.expect("creates");
    let sql = "INSERT INTO undone VALUES (1) RETURNING seq";
    let mut tx = Begin::begin(&pool).await.expect("begins");
    tx.insert(&insert(sql, Vec::new())).await.expect("inserts");
    Finish::rollback(tx).await.expect("rolls back");
    let mut tx = Begin::begin(&pool).await.expect("begins");
    tx.insert(&insert(sql, Vec::new())).await.expect("inserts");
    drop(tx);
    let left: i64 = query_scalar("SELECT count(*) FROM undone").fetch_one(&pool).await.expect("counts");
    assert_eq!(left, 0);
}

async fn kept() -> PgPool {
    let pool = pool().await;
    pool.execute("CREATE TEMP TABLE kept (seq bigint, event_id varchar(36))").await.expect("creates");
    pool
}

/// Rows written before the ROLLBACK AND CHAIN are gone; the chained transaction commits.
#[tokio::test]
async fn rows_before_a_rollback_and_chain_are_not_committed() {
    let pool = kept().await;
    let mut tx = Begin::begin(&pool).await.expect("begins");
    tx.execute(keep(1)).await.expect("inserts");
    tx.execute("ROLLBACK AND CHAIN").await.expect("begins anew");
    tx.execute(keep(2)).await.expect("inserts");
    assert_eq!(tx.commit_verified(&adapters::probe()).await.expect("commits"), adapters::kept([2]));
}

/// Its error was ignored, and PostgreSQL would answer the commit by rolling back.
#[tokio::test]
async fn the_verified_commit_of_a_failed_transaction_is_an_error_unless_a_savepoint_saves_it() {
    let pool = kept().await;
    let mut tx = Begin::begin(&pool).await.expect("begins");
    tx.execute(keep(1)).await.expect("inserts");
    tx.execute("SELECT 1 / 0").await.expect_err("division by zero");
    let error = tx.commit_verified(&adapters::probe()).await.expect_err("PostgreSQL rolls back");
    assert!(error.to_string().contains("current transaction is aborted"), "{error}");

    let mut tx = Begin::begin(&pool).await.expect("begins");
    tx.execute(keep(2)).await.expect("inserts");
    tx.execute("SAVEPOINT saved").await.expect("sets it");
    tx.execute(keep(3)).await.expect("inserts");
    tx.execute("SELECT 1 / 0").await.expect_err("division by zero");
    tx.execute("ROLLBACK TO SAVEPOINT saved").await.expect("rolls back");
    assert_eq!(tx.commit_verified(&adapters::probe()).await.expect("commits"), adapters::kept([2]));
}

alike!(kept => &kept);
