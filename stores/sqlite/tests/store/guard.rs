use std::time::Duration;

use pillarbox_core::event::Envelope;
use pillarbox_core::store::Admin as _;
use pillarbox_core::write::WriteError;
use pillarbox_engine::run::Outbox;
use pillarbox_testkit::{Recorder, wait_until_idle};
use sqlx::Connection as _;

use crate::scratch::Scratch;

const HOUR: Duration = Duration::from_secs(3600);

fn event(number: usize) -> Envelope {
    Envelope::builder("order.placed").id(format!("e-{number}")).payload_json("{}").build().expect("valid")
}

/// SQLite gives the number of a row that was rolled back to the next one: it is the event's id that tells them apart.
#[tokio::test]
async fn events_rolled_back_with_a_nested_transaction_are_never_delivered() {
    let scratch = Scratch::new();
    let (store, recorder) = (scratch.store().await, Recorder::new());
    let builder = Outbox::single_node(store.clone()).poll_interval(HOUR, HOUR).handle_all(recorder.clone());
    let outbox = builder.start().await.expect("starts");
    for number in [10, 20, 30] {
        let mut guarded = outbox.begin(store.writer()).await.expect("begins");
        outbox.write(&mut guarded, event(number)).await.expect("writes");
        let mut nested = guarded.begin().await.expect("begins");
        outbox.write(&mut nested, event(number + 1)).await.expect("writes");
        nested.rollback().await.expect("rolls back");
        let mut nested = guarded.begin().await.expect("begins");
        outbox.write(&mut *nested, event(number + 2)).await.expect("writes");
        nested.commit().await.expect("commits");
        guarded.commit().await.expect("commits");
    }
    wait_until_idle(&outbox, Duration::from_secs(30)).await.expect("all is delivered");
    assert!(outbox.stats().hot > 0, "none came from memory");
    assert_eq!(store.counts().await.expect("counts").done, 6);
    outbox.shutdown().await;
    let mut ids: Vec<String> = recorder.calls().iter().map(|call| call.id.to_string()).collect();
    ids.sort();
    assert_eq!(ids, ["e-10", "e-12", "e-20", "e-22", "e-30", "e-32"]);
}

/// By the type it cannot be told from one in a transaction.
#[tokio::test]
async fn a_bare_connection_is_refused() {
    let scratch = Scratch::new();
    let store = scratch.store().await;
    let outbox = Outbox::writer_only(store.clone()).start().await.expect("starts");
    let mut connection = scratch.foreign_pool().await.acquire().await.expect("connects");
    let refused = outbox.write(&mut *connection, event(1)).await;
    assert!(matches!(refused, Err(WriteError::NoTransaction)), "{refused:?}");
    assert_eq!(store.counts().await.expect("counts").pending(), 0);
    outbox.shutdown().await;
}
