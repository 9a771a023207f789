//! The adapter on MariaDB.
#![expect(clippy::expect_used, clippy::panic, reason = "in tests, and in what only they use, a panic is the failure")]

use mysql_async::prelude::Queryable as _;
use mysql_async::{Opts, OptsBuilder, Pool, PoolConstraints, PoolOpts};
use pillarbox_core::event::{Envelope, Stamp};
use pillarbox_core::store::Store as _;
use pillarbox_core::write::WriteError;
use pillarbox_core::write::{Begin, Bind, Connection, Finish, Probe};
use pillarbox_engine::run::Outbox;
use pillarbox_memory::MemoryStore;
use pillarbox_mysql_async as _;
use pillarbox_testkit::adapters::{insert, keep, kept, probe};
use pillarbox_testkit::drop_after;

/// A pool of one connection, so that whatever a test leaves behind is what it finds next.
fn pool() -> Pool {
    let url =
        std::env::var("PILLARBOX_TEST_MYSQL_URL").unwrap_or_else(|_| "mysql://root@127.0.0.1:3306/test".to_owned());
    let one = PoolOpts::default().with_constraints(PoolConstraints::new(0, 1).expect("valid"));
    let options = Opts::from_url(&url).expect("PILLARBOX_TEST_MYSQL_URL is a URL");
    Pool::new(OptsBuilder::from_opts(options).pool_opts(one).prefer_socket(false))
}

/// Whether the pool's connection is inside a transaction, by the server's account.
async fn is_inside_a_transaction(pool: &Pool) -> bool {
    let mut connection = pool.get_conn().await.unwrap_or_else(|error| {
        panic!("these tests need MariaDB and cannot reach it ({error}); run them by ./scripts/test")
    });
    connection.query_first("SELECT @@in_transaction").await.expect("MariaDB has this variable") == Some(1)
}

type Bound = (Option<i64>, Option<String>, Option<Vec<u8>>);

#[tokio::test]
async fn binds_arrive_as_they_are() {
    let pool = pool();
    let mut tx = Begin::begin(&pool).await.expect("begins");
    let table = "CREATE TEMPORARY TABLE bound (seq BIGINT AUTO_INCREMENT PRIMARY KEY, i BIGINT, t LONGTEXT, b LONGBLOB) CHARACTER SET utf8mb4";
    tx.query_drop(table).await.expect("creates");
    let (text, bytes) = ("{\"a\" : 1}😀\\'", [0_u8, 255, 92]);
    let sql = "INSERT INTO bound (i, t, b) VALUES (?, ?, ?), (?, ?, ?) RETURNING seq";
    let values = [Bind::Int(Some(i64::MIN)), Bind::Text(Some(text)), Bind::Bytes(Some(&bytes))];
    let nulls = [Bind::Int(None), Bind::Text(None), Bind::Bytes(None)];
    let rows = insert(sql, values.into_iter().chain(nulls).collect());
    assert_eq!(tx.insert(&rows).await.expect("inserts"), [1, 2]);
    let rows: Vec<Bound> = tx.query("SELECT i, t, b FROM bound ORDER BY seq").await.expect("selects");
    assert_eq!(rows, [(Some(i64::MIN), Some(text.to_owned()), Some(bytes.to_vec())), (None, None, None)]);
}

#[tokio::test]
async fn an_outbox_takes_transactions_and_refuses_another_database() {
    let pool = pool();
    let store = MemoryStore::new();
    store.migrate().await.expect("migrates");
    let outbox = Outbox::single_node(store)
        .handle_all(|_: pillarbox_core::handle::Delivery| async {})
        .start()
        .await
        .expect("starts");
    let event = || Envelope::json("order.placed", "{}").expect("valid");
    let mut tx = outbox.begin(&pool).await.expect("begins");
    let refused = outbox.write(&mut tx, event()).await;
    assert!(matches!(refused, Err(WriteError::WrongDatabase { .. })), "{refused:?}");
    tx.query_drop("SELECT 1").await.expect("the transaction was not touched");
    tx.commit().await.expect("commits");
    let mut connection = pool.get_conn().await.expect("a connection");
    let tx = outbox.begin(&mut connection).await.expect("begins");
    tx.rollback().await.expect("rolls back");
    outbox.shutdown().await;
}

#[tokio::test]
async fn calls_dropped_at_any_await_leave_no_transaction() {
    let pool = pool();
    let mut dropped = (0, 0, 0);
    // On a busy machine an answer may be there before anybody waits for it, so the first wait is tried again and again.
    for waits in (0..12).rev().chain(std::iter::repeat_n(0, 10_000)) {
        dropped.0 += usize::from(drop_after(waits, Begin::begin(&pool)).await.is_none());
        assert!(!is_inside_a_transaction(&pool).await, "begin dropped after {waits} waits");
        let mut tx = Begin::begin(&pool).await.expect("begins");
        let select = insert("SELECT 1", Vec::new());
        dropped.1 += usize::from(drop_after(waits, tx.insert(&select)).await.is_none());
        dropped.2 += usize::from(drop_after(waits, Finish::commit(tx)).await.is_none());
        assert!(!is_inside_a_transaction(&pool).await, "commit dropped after {waits} waits");
        if waits == 0 && dropped.0 > 0 && dropped.1 > 0 && dropped.2 > 0 {
            break;
        }
    }
    assert!(dropped.0 > 0 && dropped.1 > 0 && dropped.2 > 0, "{dropped:?} were dropped");
}

/// It lost a deadlock, its error was ignored, and the connection goes on outside any transaction.
#[tokio::test]
async fn a_transaction_that_the_server_rolled_back_is_found_out() {
    let (pool, other) = (pool(), pool());
    let mut theirs = other.get_conn().await.expect("a connection");
    let table = format!("pillarbox_{}", Stamp::system().next_id()).to_lowercase();
    let text = |sql: &str| sql.replace("{t}", &table);
    theirs.query_drop(text("CREATE TABLE {t} (id BIGINT AUTO_INCREMENT PRIMARY KEY, n INT)")).await.expect("creates");
    theirs.query_drop(text("INSERT INTO {t} VALUES (1, 0), (2, 0), (3, 0), (4, 0)")).await.expect("fills");
    for (write, noticed) in [(false, false), (true, false), (true, true)] {
        let mut tx = Begin::begin(&pool).await.expect("begins");
        tx.query_drop(text("UPDATE {t} SET n = n + 1 WHERE id = 1")).await.expect("locks");
        // It has changed more, so it is not the victim.
        theirs.query_drop(text("START TRANSACTION; UPDATE {t} SET n = n + 1 WHERE id > 1")).await.expect("locks");
        let (lost, won) = tokio::join!(
            tx.query_drop(text("UPDATE {t} SET n = n + 1 WHERE id = 2")),
            theirs.query_drop(text("UPDATE {t} SET n = n + 1 WHERE id = 1"))
        );
        won.expect("wins");
        lost.expect_err("is the victim");
        theirs.query_drop("COMMIT").await.expect("commits");
        assert_eq!(tx.in_transaction(), None, "a failed statement does not say");
        if noticed {
            tx.query_drop("DO 0").await.expect("is done");
            assert_eq!(tx.in_transaction(), Some(false));
        }
        if write {
            let sql = text("INSERT INTO {t} (n) VALUES (9) RETURNING id");
            tx.insert(&insert(&sql, Vec::new())).await.expect_err("there is no transaction");
        }
        let error = Finish::commit(tx).await.expect_err("there is nothing to commit");
        assert!(error.to_string().contains("begin a new one"), "{error}");
    }
    let rows: Option<i64> = theirs.query_first(text("SELECT COUNT(*) FROM {t}")).await.expect("counts");
    assert_eq!(rows, Some(4), "nothing was written outside");
    theirs.query_drop(text("DROP TABLE {t}")).await.expect("drops");
}

#[tokio::test]
async fn a_commit_tells_what_it_committed_of_savepoints() {
    let pool = pool();
    let create = "CREATE TEMPORARY TABLE kept (seq BIGINT, event_id VARCHAR(36)) ENGINE = InnoDB";
    let mut connection = pool.get_conn().await.expect("connects");
    connection.query_drop(create).await.expect("creates");
    let mut tx = Begin::begin(&mut connection).await.expect("begins");
    let undone = ["SAVEPOINT undone".to_owned(), keep(2), "ROLLBACK TO SAVEPOINT undone".to_owned()];
    let released = ["SAVEPOINT released".to_owned(), keep(3), "RELEASE SAVEPOINT released".to_owned()];
    for statement in [keep(1)].into_iter().chain(undone).chain(released) {
        tx.query_drop(statement).await.expect("is done");
    }
    tx.query_drop("SELECT * FROM no_such_table").await.expect_err("it is missing");
    let mut found = tx.commit_verified(&probe()).await.expect("commits: a failed statement fails alone");
    found.sort_by_key(|row| row.seq);
    assert_eq!(found, kept([1, 3]));

    let mut tx = Begin::begin(&mut connection).await.expect("begins");
    for statement in [keep(4), "ROLLBACK AND CHAIN".to_owned(), keep(5)] {
        tx.query_drop(statement).await.expect("is done");
    }
    let probe = Probe { sql: Some("SELECT seq, event_id, NULL FROM kept WHERE seq IN (4, 5)".to_owned()), ..probe() };
    assert_eq!(tx.commit_verified(&probe).await.expect("commits"), kept([5]));
    for end in ["ROLLBACK", "COMMIT"] {
        let mut tx = Begin::begin(&mut connection).await.expect("begins");
        tx.query_drop(end).await.expect("ends it");
        tx.commit_verified(&probe).await.expect_err("there is nothing to commit");
    }
}
