//! The adapter on MariaDB.
#![expect(clippy::expect_used, clippy::panic, reason = "in tests, and in what only they use, a panic is the failure")]

mod dropped;

use std::sync::Arc;

use dropped::dropped_after;
use pillarbox_core::event::{Envelope, EventId, Stamp};
use pillarbox_core::store::{RowId, Store as _};
use pillarbox_core::write::WriteError;
use pillarbox_core::write::{Begin, Bind, Connection, Finish, Insert, Probe, Statement};
use pillarbox_engine::run::Outbox;
use pillarbox_memory::MemoryStore;
use pillarbox_sqlx as _;
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

fn insert<'a>(sql: &str, binds: Vec<Bind<'a>>) -> Insert<'a> {
    Insert { rows: &[], statements: vec![Statement { sql: Arc::from(sql), binds, reusable: true }] }
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
    assert_eq!(Connection::in_transaction(&*connection), Some(false));
    let tx = connection.begin().await.expect("begins");
    assert_eq!((Connection::in_transaction(&tx), Connection::in_transaction(&*tx)), (Some(true), Some(true)));
    tx.commit().await.expect("commits");
    assert_eq!(Connection::in_transaction(&*connection), Some(false));
}

#[tokio::test]
async fn an_outbox_takes_every_form_of_a_transaction_and_refuses_another_database() {
    let pool = pool().await;
    let store = MemoryStore::new();
    store.migrate().await.expect("migrates");
    let outbox = Outbox::single_node(store)
        .handle_all(|_: pillarbox_core::handle::Delivery| async {})
        .start()
        .await
        .expect("starts");
    let event = || Envelope::json("order.placed", "{}").expect("valid");
    let mut tx = outbox.begin(&pool).await.expect("begins");
    let refused = [outbox.write(&mut tx, event()).await, outbox.write(&mut *tx, event()).await];
    for refused in refused {
        assert!(matches!(refused, Err(WriteError::WrongDatabase { .. })), "{refused:?}");
    }
    tx.execute("SELECT 1").await.expect("the transaction was not touched");
    tx.commit().await.expect("commits");
    outbox.shutdown().await;
}

#[tokio::test]
async fn what_is_dropped_at_any_await_leaves_no_transaction() {
    let pool = pool().await;
    for polls in 0..8 {
        drop(dropped_after(polls, Begin::begin(&pool)).await);
        assert!(!is_inside_a_transaction(&pool).await, "begin dropped after {polls} polls");
        let tx = Begin::begin(&pool).await.expect("begins");
        let _ = dropped_after(polls, Finish::commit(tx)).await;
        assert!(!is_inside_a_transaction(&pool).await, "commit dropped after {polls} polls");
    }
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

/// A probe for the rows 1 to 6 of the table `kept`.
fn probe() -> Probe {
    let rows: Vec<i64> = (1..=6).collect();
    Probe { rows, sql: Some("SELECT seq, event_id, NULL FROM kept WHERE seq IN (1, 2, 3, 4, 5, 6)".to_owned()) }
}

/// The rows that the probe finds.
fn keys<const N: usize>(seqs: [i64; N]) -> Vec<RowId> {
    seqs.into_iter()
        .map(|seq| RowId { seq, event_id: EventId::from_stored(&format!("e-{seq}")), handler: None })
        .collect()
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
async fn what_was_rolled_back_and_chained_was_not_committed() {
    let pool = kept().await;
    let mut tx = Begin::begin(&pool).await.expect("begins");
    tx.execute(keep(1)).await.expect("inserts");
    tx.execute("ROLLBACK AND CHAIN").await.expect("begins anew");
    tx.execute(keep(2)).await.expect("inserts");
    assert_eq!(tx.commit_verified(&probe()).await.expect("commits"), keys([2]));
}

/// A statement that keeps a row.
fn keep(seq: i64) -> AssertSqlSafe<String> {
    AssertSqlSafe(format!("INSERT INTO kept VALUES ({seq}, 'e-{seq}')"))
}

#[tokio::test]
async fn a_commit_tells_what_it_committed_of_savepoints_and_nested_transactions() {
    let pool = kept().await;
    let mut tx = Begin::begin(&pool).await.expect("begins");
    tx.execute(keep(1)).await.expect("inserts");
    tx.execute("SAVEPOINT undone").await.expect("sets it");
    tx.execute(keep(2)).await.expect("inserts");
    tx.execute("ROLLBACK TO SAVEPOINT undone").await.expect("rolls back");
    let mut nested = tx.begin().await.expect("begins");
    nested.execute(keep(3)).await.expect("inserts");
    nested.rollback().await.expect("rolls back");
    let mut nested = tx.begin().await.expect("begins");
    nested.execute(keep(4)).await.expect("inserts");
    let mut inner = nested.begin().await.expect("begins");
    inner.execute(keep(5)).await.expect("inserts");
    drop(inner);
    nested.commit().await.expect("commits");
    let mut found = tx.commit_verified(&probe()).await.expect("commits");
    found.sort_by_key(|row| row.seq);
    assert_eq!(found, keys([1, 4]));
}

#[tokio::test]
async fn a_guard_knows_its_connection_in_every_form() {
    let pool = kept().await;
    let mut tx = Begin::begin(&pool).await.expect("begins");
    let id = Connection::id(&tx);
    assert_eq!(Connection::id(&*tx), id);
    let nested = tx.begin().await.expect("begins");
    assert_eq!((Connection::id(&nested), Connection::id(&*nested)), (id, id));
}
