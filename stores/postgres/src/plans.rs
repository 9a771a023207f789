//! The plans of the two statements on the hot path, pinned: whatever lies in the table, they enter it by an index that
//! leads straight to the rows they want.

use std::time::Duration;

use pillarbox_core::event::Stamp;
use pillarbox_core::ownership::{Mode, NodeId};
use pillarbox_core::store::Store as _;
use tokio_postgres::types::Type;

use crate::session::Param;
use crate::{PostgresOptions, PostgresStore};

const PENDING: i64 = 10_000;
const DONE: i64 = 100_000;

/// A store on tables with many rows done and some pending, a few of them waiting for a time.
async fn filled(schema: &str, pooler: bool) -> PostgresStore {
    let url = std::env::var("PILLARBOX_TEST_POSTGRES_URL")
        .unwrap_or_else(|_| "postgres://postgres@127.0.0.1:5432/postgres".to_owned());
    let options = PostgresOptions::parse(&url).expect("a valid URL").table(format!("{schema}.outbox_event"));
    let store = options.pooler(pooler).connect().await;
    let store = store.unwrap_or_else(|error| panic!("{error}; this test needs PostgreSQL: run it by ./scripts/test"));
    store.migrate().await.expect("migrates");
    let rows = format!(
        "INSERT INTO {schema}.outbox_event (event_id, event_type, payload, status, available_at)
         SELECT i, 'order.placed', '{{\"n\": 1}}', CASE WHEN i <= {DONE} THEN 1 ELSE 0 END,
             CASE WHEN i % 10 = 0 THEN now() + (i - {DONE} - 5000) * interval '1 second' END
         FROM generate_series(1, {DONE} + {PENDING}) i"
    );
    execute(&store, &rows).await;
    store
}

async fn execute(store: &PostgresStore, sql: &str) {
    let mut session = store.inner().sessions.session().await.expect("a session");
    let transaction = session.transaction().await.expect("begins");
    transaction.batch_execute(sql).await.expect("executes");
    transaction.commit().await.expect("commits");
    session.finish();
}

/// How the server runs a statement in a session of the engine: its plan, with what it really read.
async fn plan(store: &PostgresStore, sql: &str, params: &[Param<'_>]) -> String {
    let session = store.inner().sessions.session().await.expect("a session");
    let explain = format!("EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) {sql}");
    let rows = session.query(&explain, params).await.expect("explains");
    session.finish();
    rows.iter().map(|row| row.get::<_, String>(0)).collect::<Vec<_>>().join("\n")
}

/// The nodes of the plan that read the event table, each with its number of rows.
fn scans(plan: &str) -> Vec<(&str, u64)> {
    let scans = plan.lines().filter(|line| line.contains("Scan") && line.contains(" on outbox_event"));
    scans.map(|line| (line.trim(), rows(line))).collect()
}

fn rows(line: &str) -> u64 {
    let number = line.split("actual rows=").nth(1).and_then(|rest| rest.split([' ', ')', '.']).next());
    // A branch that had nothing to do says `never executed`.
    number.map_or(0, |number| number.parse().expect("a number of rows"))
}

async fn check(store: &PostgresStore, sorts_allowed: u64) {
    let limits = (1000_i64, 334_i64);
    let exclude: Vec<i64> = (DONE + 1..DONE + 501).collect();
    for above in [i64::MIN, DONE + 2000] {
        let params: [Param<'_>; 4] =
            [(&above, Type::INT8), (&exclude, Type::INT8_ARRAY), (&limits.0, Type::INT8), (&limits.1, Type::INT8)];
        let plan = plan(store, &store.inner().sql.fetch, &params).await;
        assert!(!plan.contains("Seq Scan") && !plan.contains("Bitmap"), "{plan}");
        assert!(plan.contains("outbox_event_ready_idx") && plan.contains("outbox_event_due_idx"), "{plan}");
        for (scan, rows) in scans(&plan) {
            assert!(rows <= 1001, "it reads no more than it returns: {scan}\n{plan}");
        }
        for sort in plan.lines().filter(|line| line.contains("Sort  (")) {
            assert!(rows(sort) <= sorts_allowed, "{sort}\n{plan}");
        }
    }
    let node = NodeId::from_stored("a node");
    store.join(&node, Mode::SingleNode, Duration::from_secs(3600)).await.expect("joins");
    store.acquire(&node).await.expect("acquires");
    let (node, durable) = (node.as_str(), false);
    let done: Vec<i64> = (DONE + 1..DONE + 1001).collect();
    let (seqs, expected, states, attempts) =
        (vec![DONE + 5001, DONE + 5002], vec![0_i32; 2], vec![2_i16; 2], vec![1_i32; 2]);
    let (delays, errors) = (vec![1_i64; 2], vec![Some("late"); 2]);
    let params: [Param<'_>; 9] = [
        (&node, Type::TEXT),
        (&durable, Type::BOOL),
        (&done, Type::INT8_ARRAY),
        (&seqs, Type::INT8_ARRAY),
        (&expected, Type::INT4_ARRAY),
        (&states, Type::INT2_ARRAY),
        (&attempts, Type::INT4_ARRAY),
        (&delays, Type::INT8_ARRAY),
        (&errors, Type::TEXT_ARRAY),
    ];
    let sql = &store.inner().sql;
    for (sql, params) in [(&sql.settle_done, &params[..3]), (&sql.settle_mixed, &params[..])] {
        let plan = plan(store, sql, params).await;
        assert!(
            !plan.contains("Seq Scan on outbox_event") && !plan.contains("Bitmap Heap Scan on outbox_event"),
            "{plan}"
        );
        assert!(plan.contains("outbox_event_pkey"), "{plan}");
        for (scan, rows) in scans(&plan) {
            assert!(rows <= 1000, "it reads no more than it changes: {scan}\n{plan}");
        }
    }
}

/// The setting is made inside the fence, of which the UPDATE only asks whether it has a row: it must not be left out.
#[tokio::test]
async fn marks_relax_their_commit_unless_they_are_to_be_durable() {
    with_schema(false, async |store| {
        let node = NodeId::from_stored("a node");
        store.join(&node, Mode::SingleNode, Duration::from_secs(3600)).await.expect("joins");
        store.acquire(&node).await.expect("acquires");
        let (node, seqs) = (node.as_str(), vec![DONE + 1]);
        let (sessions, sql) = (&store.inner().sessions, &store.inner().sql);
        for (durable, expected) in [(false, "off"), (true, "on")] {
            let mut session = sessions.session().await.expect("a session");
            let transaction = session.transaction().await.expect("begins");
            transaction.batch_execute("SET LOCAL synchronous_commit = on").await.expect("sets");
            let params: [Param<'_>; 3] = [(&node, Type::TEXT), (&durable, Type::BOOL), (&seqs, Type::INT8_ARRAY)];
            transaction.query_typed(&sql.settle_done, &params).await.expect("settles");
            let setting = transaction.query_typed_one("SHOW synchronous_commit", &[]).await.expect("shows");
            assert_eq!(setting.get::<_, &str>(0), expected);
        }
    })
    .await;
}

async fn with_schema(pooler: bool, test: impl AsyncFnOnce(&PostgresStore)) {
    let schema = format!("pillarbox_{}", Stamp::system().next_id()).to_lowercase();
    let store = filled(&schema, pooler).await;
    let outcome = futures_util::FutureExt::catch_unwind(std::panic::AssertUnwindSafe(test(&store))).await;
    execute(&store, &format!("DROP SCHEMA {schema} CASCADE")).await;
    if let Err(panic) = outcome {
        std::panic::resume_unwind(panic);
    }
}

/// The sessions' settings keep the plans right even where the statistics know nothing of the table yet.
#[tokio::test]
async fn the_hot_path_enters_by_index_without_statistics() {
    with_schema(false, async |store| check(store, 0).await).await;
}

#[tokio::test]
async fn the_hot_path_enters_by_index_with_statistics() {
    with_schema(false, async |store| {
        analyze(store).await;
        check(store, 0).await;
    })
    .await;
}

/// A pooler's sessions have no settings: there the statements have to be right by themselves.
#[tokio::test]
async fn the_hot_path_enters_by_index_behind_a_pooler() {
    with_schema(true, async |store| {
        analyze(store).await;
        check(store, 1000).await;
    })
    .await;
}

async fn analyze(store: &PostgresStore) {
    execute(store, &format!("ANALYZE {}", store.info().table)).await;
}
