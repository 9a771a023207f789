//! When verdicts are recorded: a lone one at once, a trickle of them together.

#![allow(clippy::expect_used, reason = "a test fails by panicking")]

use std::time::Duration;

use pillarbox_core::event::Envelope;
use pillarbox_core::handle::Delivery;
use pillarbox_engine::run::Outbox;
use pillarbox_memory::MemoryStore;
use tokio::task::yield_now;
use tokio::time::{Instant, sleep};

/// Lets everything run that can, while the paused clock stands still.
async fn turn() {
    for _ in 0..500 {
        yield_now().await;
    }
}

async fn write(outbox: &Outbox, store: &MemoryStore, events: usize) {
    let mut tx = store.begin();
    let events = (0..events).map(|_| Envelope::json("test.told", "{}").expect("valid"));
    let written = outbox.write_all(&mut tx, events).await.expect("writes");
    tx.commit();
    outbox.notify_committed(written);
    turn().await;
}

#[tokio::test(start_paused = true)]
async fn a_lone_verdict_is_recorded_at_once_and_a_trickle_together() {
    let store = MemoryStore::new();
    let outbox = Outbox::single_node(store.clone()).handle_all(|_: Delivery| std::future::ready(()));
    let outbox = outbox.start().await.expect("starts");
    sleep(Duration::from_secs(1)).await;

    let began = Instant::now();
    write(&outbox, &store, 1).await;
    assert_eq!((outbox.stats().done, began.elapsed()), (1, Duration::ZERO));

    for _ in 0..20 {
        write(&outbox, &store, 1).await;
    }
    assert_eq!((outbox.stats().done, began.elapsed()), (1, Duration::ZERO), "they are gathered");
    sleep(Duration::from_millis(5)).await;
    assert_eq!(outbox.stats().done, 21);

    // The second write right after the first is worth a call by itself.
    let again = Instant::now();
    write(&outbox, &store, 1).await;
    write(&outbox, &store, 200).await;
    assert!(outbox.stats().done >= 22 + 128, "{}", outbox.stats().done);
    assert_eq!(again.elapsed(), Duration::ZERO);
    outbox.shutdown().await;
    assert_eq!(outbox.stats().done, 222);
}
