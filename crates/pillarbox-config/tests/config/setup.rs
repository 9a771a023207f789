//! From settings to a running outbox, in every mode.

#![allow(clippy::expect_used, clippy::panic, reason = "a test's helpers fail as the test does")]

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use pillarbox_config::{Loader, Settings};
use pillarbox_core::clock::SystemClock;
use pillarbox_core::error::BoxError;
use pillarbox_core::event::Envelope;
use pillarbox_core::handle::{Delivery, HandlerError, Interceptor, Outcome};
use pillarbox_core::retry::{ExponentialBackoff, FixedBackoff, Retry};
use pillarbox_core::store::Admin;
use pillarbox_core::write::WriterHook;
use pillarbox_engine::handlers::{on_batch, on_type};
use pillarbox_engine::run::{Outbox, Role};
use pillarbox_memory::MemoryStore;
use tokio::sync::mpsc;
use tokio::time::timeout;

const SOON: Duration = Duration::from_secs(10);

#[derive(Default)]
struct Counting(AtomicU32, AtomicU32);

impl Interceptor for Counting {
    async fn before(&self, _delivery: &Delivery) -> Result<(), BoxError> {
        self.0.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    async fn after(&self, _delivery: &Delivery, _ended: Result<&Outcome, &HandlerError>) -> Result<(), BoxError> {
        self.1.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }
}

struct CountingWrites(Arc<AtomicU32>);

impl WriterHook for CountingWrites {
    fn before_write(&self, events: Vec<Envelope>) -> Result<Vec<Envelope>, BoxError> {
        self.0.fetch_add(1, Ordering::Relaxed);
        Ok(events)
    }
}

async fn write(outbox: &Outbox, store: &MemoryStore, event_type: &str) {
    let mut tx = outbox.begin(store).await.expect("begun");
    let event = Envelope::builder(event_type).payload_json("{}").build().expect("valid");
    outbox.write(&mut tx, event).await.expect("written");
    tx.commit().await.expect("committed");
}

/// The modes that deliver.
const DELIVERING: [&str; 4] = ["single_node", "multi_node", "partitioned", "ordered"];

fn of_mode(mode: &str) -> Settings {
    Loader::new().set("mode", mode).load().expect("valid")
}

#[tokio::test]
async fn the_same_code_delivers_in_every_mode_that_delivers() {
    for mode in DELIVERING {
        let store = MemoryStore::new();
        let (told, mut handled) = mpsc::unbounded_channel();
        let (intercepted, hooked) = (Arc::new(Counting::default()), Arc::new(AtomicU32::new(0)));
        let tell = |how: &'static str| {
            let told = told.clone();
            move |delivery: Delivery| {
                let sent = told.send((how, delivery.event_type().to_owned())).map_err(|_closed| "nobody listens");
                async move { sent }
            }
        };
        let batch = {
            let told = told.clone();
            move |deliveries: Vec<Delivery>| {
                let sent = deliveries.iter().map(|delivery| {
                    told.send(("batch", delivery.event_type().to_owned())).map_err(|_closed| "nobody listens")
                });
                let sent: Vec<_> = sent.collect();
                async move { sent }
            }
        };
        let outbox = of_mode(mode)
            .outbox()
            .store(store.clone())
            .handle_type("by.name", tell("name"))
            .handler(on_batch("in.batches", 10, batch))
            .handle_all(tell("all"))
            .interceptor(Arc::clone(&intercepted))
            .writer_hook(CountingWrites(Arc::clone(&hooked)))
            .retry_policy(ExponentialBackoff::default())
            .clock(SystemClock)
            .start()
            .await
            .expect("started");
        assert!(matches!(outbox.role(), Role::Active { .. }), "{mode}");
        for (event_type, how) in [("by.name", "name"), ("in.batches", "batch"), ("another", "all")] {
            write(&outbox, &store, event_type).await;
            let seen = timeout(SOON, handled.recv()).await.expect("soon");
            assert_eq!(seen, Some((how, event_type.to_owned())), "{mode}");
        }
        outbox.shutdown().await;
        assert_eq!(hooked.load(Ordering::Relaxed), 3, "{mode}");
        let calls = [&intercepted.0, &intercepted.1].map(|calls| calls.load(Ordering::Relaxed));
        assert_eq!(calls, [3, 3], "{mode}");
        assert_eq!(store.counts().await.expect("counted").done, 3, "{mode}");
    }
}

#[tokio::test]
async fn writer_only_does_not_call_the_handlers_that_are_registered() {
    let store = MemoryStore::new();
    let called = Arc::new(AtomicU32::new(0));
    let counting = Arc::clone(&called);
    let handler = move |_delivery: Delivery| {
        counting.fetch_add(1, Ordering::Relaxed);
        async {}
    };
    let hooked = Arc::new(AtomicU32::new(0));
    let outbox = of_mode("writer_only")
        .outbox()
        .store(store.clone())
        .handle_all(handler)
        .retry(Retry::fixed(Duration::from_secs(1)).max_attempts(3))
        .retry_policy(FixedBackoff::new(Duration::from_secs(1)).expect("valid"))
        .writer_hook(CountingWrites(Arc::clone(&hooked)))
        .start()
        .await
        .expect("started");
    assert_eq!(outbox.role(), Role::Writing);
    write(&outbox, &store, "by.name").await;
    assert_eq!(hooked.load(Ordering::Relaxed), 1);
    outbox.shutdown().await;
    assert_eq!(store.counts().await.expect("counted").new, 1);
    assert_eq!(called.load(Ordering::Relaxed), 0);
}

/// A program deployed to write only has to leave the rows that its handlers find where it is deployed to deliver.
#[tokio::test]
async fn handlers_with_names_have_rows_of_their_own_whoever_delivers() {
    let writers = [("writer_only", "true"), ("partitioned", "false")];
    for (mode, enabled) in writers {
        let store = MemoryStore::new();
        let (told, mut handled) = mpsc::unbounded_channel();
        let handler = |name: &'static str| {
            let told = told.clone();
            move |_: Delivery| {
                let sent = told.send(name).map_err(|_closed| "nobody listens");
                async move { sent }
            }
        };
        let mut loader = Loader::new().set("mode", mode);
        if mode != "writer_only" {
            loader = loader.set("enabled", enabled);
        }
        let setup = |settings: Settings| {
            let setup =
                settings.outbox().store(store.clone()).handler(on_type("placed", handler("mailer")).named("mailer"));
            setup.handler(on_type("placed", handler("ledger")).named("ledger"))
        };
        let writer = setup(loader.load().expect("valid")).start().await.expect("started");
        write(&writer, &store, "placed").await;
        writer.shutdown().await;
        assert_eq!(store.counts().await.expect("counted").new, 2, "{mode}: one row for each");
        let outbox = setup(of_mode("partitioned")).start().await.expect("started");
        let mut names = [None; 2];
        for name in &mut names {
            *name = timeout(SOON, handled.recv()).await.expect("soon");
        }
        names.sort_unstable();
        assert_eq!(names, [Some("ledger"), Some("mailer")], "{mode}");
        outbox.shutdown().await;
        assert_eq!(store.counts().await.expect("counted").done, 2, "{mode}");
    }
}

#[tokio::test]
async fn switched_off_nothing_is_delivered_and_writing_goes_on() {
    for mode in DELIVERING {
        let store = MemoryStore::new();
        let called = Arc::new(AtomicU32::new(0));
        let counting = Arc::clone(&called);
        let handler = move |_delivery: Delivery| {
            counting.fetch_add(1, Ordering::Relaxed);
            async {}
        };
        let settings = Loader::new().set("mode", mode).set("enabled", "false").load().expect("valid");
        let setup = settings.outbox().store(store.clone());
        let outbox = setup.handle_all(handler.clone()).start().await.expect("started");
        assert_eq!(outbox.role(), Role::Writing, "{mode}");
        assert!(outbox.health().is_ready(), "{mode}: {}", outbox.health());
        write(&outbox, &store, "order.placed").await;
        assert_eq!(store.nodes().await.expect("listed"), [], "{mode}: no node is there");
        outbox.shutdown().await;
        assert_eq!(store.counts().await.expect("counted").new, 1, "{mode}");
        assert_eq!(called.load(Ordering::Relaxed), 0, "{mode}");

        // Switched on again, what waited is delivered.
        let outbox = of_mode(mode).outbox().store(store.clone()).handle_all(handler).start().await.expect("started");
        let delivered = async {
            while store.counts().await.expect("counted").done == 0 {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        timeout(SOON, delivered).await.expect("soon");
        outbox.shutdown().await;
        assert_eq!(called.load(Ordering::Relaxed), 1, "{mode}");
    }
}

#[tokio::test]
async fn delivered_rows_are_deleted_if_asked() {
    for mode in DELIVERING {
        let store = MemoryStore::new();
        let settings = Loader::new().set("mode", mode).set("settle.delete_done", "true").load().expect("valid");
        let setup = settings.outbox().store(store.clone());
        let outbox = setup.handle_all(|_: Delivery| async {}).start().await.expect("started");
        write(&outbox, &store, "order.placed").await;
        let gone = async {
            while !store.inspect().rows().is_empty() {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        timeout(SOON, gone).await.unwrap_or_else(|_| panic!("{mode}: the row is still there"));
        outbox.shutdown().await;
        assert_eq!(outbox.stats().done, 1, "{mode}");
    }
}

#[tokio::test]
async fn failing_keys_are_handled_as_set() {
    for (failing_key, expected) in [("wait", 0), ("skip_dead", 1), ("continue", 1)] {
        let store = MemoryStore::new();
        let loader = Loader::new().set("mode", "partitioned").set("retry.max_attempts", "1");
        let settings = loader.set("retry.failing_key", failing_key).load().expect("valid");
        let handler = |delivery: Delivery| async move {
            if delivery.event_type() == "fails" { Err("the till is closed") } else { Ok(()) }
        };
        let outbox = settings.outbox().store(store.clone()).handle_all(handler).start().await.expect("started");
        let mut tx = outbox.begin(&store).await.expect("begun");
        let event = |event_type, key| Envelope::builder(event_type).key(key).payload_json("{}").build().expect("valid");
        for event in [event("fails", "a"), event("waits", "a"), event("is alone", "b")] {
            outbox.write(&mut tx, event).await.expect("written");
        }
        tx.commit().await.expect("committed");
        let done = async {
            let counts = async || store.counts().await.expect("counted");
            while counts().await.done < 1 + expected || counts().await.dead < 1 {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        timeout(SOON, done).await.unwrap_or_else(|_| panic!("{failing_key}"));
        outbox.shutdown().await;
        let counts = store.counts().await.expect("counted");
        assert_eq!((counts.dead, counts.done, counts.new), (1, 1 + expected, 1 - expected), "{failing_key}");
    }
}

#[tokio::test]
async fn settings_reach_the_engine() {
    let store = MemoryStore::new();
    let settings = Loader::new().set("retry.max_attempts", "1").set("ownership.node_name", "till-7").load().unwrap();
    let (told, mut nodes) = mpsc::unbounded_channel();
    let handler = move |delivery: Delivery| {
        let sent = told.send(delivery.node().to_string());
        async move {
            sent.map_err(BoxError::from)?;
            Err::<(), BoxError>("the till is closed".into())
        }
    };
    let outbox = settings.outbox().store(store.clone()).handle_all(handler).start().await.expect("started");
    write(&outbox, &store, "order.placed").await;
    let node = timeout(SOON, nodes.recv()).await.expect("soon").expect("a node");
    assert!(node.starts_with("till-7-"), "{node}");
    outbox.shutdown().await;
    assert_eq!(store.counts().await.expect("counted").dead, 1, "after one attempt");
}

#[tokio::test]
async fn builder_errors_are_reported() {
    let setup = of_mode("multi_node").outbox().store(MemoryStore::new());
    let handler = |_delivery: Delivery| async {};
    let error = setup.handle_type("a", handler).handle_type("a", handler).start().await.expect_err("refused");
    assert!(error.to_string().starts_with("two handlers are registered for event type `a`"), "{error}");

    let error = of_mode("ordered").outbox().store(MemoryStore::new()).start().await.expect_err("refused");
    assert!(error.to_string().starts_with("setting `handlers` is empty"), "{error}");
}

#[cfg(feature = "sqlite")]
#[tokio::test]
async fn the_store_is_opened_by_its_url_and_migrated_if_asked() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("shop.db");
    let url = format!("sqlite://{}", file.display());
    let loader = Loader::new().set("store.url", url).set("store.table", "shop_event");
    let handler = |_delivery: Delivery| async {};

    let refused = loader.clone().load().unwrap().outbox().handle_all(handler).start().await.expect_err("no table");
    assert!(refused.to_string().contains("could not"), "{refused}");

    let settings = loader.set("store.migrate", "true").load().unwrap();
    let outbox = settings.outbox().handle_all(handler).start().await.expect("started");
    assert_eq!(outbox.store().info().table, "shop_event");
    outbox.shutdown().await;
}

#[cfg(feature = "sqlite")]
#[tokio::test]
async fn outboxes_of_one_database_are_told_apart_by_prefixes() {
    let directory = tempfile::tempdir().expect("a directory");
    let url = format!("sqlite://{}", directory.path().join("shop.db").display());
    let loader = Loader::new().set("store.url", url).set("store.migrate", "true");
    let start = async |prefix: &str, table: &str| {
        let settings = loader.clone().set("store.table_prefix", prefix).set("store.table", table).load().unwrap();
        settings.outbox().handle_all(|_: Delivery| async {}).start().await.expect("started")
    };
    let outboxes = [
        start("shop_", "outbox_event").await,
        start("till_", "outbox_event").await,
        start("shop_", "events").await,
        // What is there already is left alone, and found.
        start("shop_", "outbox_event").await,
    ];
    let names = outboxes.each_ref().map(|outbox| outbox.store().info().table.clone());
    assert_eq!(names, ["shop_outbox_event", "till_outbox_event", "shop_events", "shop_outbox_event"]);
    for (outbox, nodes) in outboxes.iter().zip([2, 1, 1, 2]) {
        assert_eq!(outbox.store().nodes().await.expect("listed").len(), nodes, "{}", outbox.store().info().table);
    }
    for outbox in outboxes {
        outbox.shutdown().await;
    }
}

#[cfg(not(feature = "postgres"))]
#[tokio::test]
async fn a_database_that_was_not_built_in_is_named() {
    let mut settings = Settings::default();
    settings.store.url = Some("postgres://shop:geheim@db/shop".into());
    let error = settings.outbox().handle_all(|_: Delivery| async {}).start().await.expect_err("refused").to_string();
    assert_eq!(
        error,
        "setting `store.url` names PostgreSQL, which this program was built without; enable the feature `postgres`"
    );
}
