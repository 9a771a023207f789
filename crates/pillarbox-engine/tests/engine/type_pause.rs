//! Events that one node cannot deliver now, in the mode where rows name who holds them.

#![allow(clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use pillarbox_core::event::Envelope;
use pillarbox_core::handle::{Delivery, HandlerError};
use pillarbox_core::row::Status;
use pillarbox_core::write::insert;
use pillarbox_engine::run::{Outbox, TypePause};
use pillarbox_memory::{MemoryRow, MemoryStore};
use tokio::sync::Notify;
use tokio::time::Instant;

const EVENTS: usize = 40;

async fn written() -> MemoryStore {
    let store = MemoryStore::new();
    let event = |n: usize| Envelope::json("a", n.to_string()).expect("valid");
    let mut tx = store.begin();
    insert(&store, &mut tx, (0..EVENTS).map(event).collect::<Vec<_>>()).await.expect("inserts");
    tx.commit();
    store
}

/// Waits until all rows are as they should be.
async fn all(store: &MemoryStore, is_so: impl Fn(&MemoryRow) -> bool) {
    let patience = Instant::now() + Duration::from_secs(20);
    loop {
        let rows = store.inspect().rows();
        match rows.iter().find(|row| !is_so(row)) {
            None => return,
            Some(row) if Instant::now() > patience => panic!("{row:?}"),
            Some(_) => tokio::time::sleep(Duration::from_millis(5)).await,
        }
    }
}

/// How often the handler of a second node is called until all is DONE.
async fn delivered_by_another(store: &MemoryStore) -> usize {
    let delivered = Arc::new(AtomicUsize::new(0));
    let well = {
        let delivered = Arc::clone(&delivered);
        move |_: Delivery| {
            delivered.fetch_add(1, Ordering::Relaxed);
            std::future::ready(())
        }
    };
    let other = Outbox::multi_node(store.clone()).handle_type("a", well).start().await.expect("starts");
    all(store, |row| row.status == Status::Done).await;
    other.shutdown().await;
    delivered.load(Ordering::Relaxed)
}

#[tokio::test]
async fn events_that_a_node_cannot_deliver_now_are_free_for_others() {
    let store = written().await;
    let (type_pause, calls) = (TypePause::new(), Arc::new(AtomicUsize::new(0)));
    let ill = {
        let (type_pause, calls) = (type_pause.clone(), Arc::clone(&calls));
        move |_: Delivery| {
            let (type_pause, calls) = (type_pause.clone(), Arc::clone(&calls));
            async move {
                calls.fetch_add(1, Ordering::Relaxed);
                type_pause.pause("a", Instant::now() + Duration::from_secs(600));
                Err::<(), _>(HandlerError::deferred(Duration::from_secs(600), "away"))
            }
        }
    };
    let cut_off =
        Outbox::multi_node(store.clone()).type_pause(type_pause).handle_type("a", ill).start().await.expect("starts");
    let taken = || calls.load(Ordering::Relaxed);
    while taken() == 0 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let untouched = |row: &MemoryRow| row.status == Status::New && row.attempts == 0 && row.last_error.is_none();
    all(&store, |row| row.locked_by.is_none() && untouched(row)).await;

    let delivered = delivered_by_another(&store).await;
    cut_off.shutdown().await;
    assert_eq!(delivered, EVENTS, "each once");
    assert!(taken() <= EVENTS, "no event was tried twice where its type was held: {}", taken());
}

#[tokio::test]
async fn a_node_that_stops_holds_nothing_of_a_held_type() {
    let store = written().await;
    let (type_pause, called) = (TypePause::new(), Arc::new(Notify::new()));
    let ill = {
        let (type_pause, called) = (type_pause.clone(), Arc::clone(&called));
        move |_: Delivery| {
            type_pause.pause("a", Instant::now() + Duration::from_secs(600));
            called.notify_one();
            std::future::ready(Err::<(), _>(HandlerError::deferred(Duration::from_secs(600), "away")))
        }
    };
    let outbox =
        Outbox::multi_node(store.clone()).type_pause(type_pause).handle_type("a", ill).start().await.expect("starts");
    called.notified().await;
    outbox.shutdown().await;
    let rows = store.inspect().rows();
    assert!(rows.iter().all(|row| row.locked_by.is_none() && row.status == Status::New), "{rows:?}");
}

#[tokio::test]
async fn events_that_only_this_node_cannot_deliver_are_left_to_others_and_not_retaken() {
    let store = written().await;
    let calls = Arc::new(AtomicUsize::new(0));
    let ill = {
        let calls = Arc::clone(&calls);
        move |_: Delivery| {
            calls.fetch_add(1, Ordering::Relaxed);
            std::future::ready(Err::<(), _>(HandlerError::deferred_on_this_node(Duration::from_secs(600), "away")))
        }
    };
    let cut_off = Outbox::multi_node(store.clone()).handle_type("a", ill).start().await.expect("starts");
    while calls.load(Ordering::Relaxed) < EVENTS {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let untouched = |row: &MemoryRow| row.status == Status::New && row.attempts == 0 && row.available_at.is_none();
    all(&store, |row| row.locked_by.is_none() && untouched(row)).await;
    let delivered = delivered_by_another(&store).await;
    cut_off.shutdown().await;
    assert_eq!((delivered, calls.load(Ordering::Relaxed)), (EVENTS, EVENTS), "each once");
}
