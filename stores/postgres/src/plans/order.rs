use std::collections::BTreeSet;
use std::time::Duration;

use pillarbox_core::ownership::{Epochs, Fence, NodeId, NodeMode};
use pillarbox_core::store::{FetchScope, Heads, OrderKey, Store as _};
use tokio_postgres::types::Type;

use super::{Plan, Setting, execute, number, with_table};
use crate::PostgresStore;
use crate::scope::Bounds;
use crate::session::{BY_INDEX, Param};

/// Rows in the table, of as many keys. Up to half of them become heads.
const ROWS: i64 = 100_000;
/// The keys of these stand before others: one row in ten waits behind one of the first half, if that is a head.
const WAITING: i64 = 10;

/// The statistics of the table.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Statistics {
    Fresh,
    /// Statistics of a moment when nearly all of its rows had been deleted, and their pages were left.
    Stale,
}

async fn with_keys(setting: Setting, statistics: Statistics) {
    with_table(setting, async |store| {
        let table = &store.info().table;
        execute(store, &format!("ALTER TABLE {table} SET (autovacuum_enabled = off)")).await;
        let rows = format!(
            "INSERT INTO {table} (event_id, event_type, payload, aggregate_id, partition, available_at, created_at)
             SELECT i, 'order.placed', '{{\"n\": 1}}',
                 'order-' || CASE WHEN i > {ROWS} / 2 AND i % {WAITING} = 0 THEN i - {ROWS} / 2 ELSE i END, i % 256,
                 CASE WHEN i % 100 = 7 THEN now() + (i - {ROWS} / 2) * interval '1 hour' END, '2000-01-01'
             FROM generate_series(1, {ROWS}) i"
        );
        execute(store, &rows).await;
        let node = NodeId::from_stored("a node");
        store.join(&node, NodeMode::Partitioned, Duration::from_secs(3600)).await.expect("joins");
        store.rebalance(&node, &Epochs::none()).await.expect("rebalances");
        for heads in [0, 100, ROWS / 2] {
            let fail = format!("UPDATE {table} SET status = 2 + (seq % 3 = 0)::int WHERE seq <= {heads}");
            execute(store, &fail).await;
            let known = match statistics {
                Statistics::Fresh => format!("ANALYZE {table}"),
                Statistics::Stale => format!(
                    "UPDATE pg_class SET relpages = pg_relation_size(oid) / 8192, reltuples = 1 WHERE oid IN
                         (SELECT '{table}'::regclass UNION SELECT indexrelid FROM pg_index WHERE indrelid = '{table}'::regclass)"
                ),
            };
            execute(store, &known).await;
            fetches(store, heads).await;
            overview(store).await;
        }
        changes(store, &node).await;
    })
    .await;
}

/// Each form of a fetch of a thousand, by a node that owns half of the partitions.
async fn fetches(store: &PostgresStore, heads: i64) {
    let key = |key: &str| OrderKey { handler: None, key: key.into() };
    let (one, some) = (vec![key("order-150001")], vec![key("order-150002"), key("order-150003")]);
    let many: Vec<OrderKey> = (75_000..76_000).map(|number| key(&format!("order-{number}"))).collect();
    let (above, exclude) = (heads, (75_000..75_500).collect::<Vec<i64>>());
    let (limit, share) = (1000_i64, 334_i64);
    for heads in [Heads::None, Heads::Retry, Heads::RetryAndDead] {
        // Half of the rows are in other partitions, and one in ten waits; some keys alone are looked for among all.
        for (without, only, most) in [
            (vec![], vec![], 2600),
            (some.clone(), vec![], 2600),
            (many.clone(), vec![], 2600),
            (vec![], one.clone(), ROWS),
            (vec![], many.clone(), ROWS),
        ] {
            // With keys to read come those to leave out, if there are none.
            let lists = 1 + usize::from(!without.is_empty()) + 2 * usize::from(!only.is_empty());
            let scope = FetchScope { partitions: 0..=127, heads, without, only, node: None };
            let bounds = Bounds::of(&scope);
            let mut params: Vec<Param<'_>> = vec![
                (&above, Type::INT8),
                (&exclude, Type::INT8_ARRAY),
                (&limit, Type::INT8),
                (&share, Type::INT8),
                (&limit, Type::INT8),
                (&limit, Type::INT8),
                (&limit, Type::INT8),
            ];
            bounds.bind(&mut params);
            let plan = Plan::of(store, BY_INDEX, store.inner().sql.fetch.of(Some(&scope)), &params).await;
            plan.enters_by(&["pkey", "aside_idx", "due_idx"], most).sorts(0);
            assert!(!plan.0.contains("JIT:"), "{}", plan.0);
            // The excluded rows and the wanted keys are read once and looked up, in each of the three branches; nothing is joined.
            // A plan may mention one that compares two columns twice.
            let looked_up: BTreeSet<i64> =
                plan.0.split("hashed ").skip(1).map(|mention| number(mention, "SubPlan ")).collect();
            assert_eq!((looked_up.len(), plan.0.contains("Join")), (3 * lists, false), "{}", plan.0);
            if scope.heads != Heads::None {
                plan.enters_by(&["head_idx"], most);
            }
        }
    }
}

/// The queries of operators: each pending row once, and the indexes of pending rows, heads and DEAD rows.
async fn overview(store: &PostgresStore) {
    let sql = &store.inner().sql;
    let (above, limit) = (i64::MIN, 100_i64);
    Plan::of(store, BY_INDEX, &sql.partitions, &[]).await.enters_by(&["pkey", "aside_idx", "due_idx"], ROWS);
    let page: [Param<'_>; 2] = [(&above, Type::INT8), (&limit, Type::INT8)];
    let plan = Plan::of(store, BY_INDEX, &sql.blocked, &page).await;
    plan.enters_by(&["pkey", "aside_idx", "due_idx", "head_idx"], ROWS);
    let plan = Plan::of(store, BY_INDEX, &sql.head_of, &[(&50_000_i64, Type::INT8)]).await;
    plan.enters_by(&["pkey", "head_idx"], 2);
    let plan = Plan::of(store, "", &sql.writers, &[]).await;
    plan.enters_by(&["pkey"], 1);
    // The last number is read before the locks.
    let held = plan.0.split_once("CTE held").expect("the locks are read once").1;
    let (filter, locks) = (held.find("One-Time Filter"), held.find("Function Scan on pg_lock_status"));
    assert!(filter.is_some() && filter < locks, "{}", plan.0);
}

/// Statements that name their rows, by a thousand.
async fn changes(store: &PostgresStore, node: &NodeId) {
    let sql = &store.inner().sql;
    let (node, durable) = (node.as_str(), false);
    let seqs: Vec<i64> = (75_001..76_001).collect();
    let partitions = vec![7_i16; seqs.len()];
    let (events, handlers) = (vec!["event"; seqs.len()], vec![None::<&str>; seqs.len()]);
    let rows: [Param<'_>; 3] = [(&seqs, Type::INT8_ARRAY), (&events, Type::TEXT_ARRAY), (&handlers, Type::TEXT_ARRAY)];
    let stamp = [&rows[..], &[(&partitions, Type::INT2_ARRAY)]].concat();
    Plan::of(store, "", &sql.assign_partitions, &stamp).await.enters_by(&["pkey"], 1000);
    Plan::of(store, "", &sql.promote_due, &rows).await.enters_by(&["pkey"], 1000);
    Plan::of(store, "", &sql.identify, &rows[..1]).await.enters_by(&["pkey"], 1000);
    Plan::of(store, "", &sql.record_json, &rows[..1]).await.enters_by(&["pkey"], 1000);
    let newest = Plan::of(store, "", &sql.newest, &[(&100_i64, Type::INT8)]).await;
    newest.enters_by(&["pkey"], 100).sorts(0);
    let (ids, length, handler) = (b"event".repeat(seqs.len()), 5, None::<&str>);
    let settle: [Param<'_>; 6] = [
        (&node, Type::TEXT),
        (&durable, Type::BOOL),
        (&seqs, Type::INT8_ARRAY),
        (&ids, Type::BYTEA),
        (&length, Type::INT4),
        (&handler, Type::TEXT),
    ];
    for statement in [sql.settle_done.both(), sql.settle_removed.both()].concat() {
        let plan = Plan::of(store, "", statement.of(Fence::Partition), &settle).await;
        plan.enters_by(&["pkey"], 1000);
        // The partitions are read once and looked up, not joined.
        assert!(plan.0.contains("hashed SubPlan") && !plan.0.contains("Join"), "{}", plan.0);
    }
}

#[tokio::test]
async fn order_enters_by_index_with_stale_statistics() {
    with_keys(Setting::WithStatistics, Statistics::Stale).await;
}

#[tokio::test]
async fn order_enters_by_index_with_statistics() {
    with_keys(Setting::WithStatistics, Statistics::Fresh).await;
}

#[tokio::test]
async fn order_enters_by_index_behind_a_pooler() {
    with_keys(Setting::BehindAPooler, Statistics::Fresh).await;
}

#[tokio::test]
async fn order_enters_by_index_behind_a_pooler_with_stale_statistics() {
    with_keys(Setting::BehindAPooler, Statistics::Stale).await;
}
