//! Failures that the database refuses to record.

#![allow(clippy::expect_used, reason = "a test's helpers fail as the test does")]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use pillarbox_core::event::Envelope;
use pillarbox_core::handle::Delivery;
use pillarbox_core::write::insert;
use pillarbox_engine::run::Outbox;
use pillarbox_memory::MemoryStore;
use pillarbox_testkit::{FaultyStore, Recorder};
use tokio::time::{Instant, sleep};

#[tokio::test(start_paused = true)]
async fn a_key_goes_on_when_the_quarantine_of_its_failed_event_ends() {
    let memory = MemoryStore::new();
    let event = |key: &str| Envelope::builder("t").key(key).payload_json("{}").build().expect("valid");
    let mut tx = memory.begin();
    let seqs = insert(&memory, &mut tx, vec![event("a"), event("a"), event("b")]).await.expect("inserts");
    tx.commit();
    let (store, first, is_mended) = (FaultyStore::new(memory.clone()), seqs[0], Arc::new(AtomicBool::new(false)));
    store.refuse_verdicts_of([first]);
    let mended = Arc::clone(&is_mended);
    let recorder = Recorder::around(move |delivery: Delivery| {
        let fails = delivery.seq() == first && !mended.load(Ordering::SeqCst);
        async move { if fails { Err("not yet") } else { Ok(()) } }
    });
    let began = Instant::now();
    let outbox = Outbox::partitioned(store.clone()).handle_all(recorder.clone()).start().await.expect("starts");
    sleep(Duration::from_secs(50)).await;
    let calls = || recorder.calls().iter().map(|call| call.seq).collect::<Vec<_>>();
    let mut before = calls();
    before.sort_unstable();
    assert_eq!(before, [seqs[0], seqs[2]], "its key waits, and no other");

    store.refuse_verdicts_of([]);
    is_mended.store(true, Ordering::SeqCst);
    recorder.wait_for_ends(4).await;
    assert!(began.elapsed() < Duration::from_secs(70), "{:?}", began.elapsed());
    assert_eq!(calls()[2..], seqs[..2]);
    outbox.shutdown().await;
}
