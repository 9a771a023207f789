//! Rebalancing beside locks, settles under way, and tables of earlier releases.

#![allow(clippy::expect_used, clippy::panic, reason = "a test's helpers fail as the test does")]

use crate::support::{LEASE, NONE, done, event, node, with_db};
use pillarbox_core::error::StoreErrorKind;
use pillarbox_core::ownership::{Acquired, Epochs, Fence, Holding, NodeId, NodeMode, Partitions, Rebalanced};
use pillarbox_core::store::Store as _;
use pillarbox_postgres::PostgresStore;

async fn member(store: &PostgresStore, name: &str) -> NodeId {
    let node = node(name);
    store.join(&node, NodeMode::Partitioned, LEASE).await.expect("joins");
    node
}

async fn rebalanced(store: &PostgresStore, node: &NodeId) -> Holding {
    match store.rebalance(node, &Epochs::none()).await.expect("rebalances") {
        Rebalanced::Member(holding) => holding,
        Rebalanced::Lost => panic!("{node} is lost"),
    }
}

/// Every node asks about once a second: where nothing changes, it waits for nobody and writes nothing.
#[tokio::test]
async fn a_rebalance_without_a_reason_takes_no_lock() {
    with_db(async |db| {
        let store = db.store().await;
        let first = member(&store, "first").await;
        assert_eq!(rebalanced(&store, &first).await.gained, Partitions::ALL);
        let second = member(&store, "second").await;
        let mut client = db.pool.get().await.expect("a connection");
        let holder = client.transaction().await.expect("begins");
        let lock = format!("LOCK TABLE {0}.outbox_partition, {0}.outbox_node IN EXCLUSIVE MODE", db.schema);
        holder.batch_execute(&lock).await.expect("locks");
        for (node, owned) in [(&first, Partitions::ALL), (&second, Partitions::NONE)] {
            let holding = tokio::time::timeout(LEASE, rebalanced(&store, node)).await.expect("is not kept waiting");
            assert_eq!((holding.owned, holding.gained), (owned, Partitions::NONE));
        }
        holder.rollback().await.expect("rolls back");
    })
    .await;
}

/// Whoever takes the partitions of a dead node waits for what it is recording, and nothing of it comes after.
#[tokio::test]
async fn a_rebalance_and_a_settle_of_the_dead_exclude_each_other() {
    with_db(async |db| {
        let store = db.store().await;
        let written = db.write(&store, vec![event(), event()]).await;
        let old = member(&store, "old").await;
        rebalanced(&store, &old).await;
        let new = member(&store, "new").await;

        // Another transaction holds the first row, so the settle has the fence and waits.
        let mut client = db.pool.get().await.expect("a connection");
        let holder = client.transaction().await.expect("begins");
        let lock = format!("SELECT FROM {}.outbox_event WHERE seq = {} FOR UPDATE", db.schema, written[0]);
        holder.execute(&lock, &[]).await.expect("locks");
        let first = done(&store, &written[..1]).await;
        let takeover = async {
            db.waiting("outbox_event").await;
            db.execute(&format!("UPDATE {}.outbox_node SET expires_at = now() WHERE node_id = '{old}'", db.schema))
                .await;
            let release = async {
                db.waiting("outbox_node").await;
                holder.commit().await.expect("commits");
            };
            tokio::join!(rebalanced(&store, &new), release).0
        };
        let (refused, holding) = tokio::join!(store.settle(&old, Fence::Partition, &first), takeover);
        assert_eq!(refused.expect("settles"), NONE, "the settle came first");
        assert_eq!((holding.gained, holding.unclean), (Partitions::ALL, Partitions::ALL));

        let late = done(&store, &written[1..]).await;
        assert_eq!(store.settle(&old, Fence::Partition, &late).await.expect("settles"), written[1..]);
        assert_eq!(store.settle(&new, Fence::Partition, &late).await.expect("settles"), NONE);
    })
    .await;
}

/// Whoever needs the lock of the nodes is told after a while that it is held, and where to look.
#[tokio::test]
async fn a_lock_that_is_held_for_long_is_named() {
    with_db(async |db| {
        let store = db.store().await;
        let mut client = db.pool.get().await.expect("a connection");
        let holder = client.transaction().await.expect("begins");
        let lock = format!("UPDATE {}.outbox_partition SET interventions = 1 WHERE partition = 0", db.schema);
        holder.execute(&lock, &[]).await.expect("locks");
        let refused = store.join(&node("first"), NodeMode::Partitioned, LEASE).await.expect_err("is held up");
        assert_eq!(refused.kind(), StoreErrorKind::Contention);
        let message = refused.to_string();
        for part in ["partition 0", "outbox_partition", "pg_stat_activity"] {
            assert!(message.contains(part), "{part}: {message}");
        }
        holder.rollback().await.expect("rolls back");
        store.join(&node("first"), NodeMode::Partitioned, LEASE).await.expect("joins");
    })
    .await;
}

/// What the nodes of one mode leave behind, those of another find: partitions of which some owner died.
#[tokio::test]
async fn another_mode_finds_out_that_an_owner_died() {
    with_db(async |db| {
        let store = db.store().await;
        let dying = member(&store, "dying").await;
        let all = rebalanced(&store, &dying).await;
        let kept = member(&store, "kept").await;
        let half = Partitions::from(128..=255);
        store.rebalance(&dying, &all.epochs.of(half)).await.expect("gives");
        assert_eq!(rebalanced(&store, &kept).await.gained, half);
        store.leave(&kept).await.expect("leaves");
        db.execute(&format!("UPDATE {}.outbox_node SET expires_at = now()", db.schema)).await;

        let single = node("single");
        store.join(&single, NodeMode::SingleNode, LEASE).await.expect("joins beside the dead");
        let acquired = store.acquire(&single).await.expect("acquires");
        assert_eq!(acquired, Acquired::Owner { epoch: 3, unclean: true });
        let acquired = store.acquire(&single).await.expect("acquires");
        assert_eq!(acquired, Acquired::Owner { epoch: 3, unclean: false }, "known to the call that took over only");
    })
    .await;
}
