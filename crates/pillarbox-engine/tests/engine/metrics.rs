//! What an outbox reports through the `metrics` facade.

#![allow(clippy::expect_used, reason = "a test fails by panicking")]

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use metrics_util::debugging::{DebugValue, DebuggingRecorder, Snapshotter};
use pillarbox_core::clock::{Clock, Timestamp};
use pillarbox_core::event::Envelope;
use pillarbox_core::handle::{Delivery, HandlerError, Outcome, Path, blocking};
use pillarbox_core::ownership::Fence;
use pillarbox_core::retry::ExponentialBackoff;
use pillarbox_core::row::{Change, Expected, Verdict};
use pillarbox_core::store::Store as _;
use pillarbox_engine::handlers::on_type;
use pillarbox_engine::maintain::{PauseNote, Pauses};
use pillarbox_engine::run::{Outbox, Role, SingleNode};
use pillarbox_memory::MemoryStore;
use tokio::sync::Semaphore;
use tokio::time::{Instant, sleep};

type Answer = Result<Outcome, HandlerError>;

/// The wall's clock as tokio's, so that a paused runtime drives the store's due times as well.
#[derive(Debug)]
struct RuntimeClock(Instant);

impl Clock for RuntimeClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_micros(1_700_000_000_000_000).plus(self.0.elapsed())
    }
}

fn store() -> (MemoryStore, Arc<RuntimeClock>) {
    let clock = Arc::new(RuntimeClock(Instant::now()));
    (MemoryStore::with_clock(Arc::<RuntimeClock>::clone(&clock)), clock)
}

fn outbox(store: &MemoryStore, clock: &RuntimeClock) -> SingleNode {
    let short = Duration::from_millis(1);
    let backoff = ExponentialBackoff::new(short, short).expect("valid");
    Outbox::single_node(store.clone()).clock(RuntimeClock(clock.0)).workers(1).retry_policy(backoff)
}

/// Starts an outbox and waits until its hot path is open.
async fn start(outbox: SingleNode) -> Outbox {
    let outbox = outbox.start().await.expect("starts");
    sleep(Duration::from_millis(1)).await;
    outbox
}

/// An event that is due after `delay`.
fn delayed(clock: &RuntimeClock, delay: Duration) -> Envelope {
    let event = Envelope::builder("known").payload_json("\"later\"").occurred_at(clock.now());
    event.available_at(clock.now().plus(delay)).build().expect("valid")
}

/// Writes events whose payloads tell the handler what to do, and commits them.
async fn write(outbox: &Outbox, store: &MemoryStore, event_type: &str, payloads: &[&str]) {
    let mut tx = store.begin();
    let event = |payload: &&str| Envelope::json(event_type, format!("{payload:?}")).expect("valid");
    let written = outbox.write_all(&mut tx, payloads.iter().map(event)).await.expect("writes");
    tx.commit();
    outbox.notify_committed(written);
}

#[derive(Debug, PartialEq)]
enum Value {
    Counter(u64),
    Gauge(f64),
    Histogram(Vec<f64>),
}

/// A metric as reported: its name, kind, unit and labels.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Reported {
    name: String,
    kind: &'static str,
    unit: String,
    labels: Vec<(String, String)>,
}

/// All metrics and their values; reading them sets them back to zero.
fn read(snapshotter: &Snapshotter) -> BTreeMap<Reported, Value> {
    let all = snapshotter.snapshot().into_vec().into_iter();
    all.map(|(key, unit, _, value)| {
        let (_, key) = key.into_parts();
        let (kind, value) = match value {
            DebugValue::Counter(n) => ("counter", Value::Counter(n)),
            DebugValue::Gauge(n) => ("gauge", Value::Gauge(n.into_inner())),
            DebugValue::Histogram(all) => {
                ("histogram", Value::Histogram(all.into_iter().map(|n| n.into_inner()).collect()))
            }
        };
        let unit = unit.map_or("none", |unit| unit.as_str()).to_owned();
        let labels = key.labels().map(|label| (label.key().to_owned(), label.value().to_owned())).collect();
        (Reported { name: key.name().to_owned(), kind, unit, labels }, value)
    })
    .collect()
}

fn counters(metrics: &BTreeMap<Reported, Value>) -> BTreeMap<&str, u64> {
    metrics
        .iter()
        .filter_map(|(key, value)| if let Value::Counter(n) = value { Some((&*key.name, *n)) } else { None })
        .collect()
}

fn gauges(metrics: &BTreeMap<Reported, Value>) -> BTreeMap<&str, f64> {
    metrics
        .iter()
        .filter_map(|(key, value)| if let Value::Gauge(n) = value { Some((&*key.name, *n)) } else { None })
        .collect()
}

/// The value of one gauge.
fn gauges_of(snapshotter: &Snapshotter, name: &str) -> f64 {
    gauges(&read(snapshotter))[name]
}

/// The values of a histogram, by the label that is its own, if it has one.
fn histogram<'a>(metrics: &'a BTreeMap<Reported, Value>, name: &str) -> BTreeMap<&'a str, &'a [f64]> {
    let of = |(key, value): (&'a Reported, &'a Value)| match value {
        Value::Histogram(all) if key.name == name => Some((key.labels.get(2).map_or("", |label| &*label.1), &**all)),
        _ => None,
    };
    metrics.iter().filter_map(of).collect()
}

#[tokio::test(start_paused = true)]
async fn every_counter_counts_exactly_what_happened() {
    let recorder = DebuggingRecorder::new();
    let snapshotter = recorder.snapshotter();
    let _recording = metrics::set_default_local_recorder(&recorder);
    let (store, clock) = store();
    let ours = store.clone();
    let handler = move |delivery: Delivery| {
        let store = ours.clone();
        async move {
            let text: String = delivery.parse().expect("text");
            match text.as_str() {
                "fails once" if delivery.attempt() == 1 => Err(HandlerError::retryable("the first time")),
                "is deferred" if delivery.path() == Path::Hot => Ok(Outcome::Defer(Duration::from_secs(1))),
                "is given up" => Ok(Outcome::Dead("on purpose".to_owned())),
                "is settled by another" => {
                    let rows = store.identify(&[delivery.seq()]).await.expect("identifies");
                    let verdict = Verdict { row: rows[0].clone(), expected: Expected::FIRST, change: Change::Done };
                    store.settle(delivery.node(), Fence::Table, &[verdict]).await.expect("settles");
                    Ok(Outcome::Done)
                }
                _ => Answer::Ok(Outcome::Done),
            }
        }
    };
    let hour = Duration::from_secs(3600);
    let outbox = outbox(&store, &clock).hot_capacity(3).purge_done_after(hour).handle_type("known", handler.clone());
    let outbox = start(outbox.handle_all(handler)).await;

    // Of a hot queue of three, one of two handlers has two; the others are left to the table.
    write(&outbox, &store, "known", &["a", "b", "c", "d"]).await;
    sleep(Duration::from_secs(1)).await;
    for payload in ["fails once", "is deferred", "is given up", "is settled by another"] {
        write(&outbox, &store, "unknown", &[payload]).await;
        sleep(Duration::from_secs(2)).await;
    }
    let mut tx = store.begin();
    let written = outbox.write(&mut tx, delayed(&clock, Duration::from_secs(1))).await.expect("writes");
    tx.commit();
    outbox.notify_committed(written);
    sleep(3 * hour).await;

    let metrics = read(&snapshotter);
    let expected = [
        ("pillarbox.backlog.failed", 0),
        ("pillarbox.claim.failed", 0),
        ("pillarbox.dispatch.dead", 1),
        ("pillarbox.dispatch.deferred", 1),
        ("pillarbox.dispatch.failure", 1),
        ("pillarbox.dispatch.rescued", 0),
        ("pillarbox.dispatch.success", 4 + 2 + 1),
        ("pillarbox.enqueue.cold", 2 + 2 + 1),
        ("pillarbox.enqueue.hot", 2 + 4),
        ("pillarbox.enqueue.hot.dropped", 2),
        ("pillarbox.enqueue.hot.skipped.delayed", 1),
        ("pillarbox.join.failed", 0),
        ("pillarbox.lease.renewal.failed", 0),
        ("pillarbox.purge.failed", 0),
        ("pillarbox.purge.removed", 7 + 1),
        ("pillarbox.settle.failed", 0),
        ("pillarbox.settle.refused", 1),
        ("pillarbox.write.failed", 0),
    ];
    assert_eq!(counters(&metrics), BTreeMap::from(expected));
    let stats = outbox.stats();
    let counted = [stats.hot, stats.hot_dropped, stats.hot_skipped_delayed, stats.cold, stats.done];
    assert_eq!(counted, [6, 2, 1, 5, 7]);
    assert_eq!([stats.retried, stats.deferred, stats.dead, stats.refused, stats.purged], [1, 1, 1, 1, 8]);

    let expected = [
        ("pillarbox.handler.abandoned", 0.0),
        ("pillarbox.handler.busy", 0.0),
        ("pillarbox.handler.oldest", 0.0),
        ("pillarbox.in_memory", 0.0),
        ("pillarbox.lag.oldest", 0.0),
        ("pillarbox.nodes.live", 1.0),
        ("pillarbox.partitions.owned", 256.0),
        ("pillarbox.queue.cold.depth", 0.0),
        ("pillarbox.queue.hot.depth", 0.0),
        ("pillarbox.role.active", 1.0),
        ("pillarbox.rows.dead", 1.0),
        ("pillarbox.rows.delayed", 0.0),
        ("pillarbox.rows.due", 0.0),
    ];
    let mut known = gauges(&metrics).into_iter().filter(|(_, value)| !value.is_nan()).collect::<BTreeMap<_, _>>();
    let age = known.remove("pillarbox.backlog.age").expect("it was read");
    assert!((0.0..=30.0).contains(&age), "every 30 seconds while nothing is due: {age}");
    assert_eq!(known, BTreeMap::from(expected), "the other gauges are of other modes");
    let written: f64 = histogram(&metrics, "pillarbox.write.rows")[""].iter().sum();
    assert_eq!(written, 4.0 + 4.0 + 1.0);
    let settled: f64 = histogram(&metrics, "pillarbox.settle.batch")[""].iter().sum();
    assert_eq!(settled, 7.0 + 1.0 + 1.0 + 1.0 + 1.0, "every verdict, the refused one too");
    outbox.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn durations_are_measured_of_every_event_whose_handler_is_not_quick() {
    let recorder = DebuggingRecorder::new();
    let snapshotter = recorder.snapshotter();
    let _recording = metrics::set_default_local_recorder(&recorder);
    let (store, clock) = store();
    let slow = |_: Delivery| sleep(Duration::from_millis(10));
    let outbox = outbox(&store, &clock).metrics_prefix("shop.outbox").handle_type("known", slow).handle_all(slow);
    let outbox = start(outbox).await;
    write(&outbox, &store, "known", &["a", "b", "c"]).await;
    sleep(Duration::from_secs(1)).await;
    // Nobody registered a handler for these; a label for each of them would have no bound.
    for event_type in ["one", "two", "other"] {
        store.inspect().insert_three_columns(event_type, event_type, "\"x\"").expect("inserts");
    }
    sleep(Duration::from_secs(10)).await;
    outbox.shutdown().await;

    let metrics = read(&snapshotter);
    let took = |all: &[f64]| all.iter().map(|n| (n * 1e3).round()).collect::<Vec<_>>();
    let handlers = histogram(&metrics, "shop.outbox.handler.duration");
    assert_eq!(handlers.keys().collect::<Vec<_>>(), [&"known", &"other"]);
    assert_eq!((took(handlers["known"]), took(handlers["other"])), (vec![10.0; 3], vec![10.0; 3]));
    // One worker: each waits for the ones before it.
    let latency = histogram(&metrics, "shop.outbox.dispatch.latency");
    assert_eq!((took(latency["hot"]), took(latency["cold"])), (vec![0.0, 10.0, 20.0], vec![0.0, 10.0, 20.0]));
    let claimed: f64 = histogram(&metrics, "shop.outbox.claim.rows")[""].iter().sum();
    assert_eq!(claimed, 3.0);
    let labels = [("database", "this process"), ("table", "outbox_event")];
    let labels = labels.map(|(name, value)| (name.to_owned(), value.to_owned()));
    assert!(metrics.keys().all(|metric| metric.labels.starts_with(&labels)), "{metrics:?}");
}

#[tokio::test(start_paused = true)]
async fn handlers_with_names_are_measured_each_by_itself() {
    let recorder = DebuggingRecorder::new();
    let snapshotter = recorder.snapshotter();
    let _recording = metrics::set_default_local_recorder(&recorder);
    let (store, clock) = store();
    let takes = |millis| move |_: Delivery| sleep(Duration::from_millis(millis));
    let outbox = outbox(&store, &clock).handler(on_type("known", takes(10)).named("mailer"));
    let outbox =
        start(outbox.handler(on_type("known", takes(20)).named("ledger")).handle_type("lone", takes(30))).await;
    write(&outbox, &store, "known", &["a", "b"]).await;
    write(&outbox, &store, "lone", &["c"]).await;
    sleep(Duration::from_secs(10)).await;
    outbox.shutdown().await;
    let metrics = read(&snapshotter);
    let labels = |key: &Reported| key.labels[2..].iter().map(|(_, value)| value.clone()).collect::<Vec<_>>().join("/");
    let times = |value: &Value| match value {
        Value::Histogram(all) => all.iter().map(|n| (n * 1e3).round()).collect(),
        _ => Vec::new(),
    };
    let measured = metrics.iter().filter(|(key, _)| key.name == "pillarbox.handler.duration");
    let measured: BTreeMap<_, _> = measured.map(|(key, value)| (labels(key), times(value))).collect();
    let expected =
        [("known/ledger", vec![20.0; 2]), ("known/mailer", vec![10.0; 2]), ("lone/", vec![30.0]), ("other/", vec![])];
    assert_eq!(measured, BTreeMap::from(expected.map(|(labels, times)| (labels.to_owned(), times))));
}

#[tokio::test(start_paused = true)]
async fn a_failed_reading_keeps_the_gauges_and_a_node_that_stopped_knows_nothing() {
    let recorder = DebuggingRecorder::new();
    let snapshotter = recorder.snapshotter();
    let _recording = metrics::set_default_local_recorder(&recorder);
    let (store, clock) = store();
    let type_pause = Arc::new(Semaphore::new(0));
    let passing = Arc::clone(&type_pause);
    let handler = move |_: Delivery| {
        let type_pause = Arc::clone(&passing);
        async move { type_pause.acquire().await.expect("open").forget() }
    };
    let outbox = outbox(&store, &clock).metrics_interval(Duration::from_secs(1)).handle_all(handler);
    let outbox = start(outbox).await;
    write(&outbox, &store, "known", &["a", "b", "c"]).await;
    let mut tx = store.begin();
    outbox.write(&mut tx, delayed(&clock, Duration::from_secs(3600))).await.expect("writes");
    tx.commit();
    sleep(Duration::from_secs(5)).await;

    // The outbox loses its database, of which another handle sees that there is more by now.
    let other = store.reopen();
    store.close().await;
    for id in ["d", "e"] {
        other.inspect().insert_three_columns(id, "known", "1").expect("inserts");
    }
    type_pause.add_permits(1);
    sleep(Duration::from_secs(6)).await;
    let metrics = read(&snapshotter);
    let gauges_now = gauges(&metrics);
    let gauge = |name: &str| gauges_now[&*format!("pillarbox.{name}")];
    let rows = [gauge("rows.due"), gauge("rows.delayed"), gauge("rows.dead"), gauge("nodes.live")];
    assert_eq!(rows, [3.0, 1.0, 0.0, 1.0], "as they were before");
    assert!((3.0..=5.0).contains(&gauge("lag.oldest")), "as it was before: {}", gauge("lag.oldest"));
    // The verdict on the first event cannot be recorded, so it is still in memory; what memory holds is known.
    assert_eq!([gauge("in_memory"), gauge("queue.hot.depth"), gauge("role.active")], [3.0, 1.0, 1.0]);
    let counted = counters(&metrics);
    for name in ["backlog.failed", "claim.failed", "settle.failed", "lease.renewal.failed"] {
        assert!(counted[&*format!("pillarbox.{name}")] > 0, "{name}");
    }

    // Without its lease it does not deliver any more.
    assert!(outbox.wait_for_role(|role| *role == Role::Joining).await);
    sleep(Duration::from_millis(1)).await;
    let metrics = read(&snapshotter);
    let gauges = gauges(&metrics);
    for name in ["rows.due", "rows.delayed", "rows.dead", "nodes.live", "lag.oldest", "partitions.owned"] {
        assert!(gauges[&*format!("pillarbox.{name}")].is_nan(), "{name} is not known here any more");
    }
    assert_eq!([gauges["pillarbox.role.active"], gauges["pillarbox.in_memory"]], [0.0, 0.0]);
    // It joins anew, again and again.
    sleep(Duration::from_secs(10)).await;
    assert!(counters(&read(&snapshotter))["pillarbox.join.failed"] > 1);
    type_pause.add_permits(10);
    outbox.shutdown().await;
    assert!(gauges_of(&snapshotter, "pillarbox.role.active").is_nan(), "that it does not deliver is meant");
}

/// No process that only writes says that nobody delivers.
#[tokio::test(start_paused = true)]
async fn a_process_that_never_delivers_says_nothing_of_who_does() {
    let recorder = DebuggingRecorder::new();
    let snapshotter = recorder.snapshotter();
    let _recording = metrics::set_default_local_recorder(&recorder);
    let store = MemoryStore::new();
    let writer = Outbox::writer_only(store.clone()).metrics_prefix("writer").start().await.expect("starts");
    let off = Outbox::single_node(store.clone()).metrics_prefix("off").enabled(false);
    let off = off.handle_all(|_: Delivery| async {}).start().await.expect("starts");
    let delivers = Outbox::single_node(store.reopen()).metrics_prefix("delivers").handle_all(|_: Delivery| async {});
    let delivers = delivers.start().await.expect("starts");
    let standby = Outbox::single_node(store.reopen()).metrics_prefix("standby").handle_all(|_: Delivery| async {});
    let standby = standby.start().await.expect("starts");
    sleep(Duration::from_secs(1)).await;
    let metrics = read(&snapshotter);
    let active = |prefix: &str| gauges(&metrics)[&*format!("{prefix}.role.active")];
    assert!(active("writer").is_nan() && active("off").is_nan(), "{metrics:?}");
    assert_eq!((active("delivers"), active("standby")), (1.0, 0.0));
    for outbox in [writer, off, standby, delivers] {
        outbox.shutdown().await;
    }
}

/// A thread that cannot be ended outlives the right to deliver, and the outbox. The recorder keeps what was added since it was last read.
#[tokio::test]
async fn threads_that_hang_are_counted_also_by_an_outbox_that_has_stopped() {
    let recorder = DebuggingRecorder::new();
    let snapshotter = recorder.snapshotter();
    let _recording = metrics::set_default_local_recorder(&recorder);
    let store = MemoryStore::new();
    store.inspect().insert_three_columns("hangs", "known", "1").expect("inserts");
    let (release, released) = std::sync::mpsc::channel::<()>();
    let (begun, has_begun) = std::sync::mpsc::channel::<()>();
    let channels = std::sync::Mutex::new((begun, released));
    let handler = blocking(move |_: Delivery| {
        let (begun, released) = &*channels.lock().expect("not poisoned");
        begun.send(()).expect("the test waits");
        // Ends when the test lets it.
        let _ended = released.recv();
    });
    let outbox = Outbox::single_node(store).drain_timeout(Duration::ZERO).handle_all(handler);
    let outbox = outbox.start().await.expect("starts");
    while has_begun.try_recv().is_err() {
        sleep(Duration::from_millis(1)).await;
    }
    outbox.shutdown().await;
    assert_eq!(gauges_of(&snapshotter, "pillarbox.handler.abandoned"), 1.0);
    drop(release);
    while outbox.health().abandoned_calls > 0 {
        sleep(Duration::from_millis(1)).await;
    }
    while gauges_of(&snapshotter, "pillarbox.handler.abandoned") != -1.0 {
        sleep(Duration::from_millis(1)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn partitions_are_watched_where_nodes_share_them() {
    let recorder = DebuggingRecorder::new();
    let snapshotter = recorder.snapshotter();
    let _recording = metrics::set_default_local_recorder(&recorder);
    let store = MemoryStore::new();
    let type_pause = Arc::new(Semaphore::new(0));
    let passing = Arc::clone(&type_pause);
    let handler = move |_: Delivery| {
        let type_pause = Arc::clone(&passing);
        async move { type_pause.acquire().await.expect("open").forget() }
    };
    let node = |prefix: &str| {
        let node = Outbox::partitioned(store.clone()).metrics_prefix(prefix).metrics_interval(Duration::from_secs(1));
        node.workers(1).handle_all(handler.clone())
    };
    let first = node("first").start().await.expect("starts");
    let mut tx = store.begin();
    for key in ["order-1", "order-1", "order-2"] {
        let event = Envelope::builder("known").key(key).payload_json("1").build().expect("valid");
        first.write(&mut tx, event).await.expect("writes");
    }
    tx.commit();
    sleep(Duration::from_secs(5)).await;
    let partitions = |prefix: &str| {
        let metrics = read(&snapshotter);
        let gauges = gauges(&metrics);
        let names = ["owned", "unowned", "pending", "pending.max"];
        names.map(|name| gauges[&*format!("{prefix}.partitions.{name}")])
    };
    assert_eq!(partitions("first"), [256.0, 0.0, 3.0, 2.0]);

    let second = node("second").start().await.expect("starts");
    sleep(Duration::from_secs(10)).await;
    assert_eq!(partitions("second")[..2], [128.0, 0.0]);
    type_pause.add_permits(3);
    sleep(Duration::from_secs(5)).await;
    assert_eq!(partitions("first"), [128.0, 0.0, 0.0, 0.0]);
    second.shutdown().await;
    sleep(Duration::from_secs(5)).await;
    let metrics = read(&snapshotter);
    assert!(gauges(&metrics)["second.partitions.owned"].is_nan());
    assert_eq!(gauges(&metrics)["first.partitions.owned"], 256.0);
    first.shutdown().await;
}

/// Looks that nothing asks for: with one interval for both ends, they come at that distance, whether rows are found or not.
#[tokio::test(start_paused = true)]
async fn equal_intervals_are_a_fixed_one() {
    let recorder = DebuggingRecorder::new();
    let snapshotter = recorder.snapshotter();
    let _recording = metrics::set_default_local_recorder(&recorder);
    let (store, clock) = store();
    let second = Duration::from_secs(1);
    let outbox = outbox(&store, &clock).poll_interval(second, second).handle_all(|_: Delivery| async {});
    let outbox = start(outbox).await;
    let looks = async || {
        read(&snapshotter);
        sleep(60 * second).await;
        histogram(&read(&snapshotter), "pillarbox.claim.rows")[""].len()
    };
    let idle = looks().await;
    // A quarter sooner at random.
    assert!((60..=81).contains(&idle), "{idle} looks in a minute");
    outbox.shutdown().await;
}

#[tokio::test]
async fn the_documented_table_is_what_is_reported() {
    let recorder = DebuggingRecorder::new();
    let snapshotter = recorder.snapshotter();
    let _recording = metrics::set_default_local_recorder(&recorder);
    let handler = |_: Delivery| async {};
    let limited = on_type("limited", handler).concurrency(1);
    let store = MemoryStore::new();
    Pauses::of(&store).pause_type("paused", &PauseNote::new()).await.expect("pauses");
    let outbox = Outbox::single_node(store).handle_type("known", handler).handler(limited);
    let outbox = outbox.start().await.expect("starts");
    while !read(&snapshotter).keys().any(|metric| metric.name == "pillarbox.paused") {
        sleep(Duration::from_millis(1)).await;
    }
    outbox.shutdown().await;
    let line = |metric: Reported| {
        let own: Vec<_> = metric.labels.into_iter().skip(2).map(|(name, _)| format!("`{name}`")).collect();
        let own = own.join(", ").trim_matches('`').to_owned();
        (metric.name.trim_start_matches("pillarbox.").to_owned(), metric.kind.to_owned(), metric.unit, own)
    };
    let reported: BTreeSet<(String, String, String, String)> = read(&snapshotter).into_keys().map(line).collect();

    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/metrics.md");
    let page = std::fs::read_to_string(page).expect("docs/metrics.md is read");
    let rows: Vec<Vec<&str>> = page
        .lines()
        // Not those of paths.
        .filter(|line| line.starts_with("| `") && !line.starts_with("| `/"))
        .map(|line| line.split('|').map(|cell| cell.trim().trim_matches('`')).collect())
        .collect();
    let documented: BTreeSet<_> =
        rows.iter().map(|row| (row[1].to_owned(), row[2].to_owned(), row[3].to_owned(), row[4].to_owned())).collect();
    assert_eq!(documented.len(), rows.len(), "no metric is documented twice");
    assert!(rows.iter().all(|row| !row[5].is_empty()), "every metric has a meaning");
    assert_eq!(documented, reported);
}
