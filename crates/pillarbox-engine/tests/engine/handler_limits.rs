//! Limits of single handlers, by a clock that stands still while anything runs.

#![allow(clippy::expect_used, reason = "a test fails by panicking")]

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use pillarbox_core::event::Envelope;
use pillarbox_core::handle::Delivery;
use pillarbox_core::ownership::NodeMode;
use pillarbox_engine::handlers::{Rate, Registration, on_batch, on_type};
use pillarbox_engine::run::{Outbox, OutboxBuilder, StartError};
use pillarbox_memory::MemoryStore;
use tokio::time::{Instant, sleep};

const MODES: [NodeMode; 4] = [NodeMode::SingleNode, NodeMode::MultiNode, NodeMode::Partitioned, NodeMode::Ordered];
const MILLI: Duration = Duration::from_millis(1);

/// The times at which events began, and the calls that ran at once.
#[derive(Debug, Default)]
struct Seen {
    began: Mutex<Vec<Instant>>,
    running: AtomicUsize,
    most: AtomicUsize,
}

impl Seen {
    fn begin(&self, events: usize) {
        self.began.lock().expect("no panic").extend(std::iter::repeat_n(Instant::now(), events));
        let running = self.running.fetch_add(1, Ordering::SeqCst) + 1;
        self.most.fetch_max(running, Ordering::SeqCst);
    }

    fn end(&self) {
        self.running.fetch_sub(1, Ordering::SeqCst);
    }

    /// The milliseconds at which the events began, from the first one on.
    fn times(&self) -> Vec<u128> {
        let mut began = self.began.lock().expect("no panic").clone();
        began.sort();
        let first = began.first().copied();
        began.iter().filter_map(|at| Some(at.duration_since(first?).as_millis())).collect()
    }
}

/// A handler that takes 50 ms.
fn slow(event_type: &str, seen: &Arc<Seen>) -> Registration {
    let seen = Arc::clone(seen);
    on_type(event_type, move |_: Delivery| {
        let seen = Arc::clone(&seen);
        async move {
            seen.begin(1);
            sleep(50 * MILLI).await;
            seen.end();
        }
    })
}

async fn write(outbox: &Outbox, store: &MemoryStore, event_type: &str, count: usize) {
    let mut tx = store.begin();
    let event =
        |number: usize| Envelope::builder(event_type).key(format!("{event_type}-{number}")).payload_json("{}").build();
    let events: Result<Vec<_>, _> = (0..count).map(event).collect();
    let written = outbox.write_all(&mut tx, events.expect("valid")).await.expect("writes");
    tx.commit();
    outbox.notify_committed(written);
}

async fn started(mode: NodeMode, store: &MemoryStore, set: impl FnOnce(OutboxBuilder) -> OutboxBuilder) -> Outbox {
    let builder = Outbox::builder(mode).store(Arc::new(store.clone())).poll_interval(MILLI, 10 * MILLI);
    set(builder).start().await.expect("starts")
}

/// Waits until so many events are DONE.
async fn done(outbox: &Outbox, count: u64) {
    while outbox.stats().done < count {
        sleep(MILLI).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_lone_handler_with_a_limit_runs_as_often_at_once_and_no_more() {
    for mode in MODES {
        let (store, seen) = (MemoryStore::new(), Arc::<Seen>::default());
        let outbox = started(mode, &store, |outbox| outbox.handler(slow("limited", &seen).concurrency(3))).await;
        write(&outbox, &store, "limited", 30).await;
        done(&outbox, 30).await;
        let expected = if mode == NodeMode::Ordered { 1 } else { 3 };
        assert_eq!(seen.most.load(Ordering::SeqCst), expected, "{mode}");
        assert!(!outbox.limits()[0].is_reached, "{mode}");
        outbox.shutdown().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_rate_is_held_and_reached() {
    for mode in MODES {
        let (store, seen) = (MemoryStore::new(), Arc::<Seen>::default());
        let rate = Rate::per_second(10).burst(if mode == NodeMode::Ordered { 1 } else { 4 });
        let outbox = started(mode, &store, |outbox| outbox.handler(slow("limited", &seen).rate(rate))).await;
        write(&outbox, &store, "limited", 30).await;
        while !outbox.limits()[0].is_reached {
            sleep(MILLI).await;
        }
        done(&outbox, 30).await;
        let ahead = if mode == NodeMode::Ordered { 0 } else { 3 };
        for (index, (time, earliest)) in
            seen.times().into_iter().zip((0..).map(|n: u128| n.saturating_sub(ahead) * 100)).enumerate()
        {
            assert!((earliest..earliest + 10).contains(&time), "{mode}: event {index} at {time} ms");
        }
        assert!(!outbox.limits()[0].is_reached, "{mode}");
        outbox.shutdown().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_batch_takes_no_more_events_than_the_rate_allows() {
    for mode in [NodeMode::SingleNode, NodeMode::MultiNode, NodeMode::Partitioned] {
        let (store, seen) = (MemoryStore::new(), Arc::<Seen>::default());
        let counting = Arc::clone(&seen);
        let batch = on_batch("limited", 20, move |deliveries: Vec<Delivery>| {
            counting.begin(deliveries.len());
            counting.end();
            std::future::ready(deliveries.iter().map(|_| ()).collect::<Vec<_>>())
        });
        let outbox = started(mode, &store, |outbox| outbox.handler(batch.rate(Rate::per_second(100).burst(5)))).await;
        write(&outbox, &store, "limited", 60).await;
        done(&outbox, 60).await;
        for (index, time) in (0..).zip(seen.times()) {
            let earliest = u128::saturating_sub(index, 4) * 10;
            assert!((earliest..earliest + 60).contains(&time), "{mode}: event {index} at {time} ms");
        }
        outbox.shutdown().await;
    }
}

/// One at its rate, one at its number of calls, and one that is free: each goes on as it may.
#[tokio::test(start_paused = true)]
async fn handlers_with_and_without_limits_do_not_wait_for_each_other() {
    for mode in [NodeMode::SingleNode, NodeMode::MultiNode, NodeMode::Partitioned] {
        let (store, [rated, counted, free]) = (MemoryStore::new(), [(); 3].map(|()| Arc::<Seen>::default()));
        let outbox = started(mode, &store, |outbox| {
            let limited = outbox.handler(slow("rated", &rated).rate(Rate::per_second(1)));
            limited.handler(slow("counted", &counted).concurrency(1)).handler(slow("free", &free))
        })
        .await;
        for (event_type, count) in [("rated", 5), ("counted", 20), ("free", 200)] {
            write(&outbox, &store, event_type, count).await;
        }
        done(&outbox, 225).await;
        // Half of eight workers, 50 ms each; one after the other; one in a second.
        let last = |seen: &Seen| seen.times().last().copied().unwrap_or_default();
        let times = [last(&rated), last(&counted), last(&free)];
        assert!((4000..4020).contains(&times[0]) && (950..1100).contains(&times[1]), "{mode}: {times:?}");
        assert!((2000..2900).contains(&times[2]), "{mode}: {times:?}");
        assert_eq!(counted.most.load(Ordering::SeqCst), 1, "{mode}");
        outbox.shutdown().await;
    }
}

/// The event that is due later stands before one whose handler has no turn for a minute. The store's clock is that of the system.
#[tokio::test]
async fn a_key_whose_first_event_changes_is_served_by_the_handler_of_that() {
    let (store, early, late) = (MemoryStore::new(), Arc::<Seen>::default(), Arc::<Seen>::default());
    let rate = Rate::new(1, Duration::from_secs(60));
    let outbox = started(NodeMode::Partitioned, &store, |outbox| {
        outbox.handler(slow("early", &early)).handler(slow("late", &late).rate(rate))
    })
    .await;
    write(&outbox, &store, "late", 1).await;
    done(&outbox, 1).await;
    let of_the_key = |event_type: &str| Envelope::builder(event_type).key("k").payload_json("{}");
    let first = of_the_key("early").deliver_after(200 * MILLI).build().expect("valid");
    let second = of_the_key("late").build().expect("valid");
    let mut tx = store.begin();
    let written = outbox.write_all(&mut tx, [first, second]).await.expect("writes");
    tx.commit();
    outbox.notify_committed(written);
    tokio::time::timeout(Duration::from_secs(30), done(&outbox, 2)).await.expect("what is due has a turn");
    assert_eq!((early.times().len(), late.times().len()), (1, 1));
    outbox.shutdown().await;
}

#[tokio::test]
async fn limits_that_cannot_be_are_refused_at_the_start() {
    let seen = Arc::<Seen>::default();
    let handler = || slow("limited", &seen);
    let many = (0..61).map(|number| slow(&format!("limited-{number}"), &seen).concurrency(1)).collect::<Vec<_>>();
    for (handlers, problem) in [
        (vec![handler().concurrency(0)], "setting `handler.concurrency` of the handler of "),
        (vec![handler().rate(Rate::per_second(0))], "setting `handler.rate` of the handler of "),
        (vec![handler().rate(Rate::per_second(1).burst(0))], "setting `handler.rate.burst` of the handler of "),
        (many, "`handlers` has 61 entries with limits of their own"),
    ] {
        let refused: Result<Outbox, StartError> =
            Outbox::single_node(MemoryStore::new()).handlers(handlers).start().await;
        let error = refused.expect_err("it is refused").to_string();
        assert!(error.contains(problem), "{error}");
    }
}
