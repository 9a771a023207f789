//! How often the table is read while nothing happens, and how it is read in a backlog and over a slow line.

#![allow(clippy::expect_used, reason = "a test's helpers fail as the test does")]

use std::time::Duration;

use pillarbox_core::clock::Random;
use pillarbox_core::event::Envelope;
use pillarbox_core::handle::{Delivery, HandlerError};
use pillarbox_core::write::insert;
use pillarbox_engine::maintain::{PendingChange, PendingEvents};
use pillarbox_engine::run::Outbox;
use pillarbox_memory::MemoryStore;
use pillarbox_testkit::{FaultyStore, Operation, Recorder};
use tokio::time::{Instant, sleep};

/// All of them at once would take minutes; a fetch is given up after 30 s.
#[tokio::test(start_paused = true)]
async fn large_events_arrive_over_a_slow_line() {
    const EVENTS: u64 = 100;
    let payload = format!("\"{}\"", "x".repeat(500_000));
    for (bytes_per_second, most) in [(1_000_000, 100), (100_000, 900)] {
        let inner = MemoryStore::new();
        let mut tx = inner.begin();
        let events = (0..EVENTS).map(|_| Envelope::json("large", payload.clone()).expect("valid")).collect::<Vec<_>>();
        insert(&inner, &mut tx, events).await.expect("inserts");
        tx.commit();
        let store = FaultyStore::new(inner);
        store.slow_line(Some(bytes_per_second));
        let began = Instant::now();
        let lease = Duration::from_secs(3600);
        let outbox =
            Outbox::single_node(store).lease(lease).handle_all(|_: Delivery| async {}).start().await.expect("starts");
        while outbox.stats().done < EVENTS {
            assert!(began.elapsed() < Duration::from_secs(most), "{:?} after {:?}", outbox.stats(), began.elapsed());
            sleep(Duration::from_millis(100)).await;
        }
        outbox.shutdown().await;
    }
}

/// As one batch they would take a minute, and a settle is given up after 30 s; in parts they fit.
#[tokio::test(start_paused = true)]
async fn long_errors_are_recorded_over_a_slow_line() {
    const EVENTS: u64 = 300;
    let inner = MemoryStore::new();
    let mut tx = inner.begin();
    let events = (0..EVENTS).map(|_| Envelope::json("failing", "1").expect("valid")).collect::<Vec<_>>();
    insert(&inner, &mut tx, events).await.expect("inserts");
    tx.commit();
    let store = FaultyStore::new(inner);
    store.slow_line(Some(20_000));
    let began = Instant::now();
    let handler = |_: Delivery| async { Err::<(), _>(HandlerError::unrecoverable("x".repeat(4000))) };
    let lease = Duration::from_secs(3600);
    let outbox = Outbox::single_node(store).lease(lease).handle_all(handler).start().await.expect("starts");
    while outbox.stats().dead < EVENTS {
        assert!(began.elapsed() < Duration::from_secs(300), "{:?} after {:?}", outbox.stats(), began.elapsed());
        sleep(Duration::from_millis(100)).await;
    }
    outbox.shutdown().await;
}

/// A drain may take an hour.
#[tokio::test(start_paused = true)]
async fn events_cancelled_while_an_outbox_drains_are_not_begun() {
    let store = MemoryStore::new();
    let recorder = Recorder::around(|_: Delivery| sleep(Duration::from_secs(5)));
    let minute = Duration::from_secs(60);
    let builder = Outbox::single_node(store.clone()).workers(1).drain_timeout(minute);
    let outbox = builder.handle_all(recorder.clone()).start().await.expect("starts");
    let mut tx = store.begin();
    let events: Vec<_> = (0..5).map(|_| Envelope::json("slow", "1").expect("valid")).collect();
    let last = events.last().map(|event| event.id().clone()).expect("five");
    outbox.write_all(&mut tx, events).await.expect("writes");
    tx.commit();
    sleep(Duration::from_secs(1)).await;
    let cancel = async {
        sleep(Duration::from_secs(1)).await;
        let change = PendingEvents::of(&store).cancel(last.as_str()).await.expect("cancels");
        assert_eq!(change, PendingChange::Rows(1));
    };
    tokio::join!(outbox.shutdown(), cancel);
    assert!(recorder.calls_of(&last).is_empty(), "others may be left to the next owner");
}

/// Fixed that is always the same.
#[derive(Debug, Clone, Copy)]
struct Fixed(u64);

impl Random for Fixed {
    fn next_u64(&self) -> u64 {
        self.0
    }
}

const LOWEST: Fixed = Fixed(0);
const HIGHEST: Fixed = Fixed(u64::MAX);
const MODES: [&str; 4] = ["single_node", "multi_node", "partitioned", "ordered"];

/// An outbox that polls every 50 ms to 5 s, which are the defaults.
async fn start(mode: &str, store: &MemoryStore, chance: Fixed) -> Outbox {
    let (store, recorder) = (store.clone(), Recorder::new());
    match mode {
        "single_node" => Outbox::single_node(store).random(chance).handle_all(recorder).start().await,
        "multi_node" => Outbox::multi_node(store).random(chance).handle_all(recorder).start().await,
        "partitioned" => Outbox::partitioned(store).random(chance).handle_all(recorder).start().await,
        _ => Outbox::ordered(store).random(chance).handle_all(recorder).start().await,
    }
    .expect("starts")
}

/// The milliseconds between the polls of the table from now on, the time until the first of them included.
async fn gaps(outbox: &Outbox, count: usize) -> Vec<u128> {
    // Shorter than the shortest pause, so that no poll is missed.
    const STEP: Duration = Duration::from_millis(20);
    let mut last = Instant::now();
    let mut gaps = Vec::new();
    while gaps.len() < count {
        sleep(STEP).await;
        let polled = Instant::now() - outbox.health().last_poll.expect("it has polled");
        if polled > last {
            gaps.push((polled - last).as_millis());
            last = polled;
        }
    }
    gaps
}

fn assert_about(gaps: &[u128], expected: &[u128], of: &str) {
    let about = |(gap, expected): (&u128, &u128)| gap.abs_diff(*expected) <= 2;
    assert!(gaps.len() == expected.len() && gaps.iter().zip(expected).all(about), "{of}: {gaps:?}, not {expected:?}");
}

/// Each poll that finds nothing doubles the pause, up to 5 s; one that finds an event sets it back to 50 ms. Each pause is
/// shortened by up to a quarter, so that nodes do not look in step.
#[tokio::test(start_paused = true)]
async fn an_idle_outbox_looks_less_and_less_often_until_there_is_work() {
    for mode in MODES {
        for (chance, share) in [(HIGHEST, 4), (LOWEST, 3)] {
            let of = format!("{mode}, {share} quarters");
            let expected = |pauses: &[u128]| pauses.iter().map(|pause| pause * share / 4).collect::<Vec<_>>();
            let store = MemoryStore::new();
            let outbox = start(mode, &store, chance).await;
            sleep(Duration::from_millis(1)).await;
            let mut idle = gaps(&outbox, 8).await;
            // The first look came with the start, before they were counted.
            idle[0] += 1;
            assert_about(&idle, &expected(&[100, 200, 400, 800, 1600, 3200, 5000, 5000]), &of);

            store.inspect().insert_three_columns("event-1", "order.placed", "{}").expect("inserts");
            let found = gaps(&outbox, 5).await;
            assert_about(&found[1..], &expected(&[50, 100, 200, 400]), &of);
            assert_eq!(outbox.stats().done, 1, "{of}");
            outbox.shutdown().await;
        }
    }
}

/// A look that finds as much as it asked for is followed by the next one at once; the pause between looks has no part in it.
#[tokio::test(start_paused = true)]
async fn a_backlog_is_read_without_a_pause() {
    const HOUR: Duration = Duration::from_secs(3600);
    let inner = MemoryStore::new();
    let mut tx = inner.begin();
    let events = (0..100).map(|_| Envelope::json("order.placed", "{}").expect("valid")).collect::<Vec<_>>();
    insert(&inner, &mut tx, events).await.expect("inserts");
    tx.commit();
    let store = FaultyStore::new(inner);
    let recorder = Recorder::new();
    let outbox = Outbox::single_node(store.clone()).claim_batch(10).poll_interval(HOUR, HOUR);
    let began = Instant::now();
    let outbox = outbox.handle_all(recorder.clone()).start().await.expect("starts");
    recorder.wait_for_ends(100).await;
    assert!(began.elapsed() < Duration::from_secs(1), "{:?}", began.elapsed());
    sleep(Duration::from_secs(60)).await;
    let looks = store.calls(Operation::Fetch);
    assert!((10..=15).contains(&looks), "{looks} looks at 100 events in batches of ten");
    outbox.shutdown().await;
}
