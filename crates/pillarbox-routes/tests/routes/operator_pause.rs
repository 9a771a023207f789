//! Routes that an operator pauses and resumes.

#![allow(clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

use std::sync::Arc;
use std::time::Duration;

use pillarbox_core::event::Envelope;
use pillarbox_core::publisher::PublishError;
use pillarbox_core::row::Status;
use pillarbox_core::write::insert;
use pillarbox_engine::handlers::{Events, on_batch};
use pillarbox_engine::run::Outbox;
use pillarbox_memory::MemoryStore;
use pillarbox_routes::{Forwarder, Route, RouteState, Routes};
use pillarbox_testkit::{Answer, MemoryPublisher};
use tokio::time::{sleep, timeout};

fn state(forwarder: &Forwarder, route: usize) -> RouteState {
    forwarder.status()[route].state.clone()
}

async fn write(store: &MemoryStore, types: &[&str]) {
    let mut tx = store.begin();
    let events = types.iter().map(|name| Envelope::json(*name, "{}").expect("valid")).collect();
    insert(store, &mut tx, events).await.expect("inserts");
    tx.commit();
}

async fn until(is_so: impl Fn() -> bool) {
    let waiting = async {
        while !is_so() {
            sleep(Duration::from_millis(10)).await;
        }
    };
    timeout(Duration::from_secs(60), waiting).await.expect("it happens");
}

/// Does `work` while paused routes are tried out.
async fn watched(forwarder: &Forwarder, work: impl Future<Output = ()>) {
    tokio::select! {
        () = work => {}
        () = forwarder.watch() => panic!("it ends"),
    }
}

#[tokio::test(start_paused = true)]
async fn a_route_that_is_paused_by_operator_sends_nothing_until_it_is_resumed() {
    let (one, other) = (MemoryPublisher::new(), MemoryPublisher::new());
    let to =
        |publisher: &MemoryPublisher, name| Route::to(Arc::new(publisher.clone()), "there").named(name).types([name]);
    let dropped = Route::drop().named("dropped").types(["noise"]);
    let routes = Routes::new().route(to(&one, "one")).route(to(&other, "other")).route(dropped);
    let forwarder = routes.build().expect("valid");
    assert!(!forwarder.pause("nowhere", "") && !forwarder.pause("dropped", ""), "they send nothing");
    assert!(!forwarder.resume("one"), "it is not paused");
    assert!(forwarder.pause("one", "by anna"));
    assert_eq!(state(&forwarder, 0), RouteState::PausedByOperator { reason: "by anna".to_owned(), problem: None });
    let status = serde_json::to_value(&forwarder.status()[0]).expect("JSON");
    assert_eq!((&status["state"], &status["reason"]), (&"paused_by_operator".into(), &"by anna".into()), "{status}");
    assert!(!forwarder.probe_now("one"), "it is paused by an operator");

    let store = MemoryStore::new();
    write(&store, &["one", "other", "one"]).await;
    let handler = on_batch(Events::Others, 16, forwarder.clone()).for_any_name();
    let outbox = Outbox::single_node(store.clone()).type_pause(forwarder.type_pause()).handler(handler);
    let outbox = outbox.start().await.expect("starts");
    let work = async {
        until(|| other.calls().len() == 1).await;
        write(&store, &["one"]).await;
        sleep(Duration::from_secs(120)).await;
        assert!(one.calls().is_empty(), "nothing was sent, however long it takes");
        let waiting = store.inspect().rows().into_iter().filter(|row| row.event.event_type() == "one");
        assert!(waiting.inspect(|row| assert_eq!((row.status, row.attempts), (Status::New, 0))).count() == 3);

        assert!(forwarder.resume("one") && !forwarder.resume("one"));
        until(|| one.calls().iter().map(Vec::len).sum::<usize>() == 3).await;
        assert_eq!(state(&forwarder, 0), RouteState::Delivering);
    };
    watched(&forwarder, work).await;
    outbox.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn routes_that_were_away_before_a_pause_are_probed_once_resumed() {
    let ill = MemoryPublisher::new();
    let route = Route::to(Arc::new(ill.clone()), "there").named("ill");
    let forwarder = Routes::new().route(route).build().expect("valid");
    ill.answer(Answer::Fail(PublishError::unavailable("connection refused")));
    forwarder.begin(Duration::from_secs(1)).await.expect("nobody refuses anything");
    assert!(matches!(state(&forwarder, 0), RouteState::Paused { .. }));
    assert!(forwarder.pause("ill", "by anna"));
    let RouteState::PausedByOperator { problem: Some(problem), .. } = state(&forwarder, 0) else {
        panic!("what it said is told")
    };
    assert!(problem.contains("connection refused"), "{problem}");
    ill.answer(Answer::Confirm);
    let work = async {
        sleep(Duration::from_secs(300)).await;
        assert!(matches!(state(&forwarder, 0), RouteState::PausedByOperator { .. }), "nothing tries it out");
        assert!(forwarder.resume("ill"));
        assert!(matches!(state(&forwarder, 0), RouteState::Paused { .. }), "its destination was away");
        until(|| state(&forwarder, 0) == RouteState::Delivering).await;
    };
    watched(&forwarder, work).await;
}

#[tokio::test(start_paused = true)]
async fn a_route_that_is_paused_by_operator_stays_so_when_it_is_configured_anew() {
    let (one, other) = (MemoryPublisher::new(), MemoryPublisher::new());
    let to = |publisher: &MemoryPublisher, name: &str, target: &str| {
        Route::to(Arc::new(publisher.clone()), target).named(name).types([name])
    };
    let first = Routes::new().route(to(&one, "one", "before")).route(to(&other, "other", "before"));
    let forwarder = first.build().expect("valid");
    assert!(forwarder.pause("one", "by anna") && forwarder.pause("other", "by anna"));
    let store = MemoryStore::new();
    write(&store, &["one"]).await;
    let handler = on_batch(Events::Others, 16, forwarder.clone()).for_any_name();
    let outbox = Outbox::single_node(store.clone()).type_pause(forwarder.type_pause()).handler(handler);
    let outbox = outbox.start().await.expect("starts");
    let work = async {
        sleep(Duration::from_secs(10)).await;
        let second = Routes::new().route(to(&one, "one", "after")).route(to(&other, "new", "after"));
        forwarder.replace(second, |_| false).expect("valid");
        assert_eq!(state(&forwarder, 0), RouteState::PausedByOperator { reason: "by anna".to_owned(), problem: None });
        assert_eq!(state(&forwarder, 1), RouteState::Delivering, "it has another name");
        write(&store, &["new"]).await;
        until(|| other.calls().len() == 1).await;
        sleep(Duration::from_secs(60)).await;
        assert!(one.calls().is_empty());
        assert!(forwarder.resume("one"));
        until(|| one.calls().len() == 1).await;
        assert_eq!(&*one.published()[0].target, "after");
    };
    watched(&forwarder, work).await;
    outbox.shutdown().await;
}
