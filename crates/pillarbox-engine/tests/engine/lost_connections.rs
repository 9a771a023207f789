//! A server that crashes may lose its last commits without becoming another server. All that the store sees of it is a lost connection:
//! the reader goes back to the bottom, or what gets the lost numbers is overtaken by what comes after it.

#![allow(clippy::expect_used, reason = "a test fails by panicking")]

use std::ops::Range;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use pillarbox_core::event::Envelope;
use pillarbox_core::handle::Delivery;
use pillarbox_core::ownership::NodeMode;
use pillarbox_core::write::insert;
use pillarbox_engine::run::Outbox;
use pillarbox_memory::{MemoryStore, MemoryTransaction};
use tokio::time::{sleep, timeout};

const KEYS: usize = 3;
const BEFORE: usize = 60;
const AFTER: usize = 150;
/// Events of other keys.
const OTHERS: Range<usize> = 90..150;

/// What was delivered, in its order.
#[derive(Debug, Clone, Default)]
struct Delivered(Arc<Mutex<Vec<usize>>>);

impl Delivered {
    async fn start(&self, mode: NodeMode, store: MemoryStore) -> Outbox {
        let delivered = self.clone();
        let handler = move |delivery: Delivery| {
            delivered.0.lock().expect("not poisoned").push(delivery.parse().expect("a number"));
            std::future::ready(())
        };
        let often = Duration::from_millis(20);
        let outbox = match mode {
            NodeMode::Ordered => Outbox::ordered(store).poll_interval(often, often).handle_all(handler).start().await,
            _ => Outbox::partitioned(store).poll_interval(often, often).handle_all(handler).start().await,
        };
        outbox.expect("starts")
    }

    async fn wait_for(&self, count: usize) {
        let all = async {
            while self.0.lock().expect("not poisoned").len() < count {
                sleep(Duration::from_millis(1)).await;
            }
        };
        timeout(Duration::from_secs(30), all).await.expect("all are delivered");
    }
}

/// Inserts events, in a transaction that stays open.
async fn begin(store: &MemoryStore, numbers: Range<usize>) -> (MemoryTransaction, Vec<i64>) {
    let event = |number: usize| {
        let group = if OTHERS.contains(&number) { "other" } else { "key" };
        let key = format!("{group}-{}", number % KEYS);
        Envelope::builder("t").key(key).payload_json(number.to_string()).build().expect("valid")
    };
    let mut tx = store.begin();
    let seqs = insert(store, &mut tx, numbers.map(event).collect::<Vec<_>>()).await.expect("inserts");
    (tx, seqs)
}

#[tokio::test(start_paused = true)]
async fn a_lost_connection_sets_the_mark_back() {
    for mode in [NodeMode::Partitioned, NodeMode::Ordered] {
        let (store, delivered) = (MemoryStore::new(), Delivered::default());
        let outbox = delivered.start(mode, store.clone()).await;
        begin(&store, 0..BEFORE).await.0.commit();
        delivered.wait_for(BEFORE).await;
        // By then all of it is recorded, and the mark stands above it.
        sleep(Duration::from_secs(1)).await;
        store.inspect().crash();
        // The first of the lost numbers commit late, below what is delivered by then, and before what their keys have next.
        let (late, seqs) = begin(&store, BEFORE..BEFORE + 30).await;
        assert_eq!(seqs[0], 1, "{mode}: numbers are given again");
        begin(&store, OTHERS).await.0.commit();
        delivered.wait_for(BEFORE + OTHERS.len()).await;
        sleep(Duration::from_secs(1)).await;
        late.commit();
        begin(&store, OTHERS.end..BEFORE + AFTER).await.0.commit();
        delivered.wait_for(BEFORE + AFTER).await;
        outbox.shutdown().await;
        let delivered = delivered.0.lock().expect("not poisoned");
        let after: Vec<_> = delivered[BEFORE..].iter().filter(|number| !OTHERS.contains(number)).collect();
        assert!(after.is_sorted() || mode != NodeMode::Ordered, "{mode}: {after:?}");
        for key in 0..KEYS {
            let of_key: Vec<_> = after.iter().filter(|number| **number % KEYS == key).collect();
            assert!(of_key.is_sorted(), "{mode}, key {key}: {of_key:?}");
        }
    }
}
