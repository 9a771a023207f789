//! What routes report through the `metrics` facade.

#![allow(clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

use std::collections::BTreeSet;
use std::sync::Arc;

use metrics_util::debugging::{DebugValue, DebuggingRecorder};
use pillarbox_core::event::Envelope;
use pillarbox_core::write::insert;
use pillarbox_engine::handlers::{Events, on_batch};
use pillarbox_engine::run::Outbox;
use pillarbox_memory::MemoryStore;
use pillarbox_routes::{Route, Routes, Unrouted};
use pillarbox_testkit::MemoryPublisher;

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
async fn what_no_route_takes_is_counted_also_where_it_is_dropped() {
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
        tokio::time::sleep(std::time::Duration::from_millis(1)).await;
    }
    outbox.shutdown().await;
    let counted = snapshotter
        .snapshot()
        .into_vec()
        .into_iter()
        .find_map(|(key, _, _, value)| (key.key().name() == "pillarbox.route.unrouted").then_some(value));
    assert_eq!(counted, Some(DebugValue::Counter(2)));
}
