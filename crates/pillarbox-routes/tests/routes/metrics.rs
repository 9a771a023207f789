//! What routes report through the `metrics` facade.

#![allow(clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use metrics_util::debugging::{DebugValue, DebuggingRecorder, Snapshotter};
use pillarbox_core::clock::Timestamp;
use pillarbox_core::event::Envelope;
use pillarbox_core::handle::{BatchHandler as _, Delivery};
use pillarbox_core::publisher::{FailureScope, PublishError};
use pillarbox_core::row::NewRow;
use pillarbox_core::store::Row;
use pillarbox_core::write::insert;
use pillarbox_engine::handlers::{Events, on_batch};
use pillarbox_engine::run::Outbox;
use pillarbox_memory::MemoryStore;
use pillarbox_routes::{Forwarder, Route, Routes, Unrouted};
use pillarbox_testkit::{Answer, Fault, FaultyStore, MemoryPublisher, Operation};
use tokio::time::{Instant, sleep, timeout};

#[test]
fn the_documented_table_is_what_is_reported() {
    let recorder = DebuggingRecorder::new();
    let snapshotter = recorder.snapshotter();
    let sends = Route::to(Arc::new(MemoryPublisher::new()), "x").named("sends").types(["a"]);
    let routes = Routes::new().route(sends).route(Route::drop().named("drops"));
    metrics::with_local_recorder(&recorder, || routes.build()).expect("valid");

    let (mut reported, mut labels) = (BTreeSet::new(), BTreeSet::new());
    for (key, unit, _, value) in snapshotter.snapshot().into_vec() {
        let (_, key) = key.into_parts();
        let kind = match value {
            DebugValue::Counter(_) => "counter",
            DebugValue::Gauge(_) => "gauge",
            DebugValue::Histogram(_) => "histogram",
        };
        let name = key.name().strip_prefix("pillarbox.").unwrap_or_else(|| panic!("{key:?} has no prefix"));
        reported.insert((kind.to_owned(), name.to_owned(), unit.map_or("none", |unit| unit.as_str()).to_owned()));
        labels.insert(key.labels().map(|label| format!("{}={}", label.key(), label.value())).collect::<Vec<_>>());
    }
    let expected = [&[][..], &["route=drops", "publisher=none"], &["route=sends", "publisher=memory"]];
    let expected = expected.map(|labels| labels.iter().map(|label| (*label).to_owned()).collect::<Vec<_>>());
    assert_eq!(labels, expected.into(), "only what no route takes has no route");

    let page = include_str!("../../../../docs/metrics.md");
    let (_, section) = page.split_once("\n## Routes of the relay\n").expect("the section");
    let section = section.split("\n## ").next().expect("its text");
    let rows: Vec<Vec<&str>> = section
        .lines()
        .map(|line| line.split('|').map(|cell| cell.trim().trim_matches('`')).collect::<Vec<_>>())
        .filter(|cells| cells.get(2).is_some_and(|name| name.starts_with("route.")))
        .collect();
    let documented: BTreeSet<_> =
        rows.iter().map(|row| (row[1].to_owned(), row[2].to_owned(), row[3].to_owned())).collect();
    assert_eq!(documented.len(), rows.len(), "no metric is documented twice");
    assert!(rows.iter().all(|row| !row[4].is_empty()), "every metric has a meaning");
    assert_eq!(documented, reported);
}

#[tokio::test]
async fn unrouted_events_are_counted_also_where_they_are_dropped() {
    let recorder = DebuggingRecorder::new();
    let snapshotter = recorder.snapshotter();
    let sends = Route::to(Arc::new(MemoryPublisher::new()), "x").types(["a"]);
    let routes = Routes::new().route(sends).unrouted(Unrouted::Drop);
    let forwarder = metrics::with_local_recorder(&recorder, || routes.build()).expect("valid");
    let store = MemoryStore::new();
    let mut tx = store.begin();
    let events = ["a", "b", "b"].map(|event_type| Envelope::json(event_type, "{}").expect("valid"));
    insert(&store, &mut tx, events.to_vec()).await.expect("inserts");
    tx.commit();
    let outbox = Outbox::single_node(store)
        .handler(on_batch(Events::Others, 16, forwarder).for_any_name())
        .start()
        .await
        .expect("starts");
    while outbox.stats().done < 3 {
        sleep(Duration::from_millis(1)).await;
    }
    outbox.shutdown().await;
    let counted = snapshotter
        .snapshot()
        .into_vec()
        .into_iter()
        .find_map(|(key, _, _, value)| (key.key().name() == "pillarbox.route.unrouted").then_some(value));
    assert_eq!(counted, Some(DebugValue::Counter(2)));
}

/// The values of gauges; the recorder sets all to 0 then, and adds to that.
fn gauges<const N: usize>(snapshotter: &Snapshotter, names: [&str; N]) -> [f64; N] {
    let all = snapshotter.snapshot().into_vec();
    names.map(|name| {
        let found = all.iter().find_map(|(key, _, _, value)| match value {
            DebugValue::Gauge(value) if key.key().name() == name => Some(value.into_inner()),
            _ => None,
        });
        found.unwrap_or_else(|| panic!("there is no {name}"))
    })
}

fn gauge(snapshotter: &Snapshotter, name: &str) -> f64 {
    let [value] = gauges(snapshotter, [name]);
    value
}

/// An event of a tenant that has come into memory now.
fn event(tenant: &str) -> Delivery {
    let event = Envelope::builder("order.placed").tenant_id(tenant).payload_json("{}").build().expect("valid");
    let row = Row::fresh(&NewRow::new(event), 1, Timestamp::from_micros(0));
    Delivery::detached(row).with_queued_at(Instant::now())
}

/// The route `orders`, to a target for each tenant, of which none takes anything.
fn away(publisher: &MemoryPublisher, scope: FailureScope) -> Routes {
    publisher.answer(Answer::Fail(PublishError::unavailable("away").limited_to(scope)));
    Routes::new().route(Route::to(Arc::new(publisher.clone()), "{tenant_id}").named("orders"))
}

const PAUSED: &str = "pillarbox.route.paused";
const TARGETS: &str = "pillarbox.route.targets.paused";

/// A call that is under way when its route is replaced knows nothing of the new one, whose gauges are the same.
#[tokio::test(start_paused = true)]
async fn calls_on_a_replaced_route_do_not_show_in_the_gauges_of_the_new_one() {
    for scope in [FailureScope::Broker, FailureScope::Target] {
        let recorder = DebuggingRecorder::new();
        let snapshotter = recorder.snapshotter();
        let _recording = metrics::set_default_local_recorder(&recorder);
        let (old, new) = (MemoryPublisher::new(), MemoryPublisher::new());
        let forwarder = away(&old, scope).build().expect("valid");
        old.answer(Answer::Silence);
        let call = forwarder.handle(vec![event("a"), event("b")]);
        let replace = async {
            old.wait_for_calls(1).await;
            let routes = Routes::new().route(Route::to(Arc::new(new.clone()), "{tenant_id}").named("orders"));
            forwarder.replace(routes, |_| false).expect("valid");
            old.answer(Answer::Fail(PublishError::unavailable("away").limited_to(scope)));
        };
        let (answers, ()) = tokio::join!(call, replace);
        assert!(answers.iter().all(Result::is_err), "{answers:?}");
        assert_eq!(gauges(&snapshotter, [PAUSED, TARGETS]), [0.0, 0.0], "{scope:?}");
    }
}

/// Sources that have a route of one name share its gauges.
#[tokio::test(start_paused = true)]
async fn gauges_of_routes_of_one_name_add_up_and_lose_what_has_ended() {
    let recorder = DebuggingRecorder::new();
    let _recording = metrics::set_default_local_recorder(&recorder);
    let snapshotter = recorder.snapshotter();
    let publisher = MemoryPublisher::new();
    let two: [Forwarder; 2] = [(); 2].map(|()| away(&publisher, FailureScope::Target).build().expect("valid"));
    for forwarder in &two {
        forwarder.handle(vec![event("a"), event("b")]).await;
    }
    let [first, second] = two;
    assert!(first.pause("orders", "by anna"));
    assert_eq!(gauge(&snapshotter, PAUSED), 1.0, "a route that begins does not hide that another is paused");
    assert!(second.pause("orders", "by anna"));
    drop(first);
    assert_eq!(gauge(&snapshotter, PAUSED), 0.0, "one more, and one less");
    let wrong = Routes::new().route(Route::to(Arc::new(publisher), "{nowhere}").named("orders"));
    assert!(second.replace(wrong, |_| false).is_err());
    assert_eq!(gauge(&snapshotter, PAUSED), 0.0, "nothing has changed");
    second.replace(Routes::new().route(Route::drop().named("noise")), |_| false).expect("valid");
    assert_eq!(gauge(&snapshotter, PAUSED), -1.0, "it is no more");
}

/// A reading of the table that gets no answer holds up neither the gauges of the process nor the readings after it for long.
#[tokio::test(start_paused = true)]
async fn a_backlog_that_hangs_once_is_soon_read_again() {
    let recorder = DebuggingRecorder::new();
    let snapshotter = recorder.snapshotter();
    let _recording = metrics::set_default_local_recorder(&recorder);
    let memory = MemoryStore::new();
    memory.inspect().insert_three_columns("an-event", "order.placed", "{}").expect("inserts");
    let store = FaultyStore::new(memory);
    store.set(Operation::Inspect, Fault::TimedOut);
    let hangs = async |_: Delivery| std::future::pending::<()>().await;
    let outbox = Outbox::single_node(store.clone()).workers(1).handle_all(hangs).drain_timeout(Duration::ZERO);
    let outbox = outbox.start().await.expect("starts");
    // It is read for the first time two seconds after the start.
    sleep(Duration::from_secs(3)).await;
    store.set(Operation::Inspect, Fault::None);
    sleep(Duration::from_secs(20)).await;
    let [due, age] = gauges(&snapshotter, ["pillarbox.rows.due", "pillarbox.backlog.age"]);
    assert!(due.is_nan(), "nobody has read it yet: {due}");
    assert!((15.0..=23.0).contains(&age), "the gauges of the process go on: {age}");
    let read = async {
        while gauge(&snapshotter, "pillarbox.rows.due") != 1.0 {
            sleep(Duration::from_secs(1)).await;
        }
    };
    timeout(Duration::from_secs(60), read).await.expect("within a minute, not after 25");
    outbox.shutdown().await;
}
