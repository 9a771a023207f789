//! Handlers of many events at once: every delivery has its own verdict.

#![allow(clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use pillarbox_core::event::Envelope;
use pillarbox_core::handle::{BatchHandler, BoxFuture, Delivery, Failure, HandlerError, Outcome};
use pillarbox_core::retry::ExponentialBackoff;
use pillarbox_core::store::Admin as _;
use pillarbox_core::write::insert;
use pillarbox_engine::handlers::{Events, on_batch};
use pillarbox_engine::run::{Outbox, SingleNode};
use pillarbox_memory::MemoryStore;

type Answer = Result<Outcome, HandlerError>;

/// A store with a backlog of `n` events whose payloads are their numbers.
async fn backlog(n: usize) -> MemoryStore {
    let store = MemoryStore::new();
    let mut tx = store.begin();
    let events = (0..n).map(|i| Envelope::json("counted", i.to_string()).expect("valid")).collect();
    insert(&store, &mut tx, events).await.expect("inserts");
    tx.commit();
    store
}

fn outbox(store: &MemoryStore) -> SingleNode {
    let short = Duration::from_millis(1);
    let backoff = ExponentialBackoff::new(short, short).expect("valid");
    Outbox::single_node(store.clone()).workers(1).max_attempts(2).retry_policy(backoff)
}

/// Waits until nothing is pending, at most ten seconds.
async fn drained(outbox: &Outbox, events: u64) {
    let drained = async {
        while outbox.stats().done + outbox.stats().dead < events {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), drained).await.expect("the backlog is drained");
}

#[tokio::test]
async fn waiting_events_come_at_once_up_to_the_limit_and_each_only_once() {
    let store = backlog(95).await;
    let batches: Arc<Mutex<Vec<Vec<u32>>>> = Arc::default();
    let seen = Arc::clone(&batches);
    let handler = move |deliveries: Vec<Delivery>| {
        let numbers = deliveries.iter().map(|delivery| delivery.parse().expect("a number")).collect();
        seen.lock().expect("not poisoned").push(numbers);
        async move { vec![(); deliveries.len()] }
    };
    let outbox = outbox(&store).handler(on_batch("counted", 10, handler)).start().await.expect("starts");
    drained(&outbox, 95).await;
    outbox.shutdown().await;
    let batches = batches.lock().expect("not poisoned");
    assert_eq!(batches.concat(), (0..95).collect::<Vec<u32>>(), "every event once, here even in order");
    assert_eq!(batches.iter().map(Vec::len).collect::<Vec<_>>(), [10, 10, 10, 10, 10, 10, 10, 10, 10, 5]);
}

#[tokio::test]
async fn each_delivery_has_its_own_verdict() {
    let store = backlog(5).await;
    let calls: Arc<Mutex<HashMap<u32, u32>>> = Arc::default();
    let seen = Arc::clone(&calls);
    // 0 is done, 1 fails once, 2 is given up, 3 panics the batch the first time, 4 gets no answer the first time.
    let handler = move |deliveries: Vec<Delivery>| {
        let seen = Arc::clone(&seen);
        async move {
            let mut answers: Vec<Answer> = Vec::new();
            for delivery in &deliveries {
                let number: u32 = delivery.parse().expect("a number");
                *seen.lock().expect("not poisoned").entry(number).or_default() += 1;
                match number {
                    1 if delivery.attempt() == 1 => answers.push(Err(HandlerError::retryable("once"))),
                    2 => answers.push(Ok(Outcome::Dead("never".to_owned()))),
                    3 if delivery.attempt() == 1 => panic!("the third"),
                    4 if delivery.attempt() == 1 => {}
                    _ => answers.push(Ok(Outcome::Done)),
                }
            }
            answers
        }
    };
    let outbox = outbox(&store).handler(on_batch("counted", 3, handler)).start().await.expect("starts");
    drained(&outbox, 5).await;
    outbox.shutdown().await;
    let counts = store.counts().await.expect("counts");
    assert_eq!((counts.done, counts.dead), (4, 1));
    let calls = calls.lock().expect("not poisoned");
    // The panic of 3 comes before 4 is seen, and fails both.
    assert_eq!([0, 1, 2, 3, 4].map(|number| calls[&number]), [1, 2, 1, 2, 1]);
    assert_eq!(outbox.stats().retried, 3);
}

/// A fallback takes its time, and the end of the outbox cuts it short: what was handled in the same batch is recorded all the same.
#[tokio::test]
async fn handled_events_are_recorded_though_the_fallback_of_another_never_ends() {
    let store = backlog(2).await;
    let called = Arc::new(tokio::sync::Notify::new());
    let begun = Arc::clone(&called);
    let first_is_hopeless = |deliveries: Vec<Delivery>| async move {
        let answer = |delivery: Delivery| match delivery.parse::<u32>() {
            Ok(0) => Outcome::Dead("hopeless".to_owned()),
            _ => Outcome::Done,
        };
        deliveries.into_iter().map(answer).map(Answer::Ok).collect::<Vec<_>>()
    };
    let never_ends = move |_: Delivery, _: Failure| {
        begun.notify_one();
        std::future::pending::<Outcome>()
    };
    let outbox = outbox(&store).drain_timeout(Duration::from_millis(100));
    let handler = on_batch("counted", 10, first_is_hopeless).fallback(never_ends);
    let outbox = outbox.handler(handler).start().await.expect("starts");
    called.notified().await;
    outbox.shutdown().await;
    let counts = store.counts().await.expect("counts");
    assert_eq!((counts.pending(), counts.done, counts.dead), (1, 1, 0));
}

#[tokio::test]
async fn events_without_an_answer_fail_with_a_reason() {
    let store = backlog(2).await;
    let handler = |_: Vec<Delivery>| async { vec![()] };
    let outbox = outbox(&store).max_attempts(1).handler(on_batch("counted", 2, handler)).start().await.expect("starts");
    drained(&outbox, 2).await;
    outbox.shutdown().await;
    let rows = store.inspect().rows();
    let errors: Vec<_> = rows.iter().map(|row| row.last_error.as_deref()).collect();
    assert_eq!(errors, [None, Some("the batch handler answered for 1 of 2 events")]);
}

#[tokio::test]
async fn a_limit_out_of_range_is_refused_at_start() {
    for max in [0, 10_001] {
        let handler = |_: Vec<Delivery>| async { Vec::<()>::new() };
        let error =
            outbox(&MemoryStore::new()).handler(on_batch("counted", max, handler)).start().await.expect_err("refused");
        assert!(error.to_string().contains("on_batch.max"), "{error}");
    }
}

/// Passes events on: the odd ones and the even ones go to different places.
#[derive(Default)]
struct OddAndEven(Arc<Mutex<Vec<Vec<u32>>>>);

impl BatchHandler for OddAndEven {
    fn handle(&self, deliveries: Vec<Delivery>) -> BoxFuture<'_, Vec<Answer>> {
        let numbers = deliveries.iter().map(|delivery| delivery.parse().expect("a number")).collect();
        self.0.lock().expect("not poisoned").push(numbers);
        Box::pin(async move { deliveries.iter().map(|_| Ok(Outcome::Done)).collect() })
    }

    fn lane(&self, delivery: &Delivery) -> u64 {
        delivery.parse::<u64>().expect("a number") % 2
    }
}

#[tokio::test]
async fn events_of_different_groups_are_not_mixed_and_keep_their_order() {
    let store = backlog(40).await;
    let handler = OddAndEven::default();
    let batches = Arc::clone(&handler.0);
    let outbox =
        outbox(&store).handler(on_batch(Events::Others, 8, handler).for_any_name()).start().await.expect("starts");
    drained(&outbox, 40).await;
    outbox.shutdown().await;
    let batches = batches.lock().expect("not poisoned");
    assert!(batches.iter().all(|batch| batch.iter().all(|number| number % 2 == batch[0] % 2)), "{batches:?}");
    let of = |rest: u32| batches.concat().into_iter().filter(|number| number % 2 == rest).collect::<Vec<_>>();
    assert_eq!(of(0), (0..40).step_by(2).collect::<Vec<_>>());
    assert_eq!(of(1), (1..40).step_by(2).collect::<Vec<_>>());
    assert_eq!(
        batches.iter().map(Vec::len).collect::<Vec<_>>(),
        [8, 8, 8, 8, 4, 4],
        "whole batches, though mixed in the table"
    );
}

#[tokio::test]
async fn deferred_events_count_no_attempt_and_say_why() {
    let store = backlog(1).await;
    let calls = Arc::new(Mutex::new(0));
    let seen = Arc::clone(&calls);
    let handler = move |deliveries: Vec<Delivery>| {
        let mut calls = seen.lock().expect("not poisoned");
        *calls += 1;
        let answer = if *calls < 5 {
            Err(HandlerError::deferred(Duration::from_millis(1), "the broker is away"))
        } else {
            assert_eq!(deliveries[0].attempt(), 1);
            Ok(Outcome::Dead("enough".to_owned()))
        };
        async move { vec![answer] }
    };
    let outbox =
        outbox(&store).handler(on_batch(Events::Others, 8, handler).for_any_name()).start().await.expect("starts");
    drained(&outbox, 1).await;
    outbox.shutdown().await;
    let rows = store.inspect().rows();
    assert_eq!((rows[0].attempts, *calls.lock().expect("not poisoned")), (0, 5), "more than max_attempts, which is 2");
}

/// Its code that tells places apart panics for every other event.
struct PanickingLanes(Arc<Mutex<Vec<u32>>>);

impl BatchHandler for PanickingLanes {
    fn handle(&self, deliveries: Vec<Delivery>) -> BoxFuture<'_, Vec<Answer>> {
        let numbers = deliveries.iter().map(|delivery| delivery.parse::<u32>().expect("a number"));
        self.0.lock().expect("not poisoned").extend(numbers);
        Box::pin(async move {
            // So slow that the reader finds the share of its places full.
            tokio::time::sleep(Duration::from_millis(20)).await;
            deliveries.iter().map(|_| Ok(Outcome::Done)).collect()
        })
    }

    fn lane(&self, delivery: &Delivery) -> u64 {
        let number: u64 = delivery.parse().expect("a number");
        assert!(number.is_multiple_of(2), "a lane of the test's panics");
        0
    }

    fn lanes(&self) -> usize {
        2
    }

    fn has_type_alone(&self, _delivery: &Delivery) -> bool {
        panic!("a question of the test's panics")
    }
}

#[tokio::test]
async fn code_that_tells_places_apart_and_panics_costs_no_event() {
    let store = backlog(400).await;
    let handled = Arc::new(Mutex::new(Vec::new()));
    let handler = PanickingLanes(Arc::clone(&handled));
    let outbox = outbox(&store).workers(2).cold_capacity(40).handler(on_batch("counted", 4, handler));
    let outbox = outbox.start().await.expect("starts");
    drained(&outbox, 400).await;
    outbox.shutdown().await;
    let mut handled = handled.lock().expect("not poisoned").clone();
    handled.sort_unstable();
    assert_eq!(handled, (0..400).collect::<Vec<u32>>());
}
