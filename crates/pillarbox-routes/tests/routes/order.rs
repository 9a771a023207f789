//! Order within a key, through a broker that comes and goes.

#![allow(clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use pillarbox_core::event::Envelope;
use pillarbox_core::handle::{BatchHandler, BoxFuture, Delivery, HandlerError, Outcome};
use pillarbox_core::publisher::PublishError;
use pillarbox_core::write::insert;
use pillarbox_engine::handlers::{Events, on_batch};
use pillarbox_engine::maintain::{PauseNote, Pauses};
use pillarbox_engine::run::Outbox;
use pillarbox_memory::MemoryStore;
use pillarbox_routes::{Breaker, Forwarder, Route, RouteState, Routes};
use pillarbox_testkit::{Answer, MemoryPublisher};

/// A broker that is away.
fn away(publisher: &MemoryPublisher) {
    publisher.answer(Answer::Fail(PublishError::unavailable("away")));
}

/// A broker that takes two of three messages.
fn partly_away(publisher: &MemoryPublisher) {
    let sent = AtomicUsize::new(0);
    publisher.answer_each(move |_| match sent.fetch_add(1, Ordering::Relaxed) % 3 {
        0 => Answer::Fail(PublishError::unavailable("away")),
        _ => Answer::Confirm,
    });
}

/// A forwarder that counts the events that it defers since the operator has paused their route.
struct Watched {
    forwarder: Forwarder,
    by_anna: Arc<AtomicUsize>,
}

impl BatchHandler for Watched {
    fn handle(&self, deliveries: Vec<Delivery>) -> BoxFuture<'_, Vec<Result<Outcome, HandlerError>>> {
        Box::pin(async move {
            let answers = self.forwarder.handle(deliveries).await;
            let deferred = answers.iter().filter_map(|answer| answer.as_ref().err());
            let by_anna = deferred.filter(|error| error.to_string().contains("by anna")).count();
            self.by_anna.fetch_add(by_anna, Ordering::Relaxed);
            answers
        })
    }

    fn lane(&self, delivery: &Delivery) -> u64 {
        self.forwarder.lane(delivery)
    }

    fn lanes(&self) -> usize {
        self.forwarder.lanes()
    }

    fn has_type_alone(&self, delivery: &Delivery) -> bool {
        self.forwarder.has_type_alone(delivery)
    }
}

/// The broker of a route with these limits comes and goes, by `go`, and an operator pauses the route now and then if `by_hand`.
async fn keys_stay_in_order(limits: impl FnOnce(Route) -> Route, go: fn(&MemoryPublisher), by_hand: bool) {
    const KEYS: usize = 300;
    const EACH: usize = 8;
    let publisher = MemoryPublisher::new();
    let ms = Duration::from_millis;
    let breaker = Breaker { failures: 5, pause: ms(5), max_pause: ms(20) };
    let route = Route::to(Arc::new(publisher.clone()), "x").named("all").types(["t.*"]).breaker(breaker);
    let route = limits(route);
    let other = Route::to(Arc::new(MemoryPublisher::new()), "x").named("other").types(["u.*"]);
    let forwarder = Routes::new().route(route).route(other).build().expect("valid");
    let store = MemoryStore::new();
    let outbox = Outbox::partitioned(store.clone()).workers(4).poll_interval(ms(5), ms(20));
    let by_anna = Arc::new(AtomicUsize::new(0));
    let watched = Watched { forwarder: forwarder.clone(), by_anna: Arc::clone(&by_anna) };
    let outbox = outbox
        .type_pause(forwarder.type_pause())
        .handler(on_batch(Events::Others, 16, watched).for_any_name())
        .start()
        .await
        .expect("starts");
    let write = async {
        for round in 0..EACH {
            let events = (0..KEYS).map(|key| {
                let event_type = ["t.a", "t.b", "t.c"][(round * 7 + key) % 3];
                let builder = Envelope::builder(event_type).aggregate("order", key.to_string());
                builder.payload_json(round.to_string()).build().expect("valid")
            });
            let mut tx = store.begin();
            insert(&store, &mut tx, events.collect::<Vec<_>>()).await.expect("inserts");
            tx.commit();
            tokio::time::sleep(ms(40)).await;
        }
    };
    let flap = async {
        for step in 0..60_u64 {
            if by_hand && step % 20 == 10 {
                // While a call has no answer, others wait for their turn.
                while forwarder.status()[0].state != RouteState::Delivering {
                    tokio::time::sleep(ms(1)).await;
                }
                publisher.answer(Answer::Silence);
                tokio::time::sleep(ms(20)).await;
                assert!(forwarder.pause("all", "by anna"));
                publisher.answer(Answer::Confirm);
                tokio::time::sleep(ms(20)).await;
                assert!(forwarder.resume("all"));
            }
            go(&publisher);
            tokio::time::sleep(ms(3 + step % 11)).await;
            publisher.answer(Answer::Confirm);
            tokio::time::sleep(ms(1 + step % 5)).await;
        }
    };
    tokio::join!(write, flap);
    publisher.answer(Answer::Confirm);
    tokio::time::timeout(Duration::from_secs(30), publisher.wait_for_published(KEYS * EACH)).await.expect("all arrive");
    outbox.shutdown().await;
    let (sent, published) = (publisher.calls().iter().map(Vec::len).sum::<usize>(), publisher.published().len());
    assert!(sent > published, "the broker was never away from {sent} messages");
    let by_anna = by_anna.load(Ordering::Relaxed);
    assert_eq!(by_anna > 0, by_hand, "{by_anna} events were deferred since an operator had paused the route");
    let mut rounds: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for message in publisher.published() {
        let key = message.key.as_deref().unwrap_or_default().to_owned();
        rounds.entry(key).or_default().push(String::from_utf8_lossy(&message.body).into_owned());
    }
    let wrong: Vec<_> = rounds.iter().filter(|(_, rounds)| !rounds.is_sorted()).collect();
    assert!(wrong.is_empty(), "{} of {} keys out of order, such as {:?}", wrong.len(), rounds.len(), wrong.first());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn events_of_a_key_that_take_one_route_stay_in_order_through_pauses() {
    keys_stay_in_order(|route| route, away, false).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn events_of_a_key_stay_in_order_where_calls_are_taken_in_part() {
    keys_stay_in_order(|route| route, partly_away, false).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn events_of_a_key_stay_in_order_where_batches_wait_for_limits_while_their_route_is_paused() {
    keys_stay_in_order(|route| route.concurrency(1).rate(4000), away, true).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_type_that_operators_have_paused_is_sent_by_no_route_until_it_is_resumed() {
    let publisher = MemoryPublisher::new();
    let ms = Duration::from_millis;
    let route = Route::to(Arc::new(publisher.clone()), "x").named("all").types(["t.*"]);
    let other = Route::to(Arc::new(MemoryPublisher::new()), "x").named("other").types(["u.*"]);
    let forwarder = Routes::new().route(route).route(other).build().expect("valid");
    let store = MemoryStore::new();
    Pauses::of(&store).pause_type("t.paused", &PauseNote::new()).await.expect("pauses");
    let event = |number: usize, event_type: &str, key: &str| {
        let builder = Envelope::builder(event_type).key(key).payload_json(number.to_string());
        builder.build().expect("valid")
    };
    let events = [("t.a", "k"), ("t.paused", "k"), ("t.a", "k"), ("t.paused", "j"), ("t.a", "m")];
    let mut tx = store.begin();
    let events = events.into_iter().enumerate().map(|(number, (event_type, key))| event(number, event_type, key));
    insert(&store, &mut tx, events.collect::<Vec<_>>()).await.expect("inserts");
    tx.commit();
    let outbox = Outbox::partitioned(store.clone()).workers(4).poll_interval(ms(5), ms(20));
    let outbox = outbox
        .type_pause(forwarder.type_pause())
        .handler(on_batch(Events::Others, 16, forwarder.clone()).for_any_name())
        .start()
        .await
        .expect("starts");
    let sent = || {
        let published = publisher.published();
        let numbers = published.iter().map(|message| String::from_utf8_lossy(&message.body).into_owned());
        numbers.collect::<Vec<_>>()
    };
    let within = async |count| {
        let published = publisher.wait_for_published(count);
        tokio::time::timeout(Duration::from_secs(20), published).await.expect("they arrive");
    };
    within(2).await;
    while outbox.stats().done < 2 {
        tokio::time::sleep(ms(1)).await;
    }
    let mut first = sent();
    first.sort();
    assert_eq!(first, ["0", "4"], "the first of its key, and another key");
    assert!(outbox.pauses().resume_type("t.paused").await.expect("resumes"));
    within(5).await;
    outbox.shutdown().await;
    let of_key: Vec<String> = sent().into_iter().filter(|number| number.as_str() < "3").collect();
    assert_eq!((of_key, sent().len()), (vec!["0".to_owned(), "1".to_owned(), "2".to_owned()], 5));
}
