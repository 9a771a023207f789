//! How long a shutdown may take is the caller's to say.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::Arc;
use std::time::Duration;

use pillarbox_core::event::Envelope;
use pillarbox_core::handle::Delivery;
use pillarbox_engine::run::Outbox;
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
    assert!(told.elapsed() < Duration::from_secs(60), "{:?} of the paused clock", told.elapsed());
    outbox.shutdown().await;
}
