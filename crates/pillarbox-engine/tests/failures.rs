//! Failures, calls that hang, and events that nobody knows, as the log, the health and the metrics show them.

#![allow(clippy::expect_used, reason = "a test fails by panicking")]

mod log;

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use metrics_util::debugging::{DebugValue, DebuggingRecorder, Snapshotter};
use pillarbox_core::clock::{Clock, Timestamp};
use pillarbox_core::error::BoxError;
use pillarbox_core::event::Envelope;
use pillarbox_core::handle::{Delivery, Failure, HandlerError, Interceptor, Outcome, blocking};
use pillarbox_core::retry::FixedBackoff;
use pillarbox_core::store::{Admin as _, Store as _};
use pillarbox_engine::handlers::{Unroutable, on_batch, on_type};
use pillarbox_engine::observe::Problem;
use pillarbox_engine::run::{FailingHead, Outbox, SingleNode};
use pillarbox_memory::MemoryStore;
use tokio::time::{Instant, sleep};
use tracing::subscriber::DefaultGuard;

use log::Log;

const SECOND: Duration = Duration::from_secs(1);
const MINUTE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(3600);

/// The wall's clock as tokio's, so that a paused runtime drives the store's due times as well.
#[derive(Debug, Clone, Copy)]
struct RuntimeClock(Instant);

impl Clock for RuntimeClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_micros(1_700_000_000_000_000).plus(self.0.elapsed())
    }
}

fn store() -> MemoryStore {
    MemoryStore::with_clock(Arc::new(RuntimeClock(Instant::now())))
}

/// An outbox of one worker that tries again after a second.
fn outbox(store: &MemoryStore) -> SingleNode {
    Outbox::single_node(store.clone()).workers(1).retry_policy(FixedBackoff::new(SECOND).expect("valid"))
}

fn insert(store: &MemoryStore, id: &str, event_type: &str) {
    store.inspect().insert_three_columns(id, event_type, "\"the secret\"").expect("inserts");
}

/// Keeps what is logged from here on.
fn keep(log: &Log) -> DefaultGuard {
    let writer = log.clone();
    let subscriber = tracing_subscriber::fmt().with_ansi(false).without_time().with_writer(move || writer.clone());
    log::install(subscriber.finish())
}

/// The lines that contain all of `parts`.
fn lines(log: &Log, parts: &[&str]) -> Vec<String> {
    let text = log.text();
    assert!(!text.contains("the secret"), "{text}");
    text.lines().filter(|line| parts.iter().all(|part| line.contains(part))).map(str::to_owned).collect()
}

/// The gauges of calls: busy workers and the age of the oldest call. Reading them sets them back to zero.
fn gauges_of_calls(snapshotter: &Snapshotter) -> [f64; 2] {
    let all = snapshotter.snapshot().into_vec();
    ["pillarbox.handler.busy", "pillarbox.handler.oldest"].map(|name| {
        let found = all.iter().find_map(|(key, _, _, value)| match value {
            DebugValue::Gauge(value) if key.key().name() == name => Some(value.into_inner()),
            _ => None,
        });
        found.expect("it is reported")
    })
}

/// A handler that never ends.
async fn hangs(_: Delivery) {
    std::future::pending::<()>().await;
}

async fn failing(_: Delivery) -> Result<(), &'static str> {
    Err("no mail")
}

#[tokio::test(start_paused = true)]
async fn a_failed_attempt_and_a_dead_event_are_logged_with_all_there_is_to_know() {
    let log = Log::default();
    let _logging = keep(&log);
    let store = store();
    insert(&store, "the-id", "order.placed");
    let outbox = outbox(&store).max_attempts(2).handle_all(failing).start().await.expect("starts");
    sleep(10 * SECOND).await;
    outbox.shutdown().await;
    let failed = lines(&log, &["an attempt failed"]);
    assert_eq!(failed.len(), 1, "{failed:?}");
    for part in ["WARN", "id=\"the-id\"", "event_type=\"order.placed\"", "attempt=1", "next_attempt_in=1s", "no mail"] {
        assert!(failed[0].contains(part), "{part} in {failed:?}");
    }
    let dead = lines(&log, &["the event is DEAD"]);
    assert_eq!(dead.len(), 1, "{dead:?}");
    for part in ["ERROR", "id=\"the-id\"", "seq=1", "event_type=\"order.placed\"", "attempt=2", "no mail"] {
        assert!(dead[0].contains(part), "{part} in {dead:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn many_failures_make_few_lines_and_none_is_left_unreported() {
    let log = Log::default();
    let _logging = keep(&log);
    let store = store();
    for n in 0..500 {
        insert(&store, &format!("event-{n}"), "order.placed");
        insert(&store, &format!("other-{n}"), "order.sent");
    }
    let fails_late = async |delivery: Delivery| {
        if delivery.id().as_str() == "late" {
            // Within the window of the others.
            sleep(5 * SECOND).await;
        }
        Err::<(), _>("no mail")
    };
    let outbox = outbox(&store).max_attempts(1).handle_all(fails_late).start().await.expect("starts");
    sleep(SECOND).await;
    insert(&store, "late", "order.placed");
    sleep(20 * SECOND).await;
    let dead = |event_type: &str| {
        let lines = lines(&log, &["the event is DEAD", &format!("event_type={event_type:?}")]);
        let events = |line: &String| {
            let number = line.split("events=").nth(1).and_then(|rest| rest.split(' ').next());
            number.and_then(|number| number.parse::<u64>().ok()).expect("says how many")
        };
        (lines.len(), lines.iter().map(events).sum::<u64>())
    };
    // No shutdown was needed for it: the remainder is logged when the window is over.
    assert_eq!((dead("order.placed"), dead("order.sent")), ((11, 501), (11, 500)));
    outbox.shutdown().await;
}

/// What runs around handlers fails for each event, and makes few lines all the same.
#[tokio::test(start_paused = true)]
async fn interceptors_and_observers_that_fail_for_every_event_make_few_lines() {
    struct Failing;
    impl Interceptor for Failing {
        async fn after(&self, delivery: &Delivery, _: Result<&Outcome, &HandlerError>) -> Result<(), BoxError> {
            assert!(delivery.seq() % 2 == 0, "on purpose");
            Err("no tracer".into())
        }
    }
    let log = Log::default();
    let _logging = keep(&log);
    let store = store();
    for n in 0..1000 {
        insert(&store, &format!("event-{n}"), "order.placed");
    }
    let fails = async |_: Delivery, _: Failure| Err::<(), _>("no pager");
    let outbox = outbox(&store).max_attempts(1).interceptor(Failing);
    let outbox = outbox.handler(on_type("order.placed", failing).on_dead(fails)).start().await.expect("starts");
    while store.counts().await.expect("counts").dead < 1000 {
        sleep(SECOND / 10).await;
    }
    insert(&store, "late", "order.placed");
    sleep(15 * SECOND).await;
    insert(&store, "later", "order.placed");
    sleep(15 * SECOND).await;
    outbox.shutdown().await;
    for (message, error) in
        [("an interceptor failed after the handler", "on purpose"), ("the on_dead observer failed", "no pager")]
    {
        let said = lines(&log, &["WARN", message, "event_type=\"order.placed\""]);
        assert_eq!(said.len(), 2, "{said:?}");
        assert!(said[0].contains("events=1 ") && said[0].contains(error), "{said:?}");
        assert!(said[1].contains("events=1001 "), "it speaks for the others: {said:?}");
    }
}

/// Deleting goes on failing for hours, as where a privilege is missing.
#[tokio::test(start_paused = true)]
async fn a_purge_that_always_fails_is_told_of_every_hour_and_counted() {
    let log = Log::default();
    let _logging = keep(&log);
    let recorder = DebuggingRecorder::new();
    let snapshotter = recorder.snapshotter();
    let _recording = metrics::set_default_local_recorder(&recorder);
    let store = store();
    let outbox = Outbox::writer_only(store.clone()).purge_all_after(HOUR).start().await.expect("starts");
    store.close().await;
    sleep(4 * HOUR + 30 * MINUTE).await;
    outbox.shutdown().await;
    let said = lines(&log, &["WARN", "old events", "cannot be purged"]);
    assert_eq!(said.len(), 5, "at once, and once an hour: {said:?}");
    assert!(said[4].contains("failing_for=14"), "{said:?}");
    let failed = snapshotter.snapshot().into_vec().into_iter().find_map(|(key, _, _, value)| match value {
        DebugValue::Counter(failed) if key.key().name() == "pillarbox.purge.failed" => Some(failed),
        _ => None,
    });
    assert!(failed.is_some_and(|failed| failed > 100), "{failed:?}");
}

#[tokio::test(start_paused = true)]
async fn failures_left_in_a_window_are_logged_when_the_outbox_stops() {
    let log = Log::default();
    let _logging = keep(&log);
    let store = store();
    (0..3).for_each(|n| insert(&store, &format!("event-{n}"), "order.placed"));
    let outbox = outbox(&store).handle_all(failing).start().await.expect("starts");
    sleep(SECOND / 2).await;
    assert_eq!(lines(&log, &["an attempt failed"]).len(), 1);
    outbox.shutdown().await;
    let lines = lines(&log, &["an attempt failed"]);
    assert!(lines.len() == 2 && lines[1].contains("events=2"), "{lines:?}");
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_hangs_times_out_and_its_worker_goes_on() {
    let store = store();
    insert(&store, "hangs", "hangs");
    insert(&store, "well", "well");
    let outbox = outbox(&store).max_attempts(2).handle_type("hangs", hangs).handle_type("well", |_: Delivery| async {});
    let outbox = outbox.start().await.expect("starts");
    sleep(5 * MINUTE - SECOND).await;
    assert_eq!(store.counts().await.expect("counts").done, 0, "one worker, which waits");
    sleep(2 * SECOND).await;
    let counts = store.counts().await.expect("counts");
    assert_eq!((counts.done, counts.retry), (1, 1), "the default is five minutes");
    let row = |seq| store.inspect().rows().into_iter().find(|row| row.seq == seq).expect("is there");
    let text = "the handler timed out: it had not ended after 300s and was dropped";
    assert_eq!((row(1).attempts, row(1).last_error.as_deref()), (1, Some(text)));
    sleep(6 * MINUTE).await;
    assert_eq!((store.counts().await.expect("counts").dead, row(1).attempts), (1, 2));
    outbox.shutdown().await;
}

/// For one handler, for a batch, and for all that runs around a handler.
#[tokio::test(start_paused = true)]
async fn every_call_of_users_code_has_a_limit() {
    struct Hanging;
    impl Interceptor for Hanging {
        async fn before(&self, delivery: &Delivery) -> Result<(), BoxError> {
            if delivery.event_type() == "before" { std::future::pending().await } else { Ok(()) }
        }
        async fn after(&self, delivery: &Delivery, _: Result<&Outcome, &HandlerError>) -> Result<(), BoxError> {
            if delivery.event_type() == "after" { std::future::pending().await } else { Ok(()) }
        }
    }
    let log = Log::default();
    let _logging = keep(&log);
    let store = store();
    for event_type in ["own", "batch", "batch", "before", "after", "fallback", "observed", "never"] {
        insert(&store, &format!("{event_type}-{}", store.inspect().rows().len()), event_type);
    }
    let batch = |_: Vec<Delivery>| async {
        std::future::pending::<()>().await;
        vec![(), ()]
    };
    let well = |_: Delivery| async {};
    let never_decides = async |_: Delivery, _: Failure| {
        std::future::pending::<()>().await;
        Outcome::Done
    };
    let never_looks = async |_: Delivery, _: Failure| std::future::pending::<()>().await;
    let began = Instant::now();
    let outbox = outbox(&store)
        .workers(8)
        .max_attempts(1)
        .handler_timeout(2 * MINUTE)
        .interceptor(Hanging)
        .handler(on_type("own", hangs).timeout(SECOND))
        .handler(on_batch("batch", 2, batch).timeout(2 * SECOND))
        .handle_type("before", well)
        .handle_type("after", well)
        .handler(on_type("fallback", failing).fallback(never_decides))
        .handler(on_type("observed", failing).on_dead(never_looks))
        .handler(on_type("never", hangs).timeout(None))
        .drain_timeout(Duration::ZERO)
        .start()
        .await
        .expect("starts");
    let dead = async |count| {
        while store.counts().await.expect("counts").dead < count {
            sleep(SECOND / 10).await;
        }
        began.elapsed()
    };
    assert!(dead(1).await < 2 * SECOND && dead(3).await < 3 * SECOND, "the handlers' own limits");
    assert!(dead(6).await >= 2 * MINUTE && began.elapsed() < 3 * MINUTE, "the outbox's");
    let counts = store.counts().await.expect("counts");
    assert_eq!((counts.done, counts.dead, counts.pending()), (1, 6, 1), "what follows a handler changes nothing");
    sleep(HOUR).await;
    assert_eq!(store.counts().await.expect("counts").pending(), 1, "one has no limit");
    let errors: HashMap<_, _> =
        store.inspect().rows().into_iter().map(|row| (row.event.event_type().to_owned(), row.last_error)).collect();
    let said = |event_type: &str| errors[event_type].clone().unwrap_or_default();
    assert!(said("batch").starts_with("the handler timed out"), "{errors:?}");
    assert!(said("before").starts_with("an interceptor timed out"), "{errors:?}");
    assert_eq!(
        said("fallback"),
        "the fallback timed out: it had not ended after 120s and was dropped; the handler had failed before: no mail"
    );
    assert_eq!(said("observed"), "no mail");
    assert_eq!(lines(&log, &["WARN", "on_dead observer failed", "timed out"]).len(), 1);
    outbox.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn a_call_that_hangs_is_named_measured_and_told_to_health() {
    let log = Log::default();
    let _logging = keep(&log);
    let recorder = DebuggingRecorder::new();
    let snapshotter = recorder.snapshotter();
    let _recording = metrics::set_default_local_recorder(&recorder);
    let store = store();
    insert(&store, "the-id", "order.placed");
    let outbox = outbox(&store).workers(2).handle_all(hangs).handler_timeout(None).drain_timeout(Duration::ZERO);
    let outbox = outbox.start().await.expect("starts");
    sleep(30 * SECOND).await;
    let health = outbox.health();
    assert!(health.is_ready() && health.busy_workers == 1, "{health}");
    assert!(lines(&log, &["has not ended"]).is_empty());
    sleep(5 * MINUTE).await;
    let named = lines(&log, &["WARN", "event_id=\"the-id\"", "event_type=\"order.placed\"", "has not ended"]);
    assert_eq!(named.len(), 1, "once for each call: {named:?}");
    assert!(outbox.health().is_ready(), "there is another worker");
    // Whoever writes rows chooses their ids, and makes no line of the log by them.
    insert(&store, "another\nERROR forged", "order.placed");
    sleep(2 * MINUTE).await;
    let forged = lines(&log, &["forged"]);
    assert!(forged.len() == 1 && forged[0].contains("has not ended"), "{forged:?}");
    let health = outbox.health();
    assert_eq!((health.problems.as_slice(), health.busy_workers), (&[Problem::Stalled][..], 2), "{health}");
    assert!(health.is_alive() && !health.is_ready() && health.oldest_call > Some(7 * MINUTE), "{health}");
    let [busy, oldest] = gauges_of_calls(&snapshotter);
    assert!(busy == 2.0 && oldest > 400.0, "{busy} {oldest}");
    outbox.shutdown().await;
    assert_eq!((outbox.health().busy_workers, outbox.health().oldest_call), (0, None));
    assert_eq!(gauges_of_calls(&snapshotter), [0.0, 0.0]);
}

/// The thread of a blocking handler cannot be stopped: its worker goes on without it, and it is counted.
#[tokio::test]
async fn a_blocking_handler_that_times_out_is_counted_until_its_thread_ends() {
    let log = Log::default();
    let _logging = keep(&log);
    let store = MemoryStore::new();
    insert(&store, "hangs", "hangs");
    let calls = Arc::new(AtomicUsize::new(0));
    let (release, released) = std::sync::mpsc::channel::<()>();
    let released = Mutex::new(released);
    let counted = Arc::clone(&calls);
    let handler = blocking(move |_: Delivery| {
        if counted.fetch_add(1, Ordering::SeqCst) == 0 {
            // Ends when the test lets it.
            let _ended = released.lock().expect("not poisoned").recv();
        }
    });
    let outbox = outbox(&store).retry_policy(FixedBackoff::new(Duration::from_millis(1)).expect("valid"));
    let handler = on_type("hangs", handler).timeout(Duration::from_millis(50));
    let outbox = outbox.handler(handler).start().await.expect("starts");
    let until = async |done: &dyn Fn() -> bool| {
        let waited = async {
            while !done() {
                sleep(Duration::from_millis(1)).await;
            }
        };
        tokio::time::timeout(MINUTE, waited).await.expect("it comes to that");
    };
    until(&|| outbox.stats().done == 1).await;
    assert!(calls.load(Ordering::SeqCst) >= 2, "the next attempt went on beside it");
    assert!(outbox.health().abandoned_calls >= 1 && outbox.health().is_ready(), "{}", outbox.health());
    assert!(!lines(&log, &["WARN", "its thread cannot be stopped"]).is_empty());
    drop(release);
    until(&|| outbox.health().abandoned_calls == 0).await;
    outbox.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn an_event_that_nobody_knows_is_parked_with_a_warning_and_goes_dead_after_a_day() {
    let log = Log::default();
    let _logging = keep(&log);
    let store = store();
    insert(&store, "the-id", "order.refunded");
    let outbox = outbox(&store).handle_type("order.placed", |_: Delivery| async {}).start().await.expect("starts");
    sleep(HOUR).await;
    let row = store.inspect().rows().remove(0);
    assert_eq!((row.status.code(), row.attempts), (2, 0), "no attempt is counted");
    let warned = lines(&log, &["WARN", "id=\"the-id\"", "event_type=\"order.refunded\"", "nobody takes the event"]);
    assert!(warned.len() > 100 && warned.len() <= 121, "every 30 seconds: {}", warned.len());
    sleep(22 * HOUR).await;
    assert_eq!(store.counts().await.expect("counts").dead, 0);
    sleep(2 * HOUR).await;
    assert_eq!(store.counts().await.expect("counts").dead, 1);
    assert_eq!(lines(&log, &["ERROR", "id=\"the-id\"", "the event is DEAD"]).len(), 1);
    outbox.shutdown().await;
}

/// An old event, such as one that was delayed, has an hour from when its process met its type: as long as a deployment takes.
#[tokio::test(start_paused = true)]
async fn an_old_event_that_nobody_knows_is_not_given_up_at_once() {
    let store = store();
    insert(&store, "old", "order.refunded");
    sleep(100 * HOUR).await;
    let outbox = outbox(&store).handle_type("order.placed", |_: Delivery| async {}).start().await.expect("starts");
    sleep(HOUR - MINUTE).await;
    assert_eq!(store.counts().await.expect("counts").retry, 1);
    sleep(2 * MINUTE).await;
    assert_eq!(store.counts().await.expect("counts").dead, 1);
    outbox.shutdown().await;
}

/// In order, what nobody knows keeps its place; or it goes DEAD at once, where that is what failing heads do.
#[tokio::test(start_paused = true)]
async fn in_order_an_event_that_nobody_knows_holds_up_the_table_unless_heads_go_dead() {
    let ordered =
        |store: &MemoryStore| Outbox::ordered(store.clone()).handle_type("order.placed", |_: Delivery| async {});
    for (head, after_a_minute) in [(FailingHead::RetryInPlace, (0, 0)), (FailingHead::DeadAndContinue, (1, 1))] {
        let store = store();
        insert(&store, "unknown", "order.refunded");
        insert(&store, "behind", "order.placed");
        let outbox = ordered(&store).failing_head(head).start().await.expect("starts");
        sleep(MINUTE).await;
        let counts = store.counts().await.expect("counts");
        assert_eq!((counts.done, counts.dead), after_a_minute, "{head:?}");
        sleep(25 * HOUR).await;
        let counts = store.counts().await.expect("counts");
        assert_eq!((counts.done, counts.dead), (1, 1), "{head:?}");
        outbox.shutdown().await;
    }
}

/// In `partitioned`, the later events of its key wait for it, those of other keys do not.
#[tokio::test(start_paused = true)]
async fn an_event_that_nobody_knows_holds_up_its_key_only() {
    let store = store();
    let writer = Outbox::writer_only(store.clone()).start().await.expect("starts");
    let mut tx = store.begin();
    for (key, event_type) in [("a", "order.refunded"), ("a", "order.placed"), ("b", "order.placed")] {
        let event = Envelope::builder(event_type).key(key).payload_json("1").build().expect("valid");
        writer.write(&mut tx, event).await.expect("writes");
    }
    tx.commit();
    writer.shutdown().await;
    let outbox = Outbox::partitioned(store.clone()).handle_type("order.placed", |_: Delivery| async {});
    let outbox = outbox.unroutable(Unroutable::default()).start().await.expect("starts");
    sleep(MINUTE).await;
    let states = || store.inspect().rows().iter().map(|row| row.status.code()).collect::<Vec<_>>();
    assert_eq!(states(), [2, 0, 1]);
    outbox.shutdown().await;
    let knows = Outbox::partitioned(store.clone()).handle_all(|_: Delivery| async {}).start().await.expect("starts");
    sleep(MINUTE).await;
    assert_eq!(states(), [1, 1, 1], "a node that knows it goes on with the key");
    knows.shutdown().await;
}
