//! The adapter on MariaDB.
#![expect(clippy::expect_used, clippy::panic, reason = "in tests, and in what only they use, a panic is the failure")]

use crate::alike::alike;
use pillarbox_core::event::Stamp;
use pillarbox_core::write::{Begin, Bind, Connection, Finish};
use pillarbox_sqlx as _;
use pillarbox_testkit::adapters::{self, insert};
use pillarbox_testkit::drop_after;
use sqlx::mysql::MySqlPoolOptions;
use sqlx::{AssertSqlSafe, Connection as _, Executor as _, MySqlPool, Row as _, query, query_scalar};

/// A pool of one connection, so that whatever a test leaves behind is what it finds next.
async fn pool() -> MySqlPool {
    let url =
        std::env::var("PILLARBOX_TEST_MYSQL_URL").unwrap_or_else(|_| "mysql://root@127.0.0.1:3306/test".to_owned());
    let connected = MySqlPoolOptions::new().max_connections(1).connect(&url).await;
    connected.unwrap_or_else(|error| {
        panic!(
            "these tests need MariaDB and cannot reach it ({error}); run them by ./scripts/test, or name a server: \
             PILLARBOX_TEST_MYSQL_URL=mysql://USER@HOST:PORT/DATABASE"
        )
    })
}

/// Whether the pool's connection is inside a transaction, by the server's account.
async fn is_inside_a_transaction(pool: &MySqlPool) -> bool {
    let flag = query_scalar::<_, i64>("SELECT CAST(@@in_transaction AS SIGNED)").fetch_one(pool).await;
    flag.expect("MariaDB has this variable") == 1
}

#[tokio::test]
async fn binds_arrive_as_they_are() {
    let pool = pool().await;
    let mut tx = Begin::begin(&pool).await.expect("begins");
    tx.execute(
        "CREATE TEMPORARY TABLE bound (seq BIGINT AUTO_INCREMENT PRIMARY KEY, i BIGINT, t LONGTEXT, b LONGBLOB) CHARACTER SET utf8mb4",
    )
    .await
    .expect("creates");
    let (text, bytes) = ("{\"a\" : 1}😀\\'", [0_u8, 255, 92]);
    let sql = "INSERT INTO bound (i, t, b) VALUES (?, ?, ?), (?, ?, ?) RETURNING seq";
    let values = [Bind::Int(Some(i64::MIN)), Bind::Text(Some(text)), Bind::Bytes(Some(&bytes))];
    let nulls = [Bind::Int(None), Bind::Text(None), Bind::Bytes(None)];
    let rows = insert(sql, values.into_iter().chain(nulls).collect());
    assert_eq!(Connection::insert(&mut *tx, &rows).await.expect("inserts"), [1, 2]);
    let rows = query("SELECT i, t, b FROM bound ORDER BY seq").fetch_all(&mut *tx).await.expect("selects");
    assert_eq!((rows[0].get::<i64, _>(0), rows[0].get::<&str, _>(1)), (i64::MIN, text));
    assert_eq!(rows[0].get::<&[u8], _>(2), bytes);
    let nulls: (Option<i64>, Option<&str>, Option<&[u8]>) = (rows[1].get(0), rows[1].get(1), rows[1].get(2));
    assert_eq!(nulls, (None, None, None));
}

#[tokio::test]
async fn only_a_transaction_of_sqlx_is_one() {
    let pool = pool().await;
    let mut connection = pool.acquire().await.expect("connects");
    assert_eq!(Connection::in_transaction(&mut *connection), Some(false));
    let mut tx = connection.begin().await.expect("begins");
    assert_eq!((Connection::in_transaction(&mut tx), Connection::in_transaction(&mut *tx)), (Some(true), Some(true)));
    tx.commit().await.expect("commits");
    assert_eq!(Connection::in_transaction(&mut *connection), Some(false));
}

#[tokio::test]
async fn calls_dropped_at_any_await_leave_no_transaction() {
    let pool = pool().await;
    let mut dropped = (0, 0);
    // On a busy machine the answer is mostly there before anybody waits for it, so the first wait is tried again and again.
    for waits in (0..8).rev().chain(std::iter::repeat_n(0, 10_000)) {
        dropped.0 += usize::from(drop_after(waits, Begin::begin(&pool)).await.is_none());
        assert!(!is_inside_a_transaction(&pool).await, "begin dropped after {waits} waits");
        let tx = Begin::begin(&pool).await.expect("begins");
        dropped.1 += usize::from(drop_after(waits, Finish::commit(tx)).await.is_none());
        assert!(!is_inside_a_transaction(&pool).await, "commit dropped after {waits} waits");
        if waits == 0 && dropped.0 > 0 && dropped.1 > 0 {
            break;
        }
    }
    assert!(dropped.0 > 0 && dropped.1 > 0, "{dropped:?} were dropped");
}

/// It lost a deadlock, its error was ignored, and the connection goes on outside any transaction.
#[tokio::test]
async fn a_transaction_that_the_server_rolled_back_is_found_out() {
    let (pool, other) = (pool().await, pool().await);
    let table = format!("pillarbox_{}", Stamp::system().next_id()).to_lowercase();
    let text = |sql: &str| AssertSqlSafe(sql.replace("{t}", &table));
    other.execute(text("CREATE TABLE {t} (id BIGINT AUTO_INCREMENT PRIMARY KEY, n INT)")).await.expect("creates");
    other.execute(text("INSERT INTO {t} VALUES (1, 0), (2, 0), (3, 0), (4, 0)")).await.expect("fills");
    for write in [false, true] {
        let mut tx = Begin::begin(&pool).await.expect("begins");
        tx.execute(text("UPDATE {t} SET n = n + 1 WHERE id = 1")).await.expect("locks");
        let mut theirs = other.begin().await.expect("begins");
        // It has changed more, so it is not the victim.
        theirs.execute(text("UPDATE {t} SET n = n + 1 WHERE id > 1")).await.expect("locks");
        let (lost, won) =
            tokio::join!(async { tx.execute(text("UPDATE {t} SET n = n + 1 WHERE id = 2")).await }, async {
                theirs.execute(text("UPDATE {t} SET n = n + 1 WHERE id = 1")).await
            });
        won.expect("wins");
        lost.expect_err("is the victim");
        theirs.commit().await.expect("commits");
        if write {
            let sql = format!("INSERT INTO {table} (n) VALUES (9) RETURNING id");
            Connection::insert(&mut *tx, &insert(&sql, Vec::new())).await.expect_err("there is no transaction");
        }
        Finish::commit(tx).await.expect_err("there is nothing to commit");
    }
    let rows = query_scalar::<_, i64>(text("SELECT COUNT(*) FROM {t}")).fetch_one(&other).await.expect("counts");
    assert_eq!(rows, 4, "nothing was written outside");
    other.execute(text("DROP TABLE {t}")).await.expect("drops");
}

async fn kept() -> MySqlPool {
    let pool = pool().await;
    pool.execute("CREATE TEMPORARY TABLE kept (seq BIGINT, event_id VARCHAR(36)) ENGINE = InnoDB")
        .await
        .expect("creates");
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

alike!(kept => &kept);
