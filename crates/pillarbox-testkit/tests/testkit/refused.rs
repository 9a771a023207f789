//! Verdicts that the database refuses to record, as one with a trigger might.

#![allow(clippy::expect_used, reason = "a test's helpers fail as the test does")]

use std::time::Duration;

use pillarbox_engine::run::Outbox;
use pillarbox_memory::MemoryStore;
use pillarbox_testkit::{FaultyStore, Recorder};
use tokio::time::{Instant, sleep};

const REFUSED: u32 = 1_200;
const OTHERS: u32 = 100;

fn insert(store: &MemoryStore, ids: std::ops::Range<u32>) {
    for id in ids {
        store.inspect().insert_three_columns(&id.to_string(), "order.placed", "1").expect("inserts");
    }
}

#[tokio::test(start_paused = true)]
async fn very_many_refused_verdicts_hold_up_no_others() {
    let memory = MemoryStore::new();
    insert(&memory, 0..REFUSED);
    let (store, recorder) = (FaultyStore::new(memory.clone()), Recorder::new());
    store.refuse_verdicts_of(memory.inspect().rows().iter().map(|row| row.seq));
    let began = Instant::now();
    let outbox = Outbox::single_node(store).handle_all(recorder.clone()).start().await.expect("starts");
    recorder.wait_for_calls(REFUSED as usize).await;
    insert(&memory, REFUSED..REFUSED + OTHERS);
    while outbox.stats().done < u64::from(OTHERS) {
        sleep(Duration::from_millis(10)).await;
    }
    assert!(began.elapsed() < Duration::from_secs(30), "{:?}", began.elapsed());
    assert_eq!(recorder.calls().len(), (REFUSED + OTHERS) as usize, "none of them is spun");
    outbox.shutdown().await;
}
