//! The lines of the log about events that their destination refuses each for itself.

#![allow(clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

use std::fmt::{Debug, Write as _};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use pillarbox_core::clock::Timestamp;
use pillarbox_core::event::Envelope;
use pillarbox_core::handle::{BatchHandler as _, Delivery, HandlerError, HandlerErrorKind};
use pillarbox_core::publisher::{FailureScope, PublishError};
use pillarbox_core::row::NewRow;
use pillarbox_core::store::Row;
use pillarbox_routes::{Breaker, Route, RouteState, Routes};
use pillarbox_testkit::{Answer, MemoryPublisher};
use tokio::time::{Instant, advance};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

/// The lines of level WARN and above: `name=value` for each field.
#[derive(Debug, Clone, Default)]
struct Lines(Arc<Mutex<Vec<String>>>);

impl Lines {
    fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.0.lock().expect("not poisoned"))
    }
}

struct Text(String);

impl Visit for Text {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        write!(self.0, "{}={value:?} ", field.name()).expect("text");
    }
}

impl Subscriber for Lines {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() <= Level::WARN
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut text = Text(String::new());
        event.record(&mut text);
        self.0.lock().expect("not poisoned").push(text.0);
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

fn event(id: &str) -> Delivery {
    let event = Envelope::builder("order.placed").id(id).payload_json("{}").build().expect("valid");
    let row = Row::fresh(&NewRow::new(event), 1, Timestamp::from_micros(0));
    Delivery::detached(row).with_queued_at(Instant::now())
}

/// One test, since a process has one log.
#[tokio::test(start_paused = true)]
async fn events_that_are_refused_for_themselves_alone_are_told_of_now_and_then() {
    let lines = Lines::default();
    let _installed = tracing::subscriber::set_default(lines.clone());
    let publisher = MemoryPublisher::new();
    let forwarder =
        Routes::new().route(Route::to(Arc::new(publisher.clone()), "x").named("hooks")).build().expect("valid");
    let refused =
        || PublishError::misconfigured("tenant `acme` has no secret to sign with; add it to `secrets_by_tenant`");
    publisher.answer(Answer::Fail(refused().limited_to(FailureScope::Message)));
    let batch = |ids: &[&str]| ids.iter().map(|id| event(id)).collect::<Vec<_>>();

    let answers = forwarder.handle(batch(&["e-1", "e-2"])).await;
    let delay = answers[0].as_ref().map_err(HandlerError::kind).expect_err("it is refused");
    assert_eq!(delay, HandlerErrorKind::DeferredOnThisNode(Duration::from_secs(30)));
    let told = lines.take();
    let [line] = &told[..] else { panic!("one line: {told:?}") };
    for part in [
        "route=\"hooks\"",
        "publisher=\"memory\"",
        "event_id=\"e-1\"",
        "event_type=\"order.placed\"",
        "events=1 ",
        "tenant `acme` has no secret to sign with; add it to `secrets_by_tenant`",
        "no attempt is counted",
        "pillarbox pending cancel",
    ] {
        assert!(line.contains(part), "{part}: {line}");
    }
    forwarder.handle(batch(&["e-3"])).await;
    assert_eq!(lines.take(), [""; 0], "once in ten seconds");
    advance(Duration::from_secs(30)).await;
    forwarder.handle(batch(&["e-4"])).await;
    let told = lines.take();
    let [line] = &told[..] else { panic!("one line: {told:?}") };
    assert!(line.contains("event_id=\"e-4\"") && line.contains("events=3 "), "{line}");
    assert_eq!(forwarder.status()[0].state, RouteState::Delivering);

    // One that speaks of the target, which takes others in the same call: as RabbitMQ where no queue is bound for the key of one.
    advance(Duration::from_secs(30)).await;
    let unbound = PublishError::misconfigured("no queue is bound").limited_to(FailureScope::Target);
    publisher.answer_each(move |message| match message.id.as_str() {
        "e-well" => Answer::Confirm,
        _ => Answer::Fail(unbound.clone()),
    });
    assert!(forwarder.handle(batch(&["e-well", "e-unbound"])).await[0].is_ok());
    let told = lines.take();
    let [line] = &told[..] else { panic!("one line: {told:?}") };
    assert!(line.contains("event_id=\"e-unbound\"") && line.contains("no queue is bound"), "{line}");

    // One that is unavailable for long, while others are taken: it goes on by itself, and nobody has to give it up.
    let leaderless = PublishError::unavailable("no leader").limited_to(FailureScope::Target);
    publisher.answer_each(move |message| match message.id.as_str() {
        "e-well" => Answer::Confirm,
        _ => Answer::Fail(leaderless.clone()),
    });
    let (start, mut told) = (Instant::now(), Vec::new());
    while told.is_empty() {
        let answers = forwarder.handle(batch(&["e-well", "e-leaderless"])).await;
        let kind = answers[1].as_ref().map_err(HandlerError::kind).expect_err("it is not taken");
        let HandlerErrorKind::DeferredOnThisNode(delay) = kind else { panic!("{kind:?}") };
        told = lines.take();
        advance(delay).await;
        assert!(start.elapsed() < Duration::from_secs(600), "nobody is told");
    }
    let [line] = &told[..] else { panic!("one line: {told:?}") };
    for part in ["event_id=\"e-leaderless\"", "no leader", "deferred for long", "no attempt is counted"] {
        assert!(line.contains(part), "{part}: {line}");
    }
    assert!(!line.contains("for themselves") && !line.contains("cancel"), "{line}");
    assert!(start.elapsed() > Duration::from_secs(10), "not at once");

    // Of many targets that are paused ten are named, and the next line tells how many there were.
    advance(Duration::from_secs(30)).await;
    let many = MemoryPublisher::new();
    many.answer(Answer::Fail(PublishError::unavailable("503").limited_to(FailureScope::Target)));
    let route = Route::to(Arc::new(many.clone()), "{event_id}")
        .named("many")
        .breaker(Breaker { failures: 10_000, ..Breaker::default() });
    let to_each = Routes::new().route(route).build().expect("valid");
    for round in ["a", "b"] {
        for number in 0..100 {
            to_each.handle(batch(&[&format!("{round}-{number}")])).await;
        }
        advance(Duration::from_secs(11)).await;
    }
    let told = lines.take();
    assert_eq!(told.len(), 20, "{told:?}");
    for (place, line) in told.iter().enumerate() {
        let targets = if place == 10 { 91 } else { 1 };
        let id = format!("{}-{}", if place < 10 { "a" } else { "b" }, place % 10);
        for part in ["a target is paused".to_owned(), format!("destination=\"{id}\""), format!("targets={targets} ")] {
            assert!(line.contains(&part), "{part}: {line}");
        }
    }

    // A refusal that pauses the route has a line of its own.
    advance(Duration::from_secs(30)).await;
    publisher.answer(Answer::Fail(refused()));
    forwarder.handle(batch(&["e-5"])).await;
    let told = lines.take();
    let [line] = &told[..] else { panic!("one line: {told:?}") };
    assert!(line.contains("a route is paused") && !line.contains("e-5"), "{line}");
}
