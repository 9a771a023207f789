//! The time that rebalancing takes, by a clock that stands still until everyone waits.

#![allow(clippy::expect_used, reason = "a test fails by panicking")]

use std::time::Duration;

use pillarbox_core::handle::Delivery;
use pillarbox_core::store::Admin as _;
use pillarbox_engine::run::Outbox;
use pillarbox_memory::MemoryStore;
use tokio::time::sleep;

async fn shares(store: &MemoryStore) -> Vec<u16> {
    let mut shares: Vec<u16> =
        store.nodes().await.expect("lists the nodes").iter().map(|node| node.partitions).collect();
    shares.sort_unstable();
    shares
}

/// The first takes everything, since nobody else is there yet, and gives half of it away long before its usual rebalance.
#[tokio::test(start_paused = true)]
async fn nodes_that_start_together_rebalance_within_half_a_second() {
    let store = MemoryStore::new();
    let start = || Outbox::partitioned(store.reopen()).handle_all(async |_: Delivery| ()).start();
    let first = start().await.expect("starts");
    sleep(Duration::from_millis(20)).await;
    let second = start().await.expect("starts");
    sleep(Duration::from_millis(480)).await;
    assert_eq!(shares(&store).await, [128, 128]);
    second.shutdown().await;
    first.shutdown().await;
}
