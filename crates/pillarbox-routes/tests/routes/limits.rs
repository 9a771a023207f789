//! Batches that wait for the limits of a route: what waits costs nothing, waits for a bounded time, and is not sent once its route or its
//! target is paused.

#![allow(clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use pillarbox_core::clock::{Clock, Timestamp};
use pillarbox_core::event::Envelope;
use pillarbox_core::handle::{BatchHandler as _, Delivery, HandlerError, HandlerErrorKind, Outcome};
use pillarbox_core::publisher::{FailureScope, PublishError};
use pillarbox_core::row::{NewRow, Status};
use pillarbox_core::store::Row;
use pillarbox_core::write::insert;
use pillarbox_engine::handlers::{Events, on_batch};
use pillarbox_engine::run::Outbox;
use pillarbox_memory::MemoryStore;
use pillarbox_routes::{Forwarder, Route, RouteState, Routes};
use pillarbox_testkit::{Answer, MemoryPublisher};
use tokio::time::{Instant, sleep, timeout};

const SECOND: Duration = Duration::from_secs(1);

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// An event of a tenant that has come into memory now.
fn event(tenant: &str) -> Delivery {
    let event = Envelope::builder("order.placed").tenant_id(tenant).payload_json("{}").build().expect("valid");
    let row = Row::fresh(&NewRow::new(event), 1, Timestamp::from_micros(0));
    Delivery::detached(row).with_queued_at(Instant::now())
}

fn events(count: usize) -> Vec<Delivery> {
    (0..count).map(|_| event("acme")).collect()
}

/// The only route, named `all`, to `target`.
fn alone(publisher: &MemoryPublisher, target: &str, limits: impl FnOnce(Route) -> Route) -> Forwarder {
    let route = Route::to(Arc::new(publisher.clone()), target).named("all");
    Routes::new().route(limits(route)).build().expect("valid")
}

/// The delays for which events are deferred without an attempt.
fn deferral(answers: &[Result<Outcome, HandlerError>]) -> Vec<Duration> {
    let delay = |answer: &Result<Outcome, HandlerError>| match answer.as_ref().map_err(HandlerError::kind) {
        Err(HandlerErrorKind::DeferredOnThisNode(delay)) => delay,
        _ => panic!("it is not deferred: {answer:?}"),
    };
    answers.iter().map(delay).collect()
}

fn are_sent(answers: &[Result<Outcome, HandlerError>]) -> bool {
    answers.iter().all(|answer| matches!(answer, Ok(Outcome::DeliveredAs(_))))
}

#[tokio::test(start_paused = true)]
async fn a_call_that_is_dropped_while_it_waits_takes_nothing_of_the_rate() {
    let publisher = MemoryPublisher::new();
    let forwarder = alone(&publisher, "x", |route| route.rate(10));
    assert!(are_sent(&forwarder.handle(events(10)).await));
    sleep(ms(1)).await;
    let dropped = (0..20).map(|_| timeout(ms(500), forwarder.handle(events(10))));
    assert!(join_all(dropped).await.iter().all(Result::is_err), "their turn comes after a second");
    sleep(ms(499)).await;
    let answers = timeout(ms(10), forwarder.handle(events(10))).await.expect("it is its turn");
    assert!(are_sent(&answers));
    assert_eq!(publisher.calls().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn the_only_route_waits_for_its_rate_no_longer_than_one_of_several() {
    let publisher = MemoryPublisher::new();
    let forwarder = alone(&publisher, "x", |route| route.rate(5));
    assert!(are_sent(&forwarder.handle(events(256)).await), "more than a second's messages in one batch");
    sleep(ms(1)).await;
    let began = Instant::now();
    let delays = deferral(&forwarder.handle(events(256)).await);
    assert!(began.elapsed() <= SECOND, "{:?}", began.elapsed());
    let (first, last) = (ms(51_199), ms(51_199).mul_f64(1.1));
    assert!(
        delays.iter().all(|delay| (first..=last).contains(delay)),
        "until the earlier ones are paid for: {delays:?}"
    );
    sleep(ms(50_700)).await;
    let began = Instant::now();
    assert!(are_sent(&forwarder.handle(events(256)).await));
    assert_eq!(began.elapsed(), ms(499), "it waits for the rest of the time, and never starves");
}

#[tokio::test(start_paused = true)]
async fn the_only_route_waits_for_its_concurrency_no_longer_than_one_of_several() {
    let publisher = MemoryPublisher::new();
    publisher.answer(Answer::Slow(5 * SECOND));
    let forwarder = alone(&publisher, "x", |route| route.concurrency(1));
    let second = async {
        sleep(ms(1)).await;
        let began = Instant::now();
        deferral(&forwarder.handle(events(1)).await);
        assert_eq!(began.elapsed(), SECOND);
    };
    let (first, ()) = tokio::join!(forwarder.handle(events(1)), second);
    assert!(are_sent(&first));
}

/// The wall's clock as tokio's, so that a paused runtime drives the store's due times as well.
#[derive(Debug, Clone, Copy)]
struct RuntimeClock(Instant);

impl Clock for RuntimeClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_micros(1_700_000_000_000_000).plus(self.0.elapsed())
    }
}

/// More batches wait than could be sent within the time that a call may take.
#[tokio::test(start_paused = true)]
async fn a_rate_is_kept_and_counts_no_attempt_however_many_wait_for_it() {
    const EVENTS: usize = 3200;
    const RATE: u32 = 100;
    let publisher = MemoryPublisher::new();
    let forwarder = alone(&publisher, "x", |route| route.rate(RATE));
    let store = MemoryStore::with_clock(Arc::new(RuntimeClock(Instant::now())));
    let mut tx = store.begin();
    let events = (0..EVENTS).map(|_| Envelope::json("order.placed", "{}").expect("valid"));
    insert(&store, &mut tx, events.collect::<Vec<_>>()).await.expect("inserts");
    tx.commit();
    let handler = on_batch(Events::Others, 256, forwarder.clone()).for_any_name();
    let outbox = Outbox::single_node(store.clone()).workers(16).handler_timeout(3 * SECOND);
    let began = Instant::now();
    let outbox = outbox.type_pause(forwarder.type_pause()).handler(handler).start().await.expect("starts");
    timeout(600 * SECOND, publisher.wait_for_published(EVENTS)).await.expect("all are sent");
    // The last batch has been sent when those before it are paid for.
    let (took, last) = (began.elapsed(), publisher.calls().last().map_or(0, Vec::len));
    outbox.shutdown().await;
    let paid = Duration::from_secs_f64((EVENTS - last) as f64 / f64::from(RATE));
    assert!((paid..paid.mul_f64(1.02)).contains(&took), "{took:?} for what takes {paid:?}");
    let rows = store.inspect().rows();
    assert!(rows.iter().all(|row| row.status == Status::Done && row.attempts == 0), "no attempt has failed");
}

#[tokio::test(start_paused = true)]
async fn a_batch_is_not_sent_if_an_operator_pauses_its_route_while_it_waits() {
    let publisher = MemoryPublisher::new();
    let forwarder = alone(&publisher, "x", |route| route.rate(2));
    assert!(are_sent(&forwarder.handle(events(2)).await));
    sleep(ms(1)).await;
    let paused = async {
        sleep(ms(500)).await;
        assert!(forwarder.pause("all", "by anna"));
    };
    let (answers, ()) = tokio::join!(forwarder.handle(events(2)), paused);
    assert!(deferral(&answers).iter().all(|delay| (5 * SECOND..6 * SECOND).contains(delay)));
    assert!(answers[0].as_ref().is_err_and(|error| error.to_string().contains("is paused: by anna")), "{answers:?}");
    assert_eq!(publisher.calls().len(), 1);
    assert!(forwarder.resume("all"));
    sleep(ms(1)).await;
    assert!(are_sent(&timeout(ms(1), forwarder.handle(events(2))).await.expect("nothing was taken of the rate")));
}

#[tokio::test(start_paused = true)]
async fn a_batch_is_not_sent_if_its_route_is_paused_by_the_call_that_it_waits_for() {
    let publisher = MemoryPublisher::new();
    publisher.answer(Answer::Silence);
    let forwarder = alone(&publisher, "x", |route| route.concurrency(1));
    let waiting = async {
        sleep(ms(1)).await;
        deferral(&forwarder.handle(events(3)).await)
    };
    let away = async {
        sleep(ms(500)).await;
        publisher.answer(Answer::Fail(PublishError::unavailable("connection refused")));
    };
    let (first, delays, ()) = tokio::join!(forwarder.handle(events(1)), waiting, away);
    assert_eq!((deferral(&first).len(), delays.len()), (1, 3));
    assert!(delays.iter().all(|delay| *delay >= ms(499)), "until the end of the pause: {delays:?}");
    assert_eq!(publisher.calls().len(), 1);
    let RouteState::Paused { problem, .. } = &forwarder.status()[0].state else { panic!("it is paused") };
    assert_eq!(problem, "connection refused");
}

#[tokio::test(start_paused = true)]
async fn an_event_is_not_sent_if_its_target_is_paused_while_its_batch_waits() {
    let publisher = MemoryPublisher::new();
    publisher.answer(Answer::Silence);
    let forwarder = alone(&publisher, "{tenant_id}", |route| route.concurrency(1));
    let waiting = async {
        sleep(ms(1)).await;
        forwarder.handle(vec![event("ill"), event("well"), event("ill")]).await
    };
    let busy = PublishError::unavailable("busy").retry_after(60 * SECOND).limited_to(FailureScope::Target);
    let answered = async {
        sleep(ms(500)).await;
        publisher.answer_each(move |message| match &*message.target {
            "ill" => Answer::Fail(busy.clone()),
            _ => Answer::Confirm,
        });
    };
    let (first, answers, ()) = tokio::join!(forwarder.handle(vec![event("ill")]), waiting, answered);
    deferral(&first);
    let [one, well, other] = &answers[..] else { panic!("three answers: {answers:?}") };
    assert!(are_sent(std::slice::from_ref(well)), "{answers:?}");
    for ill in [one, other] {
        assert!(deferral(std::slice::from_ref(ill))[0] >= 60 * SECOND, "{ill:?}");
        assert!(
            ill.as_ref().is_err_and(|error| error.to_string().contains("has paused its target ill: busy")),
            "{ill:?}"
        );
    }
    let calls = publisher.calls();
    let targets: Vec<Vec<&str>> =
        calls.iter().map(|call| call.iter().map(|message| &*message.target).collect()).collect();
    assert_eq!(targets, [["ill"], ["well"]]);
}
