//! How long a shutdown may take is the caller's to say.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use pillarbox_core::event::Envelope;
use pillarbox_core::handle::Delivery;
use pillarbox_engine::run::{Mode, Outbox};
use pillarbox_memory::MemoryStore;
use tokio::sync::Notify;
use tokio::time::Instant;

#[tokio::test(start_paused = true)]
async fn a_shutdown_within_a_limit_does_not_wait_for_the_drain_timeout() {
    let began = Arc::new(Notify::new());
    let store = MemoryStore::new();
    let signal = Arc::clone(&began);
    let stuck = move |_: Delivery| {
        signal.notify_one();
        std::future::pending::<()>()
    };
    let outbox = Outbox::single_node(store.clone()).drain_timeout(Duration::from_secs(600)).handle_all(stuck);
    let outbox = outbox.start().await.unwrap();
    let mut tx = outbox.begin(&store).await.unwrap();
    outbox.write(&mut tx, Envelope::json("test.stuck", "{}").unwrap()).await.unwrap();
    tx.commit().await.unwrap();
    began.notified().await;

    let told = Instant::now();
    outbox.shutdown_within(Duration::from_millis(100)).await;
    assert!(told.elapsed() < Duration::from_secs(1), "{:?} of the paused clock", told.elapsed());
    outbox.shutdown().await;
}

/// A program that writes one event and stops at once has it delivered: the start returns when the queue in memory is open.
#[tokio::test(flavor = "multi_thread")]
async fn an_event_that_is_written_right_after_the_start_is_delivered_before_the_end() {
    for mode in [Mode::SingleNode, Mode::MultiNode] {
        for _ in 0..200 {
            let store = MemoryStore::new();
            let delivered = Arc::new(AtomicUsize::new(0));
            let counts = Arc::clone(&delivered);
            let handler = move |_: Delivery| {
                counts.fetch_add(1, Ordering::SeqCst);
                std::future::ready(())
            };
            let outbox = Outbox::builder(mode).store(store.clone()).handle_all(handler).start().await.unwrap();
            let mut tx = outbox.begin(&store).await.unwrap();
            outbox.write(&mut tx, Envelope::json("t", "{}").unwrap()).await.unwrap();
            tx.commit().await.unwrap();
            outbox.shutdown().await;
            assert_eq!(delivered.load(Ordering::SeqCst), 1, "{mode}");
        }
    }
}
