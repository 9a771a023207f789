use std::time::Duration;

use pillarbox_core::ownership::{Epochs, Fence, Holding, NodeId, NodeMode, Partitions, Rebalanced};
use pillarbox_core::row::{Change, Expected, Verdict};
use pillarbox_core::store::{Fetch, FetchScope, FetchedRow, Heads, OrderKey, Store as _};
use pillarbox_sqlite::{SqliteOptions, SqliteStore};
use pillarbox_testkit::rows_at;
use sqlx::{AssertSqlSafe, raw_sql};

use crate::scratch::{Scratch, scope};

async fn member(store: &SqliteStore, name: &str) -> NodeId {
    let node = NodeId::from_stored(name);
    store.join(&node, NodeMode::Partitioned, Duration::from_secs(60)).await.expect("joins");
    node
}

async fn rebalance(store: &SqliteStore, node: &NodeId, give: &Epochs) -> Holding {
    match store.rebalance(node, give).await.expect("rebalances") {
        Rebalanced::Member(holding) => holding,
        Rebalanced::Lost => panic!("{node} is registered"),
    }
}

/// Inserts rows of `(event_id, partition, ordering_key, handler)`.
async fn insert(store: &SqliteStore, values: &str) {
    let sql = format!(
        "INSERT INTO outbox_event (event_id, partition, ordering_key, handler, event_type, payload)
         SELECT *, 't', '1' FROM (VALUES {values})"
    );
    raw_sql(AssertSqlSafe(sql)).execute(store.writer()).await.expect("inserts");
}

async fn fetched(store: &SqliteStore, scope: Option<FetchScope>) -> Vec<FetchedRow> {
    let fetch = Fetch { scope, ..Fetch::new(100) };
    store.fetch(&fetch).await.expect("fetches").rows
}

#[tokio::test]
async fn rebalancing_where_nothing_changes_hands_takes_no_write() {
    let scratch = Scratch::new();
    let store =
        SqliteOptions::new(scratch.file()).busy_timeout(Duration::from_millis(300)).open().await.expect("opens");
    store.migrate().await.expect("migrates");
    let (first, second) = (member(&store, "a-1").await, member(&store, "b-1").await);
    let half = rebalance(&store, &first, &Epochs::none()).await;
    assert_eq!(half.owned, Partitions::from(0..=127));
    rebalance(&store, &second, &Epochs::none()).await;
    // Whoever waited for the write lock would fail.
    let foreign = scratch.foreign_pool().await;
    let held = foreign.begin_with("BEGIN IMMEDIATE").await.expect("begins");
    let again = rebalance(&store, &first, &Epochs::none()).await;
    assert_eq!((again.owned, again.gained, again.target), (half.owned, Partitions::NONE, half.target));
    // It gives what is not its own.
    assert_eq!(rebalance(&store, &second, &half.epochs).await.owned, Partitions::from(128..=255));
    let gone = NodeId::from_stored("gone-1");
    assert_eq!(store.rebalance(&gone, &half.epochs).await.expect("is known to be lost"), Rebalanced::Lost);
    held.rollback().await.expect("rolls back");
}

#[tokio::test]
async fn keys_that_json_cannot_hold_are_told_apart() {
    let scratch = Scratch::new();
    let store = scratch.store().await;
    insert(&store, "('a', 1, 'k' || char(0) || '1', NULL), ('b', 1, 'k' || char(0) || '2', NULL), ('c', 1, 'k', NULL)")
        .await;
    insert(&store, "('d', 1, '\"', 'h:'), ('e', 1, '\"', 'h'), ('f', 1, '\"', NULL), ('g', 1, NULL, 'h')").await;
    let key = |handler: Option<&str>, key: &str| OrderKey { handler: handler.map(Into::into), key: key.into() };
    let seqs = async |scope| fetched(&store, Some(scope)).await.iter().map(FetchedRow::seq).collect::<Vec<_>>();
    let without = vec![key(None, "k\u{0}1"), key(Some("h"), "\""), key(None, "")];
    assert_eq!(seqs(FetchScope { without, ..scope(Heads::Retry) }).await, [2, 3, 4, 6, 7]);
    for (only, seq) in [(key(None, "k\u{0}2"), 2), (key(None, "k"), 3), (key(Some("h"), "\""), 5), (key(None, "\""), 6)]
    {
        assert_eq!(seqs(FetchScope { only: vec![only], ..scope(Heads::Retry) }).await, [seq]);
    }
}

#[tokio::test]
async fn rows_of_given_partitions_are_refused_one_by_one() {
    let scratch = Scratch::new();
    let store = scratch.store().await;
    let node = member(&store, "a-1").await;
    let all = rebalance(&store, &node, &Epochs::none()).await;
    insert(&store, "('a', 1, NULL, NULL), ('b', 2, NULL, NULL), ('c', 1, NULL, NULL), ('d', 2, NULL, NULL)").await;
    // The second one takes none of its target yet: it only makes that of the first smaller.
    member(&store, "0-1").await;
    let sql = "UPDATE outbox_node SET started_at = 0 WHERE node_id = '0-1'";
    raw_sql(sql).execute(store.writer()).await.expect("updates");
    let kept = rebalance(&store, &node, &all.epochs.of(Partitions::from(2..=2))).await;
    assert_eq!(kept.owned, Partitions::ALL.difference(Partitions::from(2..=2)));
    let changes = [Change::Done, Change::Done, Change::Remove, Change::Remove];
    let rows = rows_at(&store, &[1, 2, 3, 4]).await.expect("reads");
    let verdict = |(row, change)| Verdict { row, expected: Expected::FIRST, change };
    let verdicts: Vec<Verdict> = rows.into_iter().zip(changes).map(verdict).collect();
    let mut refused = store.settle(&node, Fence::Partition, &verdicts).await.expect("settles");
    refused.sort_unstable();
    assert_eq!(refused, [2, 4]);
    assert_eq!(fetched(&store, None).await.iter().map(FetchedRow::seq).collect::<Vec<_>>(), [2, 4]);
    let left: i64 =
        sqlx::query_scalar("SELECT count(*) FROM outbox_event").fetch_one(store.writer()).await.expect("counts");
    assert_eq!(left, 3, "of the two that are over one was kept");
}
