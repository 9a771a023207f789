//! With the feature `otel` the trace of the writer goes on in the handler, with nothing said about it to the outbox.
#![cfg(feature = "otel")]
#![allow(clippy::expect_used, reason = "a test fails by panicking")]

use std::time::Duration;

use opentelemetry::trace::{
    SpanContext, SpanId, TraceContextExt as _, TraceFlags, TraceId, TraceState, TracerProvider as _,
};
use opentelemetry_sdk::trace::{InMemorySpanExporter, SdkTracerProvider, SpanData};
use pillarbox::event::EnvelopeBuilder;
use pillarbox::handle::on_batch;
use pillarbox::memory::MemoryStore;
use pillarbox::retry::ExponentialBackoff;
use pillarbox::run::SingleNode;
use pillarbox::write::insert;
use pillarbox::{Delivery, Envelope, Failure, Outbox};
use tracing::level_filters::LevelFilter;
use tracing::subscriber::DefaultGuard;
use tracing::{Instrument as _, info_span};
use tracing_opentelemetry::OpenTelemetrySpanExt as _;
use tracing_subscriber::layer::{Layer as _, SubscriberExt as _};

const GIVEN: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

/// What a user installs, with the exported spans at hand.
struct Tracing {
    exporter: InMemorySpanExporter,
    provider: SdkTracerProvider,
    _installed: DefaultGuard,
}

impl Tracing {
    fn on(level: LevelFilter) -> Self {
        let exporter = InMemorySpanExporter::default();
        let provider = SdkTracerProvider::builder().with_simple_exporter(exporter.clone()).build();
        let layer = tracing_opentelemetry::layer().with_tracer(provider.tracer("test")).with_filter(level);
        let _installed = tracing::subscriber::set_default(tracing_subscriber::registry().with(layer));
        Self { exporter, provider, _installed }
    }

    /// The finished spans of this name, in the order of their ends.
    fn spans(&self, name: &str) -> Vec<SpanData> {
        self.provider.force_flush().expect("flushes");
        let spans = self.exporter.get_finished_spans().expect("spans");
        spans.into_iter().filter(|span| span.name == name).collect()
    }

    fn span(&self, name: &str) -> SpanData {
        let mut spans = self.spans(name);
        assert_eq!(spans.len(), 1, "{name}");
        spans.remove(0)
    }
}

fn outbox(store: &MemoryStore) -> SingleNode {
    let short = Duration::from_millis(1);
    let backoff = ExponentialBackoff::new(short, short).expect("valid");
    Outbox::single_node(store.clone()).workers(1).retry_policy(backoff)
}

fn event() -> EnvelopeBuilder {
    Envelope::builder("order.placed").payload_json("1")
}

/// Does a piece of its own work, and fails the first time.
async fn receipt(delivery: Delivery) -> Result<(), String> {
    tokio::task::yield_now().await;
    async { tokio::task::yield_now().await }.instrument(info_span!("work")).await;
    if delivery.is_retry() { Ok(()) } else { Err("the first time".to_owned()) }
}

async fn write(outbox: &Outbox, store: &MemoryStore, event: EnvelopeBuilder, reported: bool) {
    let mut tx = store.begin();
    let written = outbox.write(&mut tx, event).await.expect("writes");
    tx.commit();
    if reported {
        outbox.notify_committed(written);
    }
}

async fn delivered(outbox: &Outbox, events: u64) {
    let delivered = async {
        while outbox.stats().done < events {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), delivered).await.expect("all are delivered");
}

async fn drained(outbox: &Outbox, events: u64) {
    delivered(outbox, events).await;
    outbox.shutdown().await;
}

/// Asserts that `child` is a direct child of `parent`, across a process boundary or not.
fn assert_child(child: &SpanData, parent: &SpanData) {
    assert_eq!(child.span_context.trace_id(), parent.span_context.trace_id());
    assert_eq!(child.parent_span_id, parent.span_context.span_id());
}

fn attribute(span: &SpanData, name: &str) -> String {
    let found = span.attributes.iter().find(|attribute| attribute.key.as_str() == name);
    found.map(|attribute| attribute.value.to_string()).unwrap_or_default()
}

/// Hot, cold and every retry: two attempts, each a child of the writer's span, each the parent of what the handler did.
#[tokio::test]
async fn the_handlers_span_is_a_child_of_the_writers_hot_cold_and_at_every_retry() {
    for path in ["hot", "cold"] {
        let tracing = Tracing::on(LevelFilter::DEBUG);
        let store = MemoryStore::new();
        let outbox = if path == "hot" {
            let outbox = outbox(&store).handle_all(receipt).start().await.expect("starts");
            // With one event delivered, the outbox is certain to take the next from memory.
            write(&outbox, &store, event(), true).await;
            delivered(&outbox, 1).await;
            tracing.exporter.reset();
            write(&outbox, &store, event(), true).instrument(info_span!("checkout")).await;
            delivered(&outbox, 2).await;
            outbox
        } else {
            // The writer and the one who delivers share nothing but the table.
            let writer = Outbox::writer_only(store.clone()).start().await.expect("starts");
            write(&writer, &store, event(), false).instrument(info_span!("checkout")).await;
            writer.shutdown().await;
            let outbox = outbox(&store).handle_all(receipt).start().await.expect("starts");
            delivered(&outbox, 1).await;
            outbox
        };
        outbox.shutdown().await;

        let writer = tracing.span("checkout");
        let (calls, work) = (tracing.spans("handle"), tracing.spans("work"));
        assert_eq!((calls.len(), work.len()), (2, 2), "{path}");
        assert_eq!(attribute(&calls[0], "path"), path);
        for (attempt, (call, work)) in calls.iter().zip(&work).enumerate() {
            assert_child(call, &writer);
            assert_child(work, call);
            assert_eq!(attribute(call, "attempt"), (attempt + 1).to_string());
            assert!(call.links.links.is_empty());
        }
    }
}

/// A fallback is called after the attempts, not by one of them.
#[tokio::test]
async fn the_fallbacks_span_is_a_child_of_the_writers() {
    let tracing = Tracing::on(LevelFilter::DEBUG);
    let store = MemoryStore::new();
    let fallback = async |_: Delivery, _: Failure| {
        async { tokio::task::yield_now().await }.instrument(info_span!("work")).await;
        pillarbox::Outcome::Done
    };
    let fails = async |_: Delivery| Err::<(), _>("always");
    let outbox = outbox(&store).max_attempts(2).handle_all(fails).fallback(fallback).start().await.expect("starts");
    write(&outbox, &store, event(), true).instrument(info_span!("checkout")).await;
    drained(&outbox, 1).await;

    let (writer, fallback) = (tracing.span("checkout"), tracing.span("fallback"));
    assert_child(&fallback, &writer);
    assert_child(&tracing.span("work"), &fallback);
    let calls = tracing.spans("handle");
    assert_eq!(calls.len(), 2);
    calls.iter().for_each(|call| assert_child(call, &writer));
}

#[tokio::test]
async fn a_batch_is_linked_to_its_writers_and_a_batch_of_one_is_a_child() {
    let tracing = Tracing::on(LevelFilter::DEBUG);
    let store = MemoryStore::new();
    let writer = Outbox::writer_only(store.clone()).start().await.expect("starts");
    for _ in 0..3 {
        write(&writer, &store, event(), false).instrument(info_span!("checkout")).await;
    }
    writer.shutdown().await;
    let handler = |deliveries: Vec<Delivery>| async move { vec![(); deliveries.len()] }.instrument(info_span!("work"));
    let outbox = outbox(&store).handler(on_batch("order.placed", 2, handler)).start().await.expect("starts");
    drained(&outbox, 3).await;

    let (writers, calls, work) = (tracing.spans("checkout"), tracing.spans("handle"), tracing.spans("work"));
    assert_eq!((writers.len(), calls.len(), work.len()), (3, 2, 2));
    let linked: Vec<_> = calls[0].links.iter().map(|link| link.span_context.span_id()).collect();
    assert_eq!(linked, [writers[0].span_context.span_id(), writers[1].span_context.span_id()]);
    assert_eq!(calls[0].parent_span_id, SpanId::INVALID);
    assert_child(&work[0], &calls[0]);
    assert_child(&calls[1], &writers[2]);
    assert!(calls[1].links.links.is_empty());
}

#[tokio::test]
async fn spans_of_the_handler_are_children_of_the_writers_where_the_engines_are_off() {
    let tracing = Tracing::on(LevelFilter::INFO);
    let store = MemoryStore::new();
    let outbox = outbox(&store).handle_all(receipt).start().await.expect("starts");
    write(&outbox, &store, event(), true).instrument(info_span!("checkout")).await;
    drained(&outbox, 1).await;
    let writer = tracing.span("checkout");
    let work = tracing.spans("work");
    assert_eq!((work.len(), tracing.spans("handle").len()), (2, 0));
    work.iter().for_each(|work| assert_child(work, &writer));
}

#[tokio::test]
async fn events_that_a_handler_writes_continue_the_trace() {
    let tracing = Tracing::on(LevelFilter::DEBUG);
    let store = MemoryStore::new();
    let writer = Outbox::writer_only(store.clone()).start().await.expect("starts");
    write(&writer, &store, event(), false).instrument(info_span!("checkout")).await;
    let (next, table) = (writer.clone(), store.clone());
    let handler = move |delivery: Delivery| {
        let (next, table) = (next.clone(), table.clone());
        async move {
            if delivery.event_type() == "order.placed" {
                let event = Envelope::builder("order.shipped").payload_json("2");
                write(&next, &table, event, false).await;
            }
        }
    };
    let outbox = outbox(&store).handle_all(handler).start().await.expect("starts");
    drained(&outbox, 2).await;
    writer.shutdown().await;
    let calls = tracing.spans("handle");
    assert_eq!(calls.len(), 2);
    assert_child(&calls[0], &tracing.span("checkout"));
    assert_child(&calls[1], &calls[0]);
}

#[tokio::test]
async fn headers_given_by_the_call_site_win_and_are_not_mixed_with_others() {
    let tracing = Tracing::on(LevelFilter::DEBUG);
    let store = MemoryStore::new();
    let outbox = outbox(&store).handle_all(async |_: Delivery| ()).start().await.expect("starts");
    let checkout = info_span!("checkout");
    let state = TraceState::from_key_value([("vendor", "value")]).expect("valid");
    let remote = SpanContext::new(TraceId::from(7), SpanId::from(8), TraceFlags::SAMPLED, true, state);
    checkout.set_parent(opentelemetry::Context::new().with_remote_span_context(remote)).expect("not begun");
    let written = async {
        write(&outbox, &store, event().header("traceparent", GIVEN), false).await;
        write(&outbox, &store, event(), false).await;
    };
    written.instrument(checkout).await;
    drained(&outbox, 2).await;

    let rows = store.inspect().rows();
    let headers = |row: usize| rows[row].event.headers().iter().map(|(_, value)| value.to_owned()).collect::<Vec<_>>();
    assert_eq!(headers(0), [GIVEN]);
    let checkout = tracing.span("checkout").span_context;
    let parent = format!("00-{}-{}-01", checkout.trace_id(), checkout.span_id());
    assert_eq!(headers(1), [parent, "vendor=value".to_owned()]);
    let calls = tracing.spans("handle");
    assert_eq!(calls[0].span_context.trace_id().to_string(), GIVEN[3..35]);
    assert_eq!(calls[0].parent_span_id.to_string(), GIVEN[36..52]);
    assert_eq!(calls[1].span_context.trace_state().header(), "vendor=value");
}

/// Where nothing says which trace an event is of, its handler's span begins one: not that of whoever lends the thread.
#[tokio::test]
async fn without_a_valid_header_the_handlers_span_begins_a_trace() {
    let tracing = Tracing::on(LevelFilter::DEBUG);
    let store = MemoryStore::new();
    let mut tx = store.begin();
    let malformed = ["nonsense", "", &GIVEN[..54], "00-00000000000000000000000000000000-00f067aa0ba902b7-01"];
    let mut events: Vec<_> = malformed.iter().map(|header| event().header("traceparent", *header)).collect();
    events.push(event());
    let events = events.into_iter().map(|event| event.build().expect("valid")).collect();
    insert(&store, &mut tx, events).await.expect("inserts");
    tx.commit();
    let lender = info_span!("lender").entered();
    let outbox = outbox(&store).handle_all(async |_: Delivery| ()).start().await.expect("starts");
    drained(&outbox, 5).await;
    drop(lender);
    let calls = tracing.spans("handle");
    assert_eq!(calls.len(), 5);
    for call in calls {
        assert_eq!(call.parent_span_id, SpanId::INVALID);
        assert_ne!(call.span_context.trace_id(), tracing.span("lender").span_context.trace_id());
    }
}

#[tokio::test]
async fn without_tracing_nothing_is_added() {
    let store = MemoryStore::new();
    let writer = Outbox::writer_only(store.clone()).start().await.expect("starts");
    write(&writer, &store, event(), false).instrument(info_span!("checkout")).await;
    writer.shutdown().await;
    assert!(store.inspect().rows()[0].event.headers().is_empty());
}
