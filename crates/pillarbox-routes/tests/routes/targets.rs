//! Targets that depend on the event: trouble of one is no trouble of the others.

#![allow(clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

use std::sync::Arc;
use std::time::Duration;

use pillarbox_core::event::Envelope;
use pillarbox_core::publisher::{FailureScope, PublishError, PublisherInfo};
use pillarbox_core::row::Status;
use pillarbox_core::write::insert;
use pillarbox_engine::handlers::{Events, on_batch};
use pillarbox_engine::run::Outbox;
use pillarbox_memory::{MemoryRow, MemoryStore};
use pillarbox_routes::{Breaker, Forwarder, Route, RouteState, RouteStatus, Routes};
use pillarbox_testkit::{Answer, MemoryPublisher};
use tokio::time::{sleep, timeout};

use crate::described::Described;

const LONG: Duration = Duration::from_secs(60);
const AN_HOUR: Duration = Duration::from_secs(3600);

fn event(tenant: &str, key: &str) -> Envelope {
    let builder = Envelope::builder("order.placed").aggregate("order", key).tenant_id(tenant);
    builder.payload_json("{}").build().expect("valid")
}

async fn write(store: &MemoryStore, events: Vec<Envelope>) {
    let mut tx = store.begin();
    insert(store, &mut tx, events).await.expect("inserts");
    tx.commit();
}

/// A route whose target is the event's tenant.
fn by_tenant(publisher: &MemoryPublisher, breaker: Breaker) -> Forwarder {
    let route = Route::to(Arc::new(publisher.clone()), "{tenant_id}").named("hooks").breaker(breaker);
    Routes::new().route(route).build().expect("valid")
}

async fn done(store: &MemoryStore, rows: usize) {
    let reached = async {
        while store.inspect().rows().iter().filter(|row| row.status == Status::Done).count() < rows {
            sleep(Duration::from_millis(2)).await;
        }
    };
    timeout(LONG, reached).await.unwrap_or_else(|_| panic!("{rows} rows are not done: {:?}", states(store)));
}

fn states(store: &MemoryStore) -> Vec<(Option<String>, Status, Option<String>)> {
    let row = |row: &MemoryRow| (row.event.tenant_id().map(str::to_owned), row.status, row.last_error.clone());
    store.inspect().rows().iter().map(row).collect()
}

fn of<'a>(rows: &'a [MemoryRow], tenant: &str) -> Vec<&'a MemoryRow> {
    rows.iter().filter(|row| row.event.tenant_id() == Some(tenant)).collect()
}

fn status(forwarder: &Forwarder) -> RouteStatus {
    forwarder.status().remove(0)
}

fn busy() -> PublishError {
    PublishError::unavailable("busy").retry_after(24 * AN_HOUR).limited_to(FailureScope::Target)
}

/// Runs an outbox of which one target is busy, and returns the rows at its end.
async fn one_is_busy_in(outbox: impl AsyncFnOnce(MemoryStore, &Forwarder) -> Outbox) -> Vec<MemoryRow> {
    let publisher = MemoryPublisher::new();
    publisher.answer_each(|message| match &*message.target {
        "ill" => Answer::Fail(busy()),
        _ => Answer::Confirm,
    });
    let forwarder = by_tenant(&publisher, Breaker::default());
    let store = MemoryStore::new();
    // Those that cannot go stand before the others, and alone in the first calls.
    write(&store, (0..100).map(|n| event("ill", &format!("i-{n}"))).collect()).await;
    let outbox = outbox(store.clone(), &forwarder).await;
    publisher.wait_for_calls(1).await;
    write(&store, (0..100).map(|n| event("well", &format!("w-{n}"))).collect()).await;
    done(&store, 100).await;
    write(&store, vec![event("ill", "late"), event("well", "late")]).await;
    // The second has the key of the first, which waits for an hour; another key of it does not wait.
    write(&store, vec![event("well", "other")]).await;
    timeout(LONG, publisher.wait_for_published(101)).await.expect("another key goes on");
    let status = status(&forwarder);
    assert_eq!((&status.state, status.paused_targets), (&RouteState::Delivering, 1), "{status:?}");
    let RouteState::Paused { next_probe: Some(pause), problem } = &status.targets[0].state else {
        panic!("{status:?}")
    };
    assert!(*pause <= AN_HOUR && *pause > AN_HOUR / 2 && problem == "busy", "an hour at most: {status:?}");
    outbox.shutdown().await;
    let rows = store.inspect().rows();
    let ill = of(&rows, "ill");
    assert!(ill.iter().all(|row| row.attempts == 0 && row.status != Status::Dead), "no attempt is counted");
    let calls = publisher.calls();
    let sent = calls.iter().flatten().filter(|message| &*message.target == "ill").count();
    assert!(sent <= 100 && calls.iter().filter(|call| call.iter().any(|m| &*m.target == "ill")).count() <= 8);
    assert_eq!(
        publisher.published().iter().filter(|message| &*message.target == "well").count(),
        of(&rows, "well").iter().filter(|row| row.status == Status::Done).count()
    );
    rows
}

/// A tenant may send to the endpoint of another, which refuses what is not signed by its own secret.
#[tokio::test]
async fn a_target_that_refuses_the_credentials_of_one_tenant_takes_the_events_of_another() {
    let publisher = MemoryPublisher::new();
    publisher.answer_each(|message| match message.tenant.as_deref() {
        Some("acme") => Answer::Confirm,
        _ => Answer::Fail(PublishError::misconfigured("answered 401").limited_to(FailureScope::Target)),
    });
    let info = PublisherInfo::new("memory", "memory:").with_credentials_by_tenant();
    let route = Route::to(Arc::new(Described(publisher.clone(), info)), "{event_type}").named("hooks");
    let forwarder = Routes::new().route(route).build().expect("valid");
    let store = MemoryStore::new();
    write(&store, (0..20).map(|n| event("evil", &format!("e-{n}"))).collect()).await;
    let handler = on_batch(Events::Others, 16, forwarder.clone()).for_any_name();
    let outbox = Outbox::single_node(store.clone()).type_pause(forwarder.type_pause()).handler(handler);
    let outbox = outbox.start().await.expect("starts");
    while status(&forwarder).paused_targets == 0 {
        sleep(Duration::from_millis(2)).await;
    }
    let RouteState::Delivering = status(&forwarder).state else { panic!("{:?}", status(&forwarder)) };
    assert_eq!(status(&forwarder).targets[0].target, "order.placed for tenant `evil`");
    write(&store, (0..20).map(|n| event("acme", &format!("a-{n}"))).collect()).await;
    done(&store, 20).await;
    assert_eq!(status(&forwarder).paused_targets, 1, "the other one still is");
    outbox.shutdown().await;
}

#[tokio::test]
async fn a_paused_target_is_tried_by_its_next_event_once_an_operator_asks_for_it() {
    let publisher = MemoryPublisher::new();
    publisher.answer(Answer::Fail(busy()));
    let forwarder = by_tenant(&publisher, Breaker::default());
    let store = MemoryStore::new();
    write(&store, vec![event("ill", "first")]).await;
    let handler = on_batch(Events::Others, 16, forwarder.clone()).for_any_name();
    let outbox = Outbox::single_node(store.clone()).type_pause(forwarder.type_pause()).handler(handler);
    let outbox = outbox.start().await.expect("starts");
    publisher.wait_for_calls(1).await;
    while status(&forwarder).paused_targets == 0 {
        sleep(Duration::from_millis(2)).await;
    }
    let target = status(&forwarder).targets[0].target.clone();
    assert!(!forwarder.probe_target_now("nowhere", &target) && !forwarder.probe_target_now("hooks", "nobody"));
    assert!(forwarder.probe_target_now("hooks", &target));
    assert_eq!(publisher.calls().len(), 1, "an event tries it, not a check");
    publisher.answer(Answer::Confirm);
    write(&store, vec![event("ill", "second")]).await;
    done(&store, 1).await;
    assert_eq!(status(&forwarder).paused_targets, 0);
    assert!(!forwarder.probe_target_now("hooks", &target), "it is paused no more");
    outbox.shutdown().await;
}

#[tokio::test]
async fn a_target_that_asks_for_a_pause_is_paused_alone() {
    one_is_busy_in(async |store, forwarder| {
        let handler = on_batch(Events::Others, 16, forwarder.clone()).for_any_name();
        Outbox::single_node(store)
            .workers(4)
            .type_pause(forwarder.type_pause())
            .handler(handler)
            .start()
            .await
            .expect("starts")
    })
    .await;
}

#[tokio::test]
async fn a_target_that_asks_for_a_pause_is_paused_alone_among_partitions() {
    let rows = one_is_busy_in(async |store, forwarder| {
        let handler = on_batch(Events::Others, 16, forwarder.clone()).for_any_name();
        Outbox::partitioned(store)
            .workers(4)
            .type_pause(forwarder.type_pause())
            .handler(handler)
            .start()
            .await
            .expect("starts")
    })
    .await;
    let status = |key: &str| {
        let row = rows.iter().find(|row| row.event.tenant_id() == Some("well") && row.event.key() == Some(key));
        row.map(|row| row.status)
    };
    assert_eq!((status("late"), status("other")), (Some(Status::New), Some(Status::Done)), "it waits in its key alone");
}

#[tokio::test]
async fn a_target_that_asks_for_a_pause_is_paused_alone_on_several_nodes() {
    one_is_busy_in(async |store, forwarder| {
        let handler = on_batch(Events::Others, 16, forwarder.clone()).for_any_name();
        Outbox::multi_node(store)
            .workers(4)
            .type_pause(forwarder.type_pause())
            .handler(handler)
            .start()
            .await
            .expect("starts")
    })
    .await;
}

/// In mode `partitioned` the events of a key whose target was paused arrive in the order of the table.
#[tokio::test]
async fn keys_keep_their_order_through_the_pause_of_a_target() {
    let publisher = MemoryPublisher::new();
    let away = || Answer::Fail(PublishError::unavailable("away").limited_to(FailureScope::Target));
    publisher.answer_each(move |message| if &*message.target == "ill" { away() } else { Answer::Confirm });
    let pause = Duration::from_millis(50);
    let forwarder = by_tenant(&publisher, Breaker { failures: 5, pause, max_pause: pause });
    let store = MemoryStore::new();
    let events = (0..200).map(|n| event(if n % 2 == 0 { "ill" } else { "well" }, &format!("{}-{}", n % 2, n % 10)));
    write(&store, events.collect()).await;
    let handler = on_batch(Events::Others, 16, forwarder.clone()).for_any_name();
    let outbox = Outbox::partitioned(store.clone()).workers(4).type_pause(forwarder.type_pause()).handler(handler);
    let outbox = outbox.start().await.expect("starts");
    done(&store, 100).await;
    publisher.wait_for_calls(publisher.calls().len() + 3).await;
    publisher.answer(Answer::Confirm);
    done(&store, 200).await;
    outbox.shutdown().await;
    assert_eq!(publisher.published().len(), 200, "each once");
    for key in 0..10 {
        let key = format!("{}-{key}", key % 2);
        let published = publisher.published();
        let sent: Vec<_> =
            published.iter().filter(|message| message.key.as_deref() == Some(&key)).map(|m| m.id.to_string()).collect();
        let rows = store.inspect().rows();
        let written: Vec<_> =
            rows.iter().filter(|row| row.event.key() == Some(&*key)).map(|row| row.event.id().to_string()).collect();
        assert_eq!(sent, written, "{key}");
    }
    assert!(store.inspect().rows().iter().all(|row| row.attempts == 0));
    assert_eq!(status(&forwarder).paused_targets, 0);
}

#[tokio::test]
async fn a_broker_that_is_away_still_pauses_the_whole_route() {
    let publisher = MemoryPublisher::new();
    publisher.answer(Answer::Fail(PublishError::unavailable("connection refused")));
    let pause = Duration::from_millis(200);
    let forwarder = by_tenant(&publisher, Breaker { failures: 5, pause, max_pause: pause });
    let store = MemoryStore::new();
    write(&store, (0..500).map(|n| event(&format!("t-{n}"), "k")).collect()).await;
    let handler = on_batch(Events::Others, 16, forwarder.clone()).for_any_name();
    let outbox = Outbox::single_node(store.clone()).workers(4).type_pause(forwarder.type_pause()).handler(handler);
    let outbox = outbox.start().await.expect("starts");
    publisher.wait_for_calls(5).await;
    let status = status(&forwarder);
    assert!(matches!(status.state, RouteState::Paused { .. }) && status.paused_targets == 0, "{status:?}");
    let untouched = |row: &MemoryRow| row.status == Status::New && row.last_error.is_none();
    assert!(store.inspect().rows().iter().all(untouched), "they stay in the table as they are");
    publisher.answer(Answer::Confirm);
    done(&store, 500).await;
    outbox.shutdown().await;
}

/// Where each event has a target of its own, no target fails twice: after some of them the route is paused.
#[tokio::test]
async fn one_new_target_after_the_other_that_fails_pauses_the_route() {
    let publisher = MemoryPublisher::new();
    publisher.answer(Answer::Fail(PublishError::unavailable("busy").limited_to(FailureScope::Target)));
    let pause = Duration::from_secs(20);
    let forwarder = by_tenant(&publisher, Breaker { failures: 3, pause, max_pause: pause });
    let store = MemoryStore::new();
    write(&store, (0..100).map(|n| event(&format!("t-{n}"), "k")).collect()).await;
    let outbox = Outbox::single_node(store.clone()).workers(1).type_pause(forwarder.type_pause());
    let outbox =
        outbox.handler(on_batch(Events::Others, 1, forwarder.clone()).for_any_name()).start().await.expect("starts");
    let paused = async {
        while status(&forwarder).state == RouteState::Delivering {
            sleep(Duration::from_millis(2)).await;
        }
    };
    timeout(LONG, paused).await.expect("the route is paused");
    assert_eq!(publisher.calls().len(), 3, "after as many as the breaker allows");
    outbox.shutdown().await;
}

/// A tenant that sends to many places that do not answer has no route paused for the others.
#[tokio::test]
async fn many_targets_of_one_tenant_that_fail_do_not_pause_the_route_of_the_others() {
    let publisher = MemoryPublisher::new();
    publisher.answer_each(|message| match message.tenant.as_deref() {
        Some("hostile") => Answer::Fail(PublishError::unavailable("silent").limited_to(FailureScope::Target)),
        _ => Answer::Confirm,
    });
    let pause = Duration::from_secs(1000);
    let route = Route::to(Arc::new(publisher.clone()), "{aggregate_id}").named("hooks");
    let route = route.breaker(Breaker { failures: 3, pause, max_pause: pause });
    let forwarder = Routes::new().route(route).build().expect("valid");
    let store = MemoryStore::new();
    let events = (0..100).map(|n| event("hostile", &format!("t-{n}")));
    write(&store, [event("well", "before")].into_iter().chain(events).chain([event("well", "after")]).collect()).await;
    let outbox = Outbox::single_node(store.clone()).workers(1).type_pause(forwarder.type_pause());
    let outbox =
        outbox.handler(on_batch(Events::Others, 1, forwarder.clone()).for_any_name()).start().await.expect("starts");
    done(&store, 2).await;
    assert_eq!((publisher.calls().len(), status(&forwarder).state), (102, RouteState::Delivering));
    outbox.shutdown().await;
}

/// As when the network is away: few tenants must not keep the route from being paused.
#[tokio::test]
async fn new_targets_of_all_tenants_that_fail_pause_the_route() {
    let publisher = MemoryPublisher::new();
    publisher.answer(Answer::Fail(PublishError::unavailable("silent").limited_to(FailureScope::Target)));
    let pause = Duration::from_secs(1000);
    let route = Route::to(Arc::new(publisher.clone()), "{aggregate_id}").named("hooks");
    let route = route.breaker(Breaker { failures: 5, pause, max_pause: pause });
    let forwarder = Routes::new().route(route).build().expect("valid");
    let store = MemoryStore::new();
    write(&store, (0..100).map(|n| event(if n % 2 == 0 { "one" } else { "other" }, &format!("t-{n}"))).collect()).await;
    let outbox = Outbox::single_node(store.clone()).workers(1).type_pause(forwarder.type_pause());
    let outbox =
        outbox.handler(on_batch(Events::Others, 1, forwarder.clone()).for_any_name()).start().await.expect("starts");
    let paused = async {
        while status(&forwarder).state == RouteState::Delivering {
            sleep(Duration::from_millis(2)).await;
        }
    };
    timeout(LONG, paused).await.expect("the route is paused");
    assert_eq!(publisher.calls().len(), 5);
    outbox.shutdown().await;
}

#[tokio::test]
async fn routes_are_replaced_while_events_are_passed_on() {
    let (one, other) = (MemoryPublisher::new(), MemoryPublisher::new());
    let to = |publisher: &MemoryPublisher, name: &str, target: &str| {
        Route::to(Arc::new(publisher.clone()), target).named(name)
    };
    one.answer(Answer::Fail(PublishError::unavailable("away")));
    let pause = Duration::from_secs(1000);
    let breaker = Breaker { failures: 5, pause, max_pause: pause };
    let ill = || to(&one, "ill", "ill").types(["ill"]).breaker(breaker);
    let forwarder = Routes::new().route(ill()).route(to(&other, "rest", "before")).build().expect("valid");
    let store = MemoryStore::new();
    let typed = |event_type: &str| Envelope::json(event_type, "{}").expect("valid");
    write(&store, vec![typed("ill"), typed("a")]).await;
    let outbox = Outbox::single_node(store.clone())
        .type_pause(forwarder.type_pause())
        .handler(on_batch(Events::Others, 16, forwarder.clone()).for_any_name());
    let outbox = outbox.start().await.expect("starts");
    done(&store, 1).await;
    while forwarder.status()[0].state == RouteState::Delivering {
        sleep(Duration::from_millis(2)).await;
    }

    let refused = forwarder.replace(Routes::new().route(to(&other, "a", "")), |_| false);
    assert!(refused.is_err_and(|error| error.to_string().contains("`to` is empty")));
    assert_eq!(forwarder.status().len(), 2, "the old ones stay");

    let routes = Routes::new().route(ill()).route(to(&other, "rest", "after"));
    forwarder.replace(routes, |name| name == "ill").expect("valid");
    assert!(matches!(forwarder.status()[0].state, RouteState::Paused { .. }), "what is kept stays paused");
    write(&store, vec![typed("a")]).await;
    done(&store, 2).await;
    let targets: Vec<_> = other.published().iter().map(|message| message.target.to_string()).collect();
    assert_eq!(targets, ["before", "after"]);

    // What was held back for a route that is no more takes the new one at once.
    forwarder.replace(Routes::new().route(to(&other, "all", "all")), |_| true).expect("valid");
    done(&store, 3).await;
    outbox.shutdown().await;
    assert_eq!(other.published().len(), 3);
}
