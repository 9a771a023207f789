//! The spans of the engine, in a process of their own: which spans are on is a matter of the whole process.

#![allow(clippy::expect_used, reason = "a test fails by panicking")]

mod log;

use std::time::Duration;

use pillarbox_core::event::Envelope;
use pillarbox_core::handle::Delivery;
use pillarbox_engine::run::Outbox;
use pillarbox_memory::MemoryStore;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::format::FmtSpan;

use log::Log;

async fn deliver_one(log: &Log, level: &str) -> String {
    let writer = log.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_env_filter(EnvFilter::new(level))
        .with_span_events(FmtSpan::NEW)
        .with_ansi(false)
        .with_writer(move || writer.clone());
    let _logging = log::install(subscriber.finish());
    let store = MemoryStore::new();
    let handler = |_: Delivery| async { tracing::info!("the handler's own line") };
    let outbox = Outbox::single_node(store.clone()).handle_all(handler).start().await.expect("starts");
    tokio::time::sleep(Duration::from_millis(10)).await;
    let mut tx = store.begin();
    let event =
        Envelope::builder("order.placed").id("the-id").payload_json("\"the secret\"").header("h", "hidden").build();
    let written = outbox.write(&mut tx, event.expect("valid")).await.expect("writes");
    tx.commit();
    outbox.notify_committed(written);
    let settled = async {
        while outbox.stats().done == 0 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), settled).await.expect("the event is delivered");
    outbox.shutdown().await;
    log.text()
}

#[tokio::test]
async fn spans_follow_an_event_at_debug_and_hold_no_payload() {
    let text = deliver_one(&Log::default(), "pillarbox_engine=debug,spans=debug").await;
    for span in ["write{table=\"outbox_event\" events=1}", "claim{above=0 limit=1000}", "settle{events=1 again=false}"]
    {
        assert!(text.contains(span), "{span} in {text}");
    }
    let handle = "handle{event_id=\"the-id\" event_type=\"order.placed\" attempt=1 path=\"hot\" events=1}: ";
    assert!(text.lines().any(|line| line.contains(handle) && line.contains("the handler's own line")), "{text}");
    assert!(!text.contains("the secret") && !text.contains("hidden"), "{text}");

    let text = deliver_one(&Log::default(), "info").await;
    assert!(text.contains("the handler's own line") && !text.contains("handle{"), "{text}");
}
