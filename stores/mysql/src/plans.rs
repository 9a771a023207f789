//! The plans of the statements, pinned: whatever lies in the table, they enter it by an index that leads straight to the
//! rows they want, and read no others.

use futures_util::FutureExt as _;
use pillarbox_core::event::Stamp;
use pillarbox_core::ownership::{NodeId, begun_by};
use pillarbox_core::store::{Fetch, Store as _};

use crate::answer::{int, text};
use crate::fetch::queries;
use crate::literal::{Literal, fill};
use crate::session::Session;
use crate::{MysqlOptions, MysqlStore};

const DONE: i64 = 50_000;
const READY: i64 = 5_000;
const TIMED: i64 = 2_000;
const DEAD: i64 = 1_000;
/// How many rows are asked for at once.
const LIMIT: usize = 1000;

/// Runs a test on tables of a database of its own, with many rows done and some pending, half of the timed ones due.
async fn with_rows(test: impl AsyncFnOnce(&MysqlStore, &mut Session)) {
    let url =
        std::env::var("PILLARBOX_TEST_MYSQL_URL").unwrap_or_else(|_| "mysql://root@127.0.0.1:3306/test".to_owned());
    let database = format!("pillarbox_{}", Stamp::system().next_id()).to_lowercase();
    let options = MysqlOptions::parse(&url).expect("a valid URL").table(format!("{database}.outbox_event"));
    let store = options.connect().await;
    let store = store.unwrap_or_else(|error| panic!("{error}; this test needs MariaDB: run it by ./scripts/test"));
    store.migrate().await.expect("migrates");
    let mut session = store.inner().sessions.session().await.expect("a session");
    let rows = |first: i64, count: i64, status: i16, available_at: &str| {
        format!(
            "INSERT INTO {database}.outbox_event (seq, event_id, event_type, payload, status, available_at)
             WITH RECURSIVE n (i) AS (SELECT {first} UNION ALL SELECT i + 1 FROM n WHERE i + 1 < {first} + {count})
             SELECT i, i, 'order.placed', '{{}}', {status}, {available_at} FROM n"
        )
    };
    let depth =
        "SET SESSION /*!80003 cte_max_recursion_depth = 1000000 */ /*M!100600 max_recursive_iterations = 1000000 */";
    let filled = [
        depth.to_owned(),
        rows(1, DONE, 1, "NULL"),
        rows(DONE + 1, READY, 0, "NULL"),
        rows(
            DONE + READY + 1,
            TIMED,
            2,
            &format!("UTC_TIMESTAMP(6) + INTERVAL i - {} SECOND", DONE + READY + TIMED / 2),
        ),
        rows(DONE + READY + TIMED + 1, DEAD, 3, "NULL"),
        format!("ANALYZE TABLE {database}.outbox_event"),
    ];
    for statement in filled {
        session.run(statement).await.expect("fills the table");
    }
    let outcome = std::panic::AssertUnwindSafe(test(&store, &mut session)).catch_unwind().await;
    session.run(format!("DROP DATABASE {database}")).await.expect("drops the database");
    session.finish();
    store.close().await;
    if let Err(panic) = outcome {
        std::panic::resume_unwind(panic);
    }
}

/// Asserts that a statement enters the event table by the index `key` only, sorts nothing, and reads at most `most` rows.
/// What it changes is rolled back.
async fn check(session: &mut Session, statement: &str, key: &str, most: u64) {
    let plan =
        session.run(format!("EXPLAIN {statement}")).await.unwrap_or_else(|error| panic!("{error:?}: {statement}"));
    let mut entered = 0;
    for row in plan.rows(0) {
        let named = |name: &str| {
            let index = row.columns_ref().iter().position(|column| column.name_str() == name);
            index.and_then(|index| text(row, index).expect("text")).unwrap_or_default().to_owned()
        };
        if matches!(named("table").as_str(), "outbox_event" | "e") {
            entered += 1;
            assert_eq!(named("key"), key, "{statement}");
            assert!(["ref", "range", "const", "index"].contains(&&*named("type")), "{}: {statement}", named("type"));
        }
        assert!(!named("Extra").contains("filesort"), "it sorts: {statement}");
    }
    assert!(entered > 0, "{statement}");

    session.run("START TRANSACTION; FLUSH STATUS").await.expect("forgets what was read before");
    session.run(statement).await.unwrap_or_else(|error| panic!("{error:?}: {statement}"));
    let status = session.run("SHOW SESSION STATUS LIKE 'Handler_read%'").await.expect("counts");
    let read: u64 = status.rows(0).iter().map(|row| u64::try_from(int(row, 1).expect("a number")).unwrap_or(0)).sum();
    session.run("ROLLBACK").await.expect("rolls back");
    assert!(read <= most, "it read {read} rows, not at most {most}: {statement}");
}

fn seqs(first: i64, count: i64) -> Literal {
    Literal::ints(&(first..first + count).collect::<Vec<_>>())
}

#[tokio::test]
async fn fetches_and_claims_read_the_rows_they_return() {
    with_rows(async |store, session| {
        let sql = &store.inner().sql;
        let node = NodeId::from_stored("a node");
        let (id, begun) = (Literal::text(node.as_str()), Literal::text(&begun_by(&node)));
        let free = fill(&sql.free, &[("id", &id), ("begun", &begun)]);
        let limit = u64::try_from(LIMIT).expect("fits");
        let in_memory: Vec<i64> = (DONE + 1..=DONE + 500).collect();
        for (above, exclude) in [(0, vec![]), (0, in_memory.clone()), (DONE + 2000, in_memory)] {
            let left_out = u64::try_from(exclude.len()).expect("fits");
            let fetch = Fetch { above, exclude, limit: LIMIT };
            for (free, locking) in [("", ""), (&*free, "\nFOR UPDATE SKIP LOCKED")] {
                let [next_due, due, ready] = queries(sql, &fetch, free, locking);
                check(session, &next_due, "pillarbox_queue", 3).await;
                check(session, &due, "pillarbox_queue", limit + 2).await;
                check(session, &ready, "pillarbox_queue", limit + left_out + 2).await;
            }
        }
    })
    .await;
}

#[tokio::test]
async fn changes_find_their_rows_by_the_primary_key() {
    with_rows(async |store, session| {
        let sql = &store.inner().sql;
        let node = NodeId::from_stored("a node");
        let (id, begun) = (Literal::text(node.as_str()), Literal::text(&begun_by(&node)));
        let held = fill(&sql.held, &[("id", &id), ("begun", &begun)]);
        let (many, one, nothing) = (seqs(DONE + 1, 1000), Literal::int(DONE + 1), Literal::nothing());
        let held = Literal::clause(held);
        let (delay, attempts, error) = (Literal::int(5), Literal::int(1), Literal::text("it failed"));
        for (statement, values) in [
            (&sql.settle_lock, vec![("seqs", &many), ("held", &nothing)]),
            (&sql.settle_lock, vec![("seqs", &many), ("held", &held)]),
            (&sql.settle_done, vec![("seqs", &many)]),
            (&sql.settle_retry, vec![("seq", &one), ("delay", &delay), ("attempts", &attempts), ("error", &error)]),
            (&sql.settle_hold, vec![("seq", &one), ("attempts", &attempts), ("error", &error)]),
            (&sql.settle_dead, vec![("seq", &one), ("attempts", &attempts), ("error", &error)]),
            (&sql.begin_attempt, vec![("seq", &one), ("attempts", &attempts), ("error", &error), ("begun", &begun)]),
            (&sql.take, vec![("seqs", &many), ("id", &id), ("begun", &begun)]),
            (&sql.release, vec![("seqs", &many), ("id", &id), ("begun", &begun)]),
            (&sql.free_strays, vec![("seqs", &many)]),
            (&sql.dead_lock, vec![("seqs", &many)]),
            (&sql.replay, vec![("seqs", &many)]),
            (&sql.delete, vec![("seqs", &many)]),
            (&sql.purge, vec![("seqs", &many), ("status", &one)]),
        ] {
            check(session, &fill(statement, &values), "PRIMARY", 2001).await;
        }
    })
    .await;
}

#[tokio::test]
async fn upkeep_reads_pending_and_dead_rows_only() {
    with_rows(async |store, session| {
        let sql = &store.inner().sql;
        let (limit, nothing) = (Literal::count(LIMIT), Literal::nothing());
        let pending = u64::try_from(READY + TIMED).expect("fits");
        let dead = u64::try_from(DEAD).expect("fits");
        check(session, &fill(&sql.strays, &[("limit", &limit)]), "pillarbox_queue", pending + 10).await;
        check(session, &sql.backlog, "pillarbox_queue", pending + dead + 20).await;
        check(session, &fill(&sql.count_dead, &[("filter", &nothing)]), "pillarbox_queue", dead + 2).await;
        let page = [("above", &Literal::int(DONE + READY + TIMED + 500)), ("filter", &nothing), ("limit", &limit)];
        check(session, &fill(&sql.dead, &page), "pillarbox_queue", 502).await;
        let window = [("above", &Literal::int(100)), ("age", &Literal::int(1)), ("limit", &limit)];
        check(session, &fill(&sql.purge_window, &window), "PRIMARY", 1001).await;
        check(session, &fill(&sql.record, &[("event_id", &Literal::text("77"))]), "pillarbox_event_id", 1).await;
    })
    .await;
}
