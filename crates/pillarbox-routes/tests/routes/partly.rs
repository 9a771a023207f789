//! Calls of which a destination takes some messages, and others not at the moment.

#![allow(clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use pillarbox_core::clock::Timestamp;
use pillarbox_core::event::Envelope;
use pillarbox_core::handle::{BatchHandler as _, Delivery, HandlerError, HandlerErrorKind, Outcome};
use pillarbox_core::publisher::{FailureScope, Message, PublishError};
use pillarbox_core::row::NewRow;
use pillarbox_core::store::Row;
use pillarbox_routes::{Breaker, Forwarder, Route, RouteState, Routes};
use pillarbox_testkit::{Answer, MemoryPublisher};
use tokio::time::{Instant, sleep};

const SECOND: Duration = Duration::from_secs(1);

/// An event of a tenant that has come into memory now.
fn event(tenant: &str) -> Delivery {
    let event = Envelope::builder("order.placed").tenant_id(tenant).payload_json("{}").build().expect("valid");
    let row = Row::fresh(&NewRow::new(event), 1, Timestamp::from_micros(0));
    Delivery::detached(row).with_queued_at(Instant::now())
}

fn to(publisher: &MemoryPublisher, target: &str) -> Forwarder {
    Routes::new().route(Route::to(Arc::new(publisher.clone()), target)).build().expect("valid")
}

/// The delay for which an event is deferred without an attempt; `None` for one that is delivered.
fn deferral(answer: &Result<Outcome, HandlerError>) -> Option<Duration> {
    match answer.as_ref().map_err(HandlerError::kind) {
        Ok(Outcome::DeliveredAs(_)) => None,
        Err(HandlerErrorKind::DeferredOnThisNode(delay)) => Some(delay),
        _ => panic!("neither delivered nor deferred: {answer:?}"),
    }
}

/// The events of the tenant `ill` are answered so; all others are taken.
fn answer_ill(publisher: &MemoryPublisher, error: PublishError) {
    publisher.answer_each(move |message: &Message| match message.tenant.as_deref() {
        Some("ill") => Answer::Fail(error.clone()),
        _ => Answer::Confirm,
    });
}

#[tokio::test(start_paused = true)]
async fn events_that_fail_while_others_are_taken_are_deferred_longer_each_time() {
    for scope in [FailureScope::Broker, FailureScope::Target] {
        let publisher = MemoryPublisher::new();
        answer_ill(&publisher, PublishError::unavailable("no leader").limited_to(scope));
        let forwarder = to(&publisher, "x");
        let (start, mut delays) = (Instant::now(), Vec::new());
        while start.elapsed() < 120 * SECOND && delays.len() < 100 {
            let answers = forwarder.handle(vec![event("well"), event("ill")]).await;
            assert_eq!(deferral(&answers[0]), None);
            let delay = deferral(&answers[1]).expect("it is deferred");
            delays.push(delay);
            sleep(delay).await;
            assert!(deferral(&forwarder.handle(vec![event("well")]).await[0]).is_none(), "others go on");
        }
        let Breaker { pause, max_pause, .. } = Breaker::default();
        assert!(delays.iter().all(|delay| *delay >= pause / 2 && *delay <= max_pause), "{delays:?}");
        assert!(delays.len() < 30, "{} calls in two minutes", delays.len());
        assert!(delays.last().is_some_and(|delay| *delay >= max_pause / 2), "{delays:?}");
        assert_eq!(forwarder.status()[0].state, RouteState::Delivering);
    }
}

#[tokio::test(start_paused = true)]
async fn messages_that_wait_for_another_are_deferred_for_a_moment() {
    let publisher = MemoryPublisher::new();
    answer_ill(&publisher, PublishError::unavailable("was not sent").limited_to(FailureScope::Message));
    let forwarder = to(&publisher, "x");
    for _ in 0..5 {
        let answers = forwarder.handle(vec![event("well"), event("ill")]).await;
        assert_eq!(deferral(&answers[1]), Some(Breaker::default().pause));
        sleep(SECOND).await;
    }
}

#[tokio::test(start_paused = true)]
async fn events_refused_by_themselves_return_one_after_the_other() {
    let publisher = MemoryPublisher::new();
    answer_ill(&publisher, PublishError::misconfigured("no queue is bound").limited_to(FailureScope::Target));
    let forwarder = to(&publisher, "x");
    let events = [event("well")].into_iter().chain((0..100).map(|_| event("ill")));
    let answers = forwarder.handle(events.collect()).await;
    let delays: Vec<_> = answers[1..].iter().map(|answer| deferral(answer).expect("it is deferred")).collect();
    let expected: Vec<_> = (0..100).map(|number| 30 * SECOND + number * Duration::from_millis(10)).collect();
    assert_eq!((deferral(&answers[0]), delays), (None, expected));
    assert_eq!(forwarder.status()[0].state, RouteState::Delivering);
}

#[tokio::test(start_paused = true)]
async fn a_destination_that_asks_for_a_pause_is_left_alone_though_it_has_taken_some() {
    for scope in [FailureScope::Broker, FailureScope::Server, FailureScope::Target] {
        let publisher = MemoryPublisher::new();
        answer_ill(&publisher, PublishError::unavailable("429").limited_to(scope).retry_after(7 * SECOND));
        let forwarder = to(&publisher, "x");
        for _ in 0..3 {
            let answers = forwarder.handle(vec![event("well"), event("ill")]).await;
            assert_eq!(deferral(&answers[0]), None);
            let delay = deferral(&answers[1]).expect("it is deferred");
            assert!(delay >= 7 * SECOND && delay < 8 * SECOND, "{delay:?}");
            let calls = publisher.calls().len();
            assert!(deferral(&forwarder.handle(vec![event("well")]).await[0]).is_some_and(|delay| delay >= 7 * SECOND));
            assert_eq!(publisher.calls().len(), calls, "nothing is sent");
            sleep(delay).await;
        }
        publisher.answer(Answer::Confirm);
        assert_eq!(deferral(&forwarder.handle(vec![event("ill")]).await[0]), None);
        assert_eq!(forwarder.status()[0].state, RouteState::Delivering);
    }
}

#[tokio::test(start_paused = true)]
async fn a_target_that_asks_for_a_pause_is_left_alone_though_it_has_taken_some() {
    let (publisher, sent) = (MemoryPublisher::new(), AtomicUsize::new(0));
    publisher.answer_each(move |message| match &*message.target {
        "ill" if sent.fetch_add(1, Ordering::Relaxed) > 0 => {
            Answer::Fail(PublishError::unavailable("429").limited_to(FailureScope::Target).retry_after(7 * SECOND))
        }
        _ => Answer::Confirm,
    });
    let forwarder = to(&publisher, "{tenant_id}");
    let answers = forwarder.handle(vec![event("ill"), event("ill"), event("well")]).await;
    let delays: Vec<_> = answers.iter().map(deferral).collect();
    assert!(matches!(delays[..], [None, Some(delay), None] if delay >= 7 * SECOND), "{delays:?}");
    let answers = forwarder.handle(vec![event("ill"), event("well")]).await;
    assert!(deferral(&answers[0]).is_some() && deferral(&answers[1]).is_none(), "{answers:?}");
    assert_eq!(publisher.calls().len(), 2);
    assert_eq!((forwarder.status()[0].paused_targets, &forwarder.status()[0].state), (1, &RouteState::Delivering));
}

/// More targets than a route remembers fail again and again. None of them is new, so the others go on.
#[tokio::test(start_paused = true)]
async fn more_failing_targets_than_are_remembered_do_not_pause_the_route() {
    const ILL: usize = 1500;
    let publisher = MemoryPublisher::new();
    publisher.answer_each(|message: &Message| match &*message.target {
        "well" => Answer::Confirm,
        _ => Answer::Fail(PublishError::unavailable("busy").limited_to(FailureScope::Target)),
    });
    let forwarder = to(&publisher, "{tenant_id}");
    let Breaker { pause, max_pause, .. } = Breaker::default();
    // At first beside one that is taken, so that new trouble of so many says nothing of the whole.
    for call in 0..ILL / 100 {
        let events = (0..100).map(|number| event(&format!("ill-{}", 100 * call + number)));
        let answers = forwarder.handle(events.chain([event("well")]).collect()).await;
        assert!(answers.iter().rev().skip(1).all(|answer| deferral(answer).is_some_and(|delay| delay >= pause / 2)));
    }
    assert_eq!(forwarder.status()[0].paused_targets, 1000);
    for _ in 0..5 {
        sleep(2 * max_pause).await;
        for number in 0..ILL {
            let answers = forwarder.handle(vec![event(&format!("ill-{number}"))]).await;
            assert!(
                deferral(&answers[0]).is_some_and(|delay| delay >= pause / 2 && delay <= 2 * max_pause),
                "{answers:?}"
            );
        }
        assert_eq!(forwarder.status()[0].state, RouteState::Delivering);
        assert_eq!(deferral(&forwarder.handle(vec![event("well")]).await[0]), None, "it goes on");
    }
    // One that has no place stays away for up to as long as its trouble has lasted, and half of that at least, until it gets one and
    // begins anew.
    let (start, mut delay, mut delays) = (Instant::now(), Duration::ZERO, Vec::new());
    for _ in 0..30 {
        sleep(delay).await;
        let lasted = start.elapsed().clamp(pause, max_pause);
        delay = deferral(&forwarder.handle(vec![event("ill-1400")]).await[0]).expect("it is deferred");
        delays.push((lasted, delay));
    }
    let anew = delays.iter().position(|(lasted, delay)| *delay < *lasted / 2).expect("it gets a place");
    assert!(delays[..anew].iter().all(|(lasted, delay)| delay <= lasted), "{delays:?}");
    assert!(delays[anew].0 == max_pause && delays[anew].1 <= 2 * pause, "{delays:?}");
}
