//! Events on their way from an outbox to publishers.

#![allow(clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

use std::sync::Arc;
use std::time::Duration;

use cloudevents::event::{AttributesReader as _, Data, SpecVersion};
use pillarbox_core::event::{Envelope, Headers};
use pillarbox_core::handle::Delivery;
use pillarbox_core::publisher::{Message, PublishError, Publisher, PublisherInfo};
use pillarbox_core::retry::ExponentialBackoff;
use pillarbox_core::row::Status;
use pillarbox_core::write::insert;
use pillarbox_engine::handlers::{Events, on_batch};
use pillarbox_engine::run::Outbox;
use pillarbox_memory::{MemoryRow, MemoryStore};
use pillarbox_routes::{Breaker, Format, Forwarder, Route, RouteState, Routes, Unrouted};
use pillarbox_testkit::{Answer, MemoryPublisher};
use tokio::time::Instant;

use crate::described::Described;

fn event(event_type: &str) -> Envelope {
    Envelope::json(event_type, r#"{"a": 1}"#).expect("valid")
}

/// An order of a tenant in a region.
fn order(event_type: &str, id: &str) -> Envelope {
    let headers: Headers =
        [("region", "eu-1"), ("event-id", "forged"), ("traceparent", "00-t-s-01")].into_iter().collect();
    let builder = Envelope::builder(event_type).aggregate("order", id).tenant_id("acme").headers(headers);
    builder.payload_json(r#"{"b":1,  "a":2}"#).build().expect("valid")
}

async fn store(events: Vec<Envelope>) -> MemoryStore {
    let store = MemoryStore::new();
    let mut tx = store.begin();
    insert(&store, &mut tx, events).await.expect("inserts");
    tx.commit();
    store
}

/// An outbox that passes on what the store has.
async fn outbox(store: &MemoryStore, forwarder: &Forwarder) -> Outbox {
    let short = Duration::from_millis(1);
    let backoff = ExponentialBackoff::new(short, short).expect("valid");
    let builder = Outbox::single_node(store.clone()).workers(4).max_attempts(3).retry_policy(backoff);
    let builder = builder.poll_interval(Duration::from_millis(5), Duration::from_millis(20));
    builder
        .type_pause(forwarder.type_pause())
        .handler(on_batch(Events::Others, 16, forwarder.clone()).for_any_name())
        .start()
        .await
        .expect("starts")
}

/// Runs until nothing is pending.
async fn run(events: Vec<Envelope>, routes: Routes) -> MemoryStore {
    let (count, store) = (events.len() as u64, store(events).await);
    let outbox = outbox(&store, &routes.build().expect("valid")).await;
    ended(&outbox, count).await;
    outbox.shutdown().await;
    store
}

/// Waits until so many events are over, at most twenty seconds.
async fn ended(outbox: &Outbox, events: u64) {
    let ended = async {
        while outbox.stats().done + outbox.stats().dead < events {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), ended).await.expect("all events are over");
}

fn targets(publisher: &MemoryPublisher) -> Vec<String> {
    let mut targets: Vec<String> = publisher.published().iter().map(|message| message.target.to_string()).collect();
    targets.sort();
    targets
}

fn errors(store: &MemoryStore) -> Vec<Option<String>> {
    store.inspect().rows().iter().map(|row| row.last_error.clone()).collect()
}

fn headers(message: &Message) -> Vec<(&str, &str)> {
    let mut headers: Vec<_> = message.headers.iter().map(|(name, value)| (&**name, &**value)).collect();
    headers.sort_unstable();
    headers
}

#[tokio::test]
async fn the_first_route_that_takes_an_event_has_it() {
    let (one, other) = (MemoryPublisher::new(), MemoryPublisher::new());
    let to = |publisher: &MemoryPublisher, target: &str| Route::to(Arc::new(publisher.clone()), target);
    let routes = Routes::new()
        .route(Route::drop().types(["debug.*"]))
        .route(to(&one, "eu.{event_type}").types(["order.*"]).header("region", "eu-*").tenants(["acme"]))
        .route(to(&one, "never").types(["order.*"]).header("region", "us-*"))
        .route(to(&one, "{aggregate_type}s").aggregates(["order"]).when(|event| event.aggregate_id() == Some("o-2")))
        .otherwise(to(&other, "{tenant_id|all}"));
    let events = vec![
        order("order.placed", "o-1"),
        event("debug.noise"),
        order("stock.moved", "o-2"),
        order("stock.moved", "o-3"),
        event("order.placed"),
    ];
    let store = run(events, routes).await;
    assert_eq!(targets(&one), ["eu.order.placed", "orders"]);
    assert_eq!(targets(&other), ["acme", "all"]);
    assert!(store.inspect().rows().iter().all(|row| row.status == Status::Done));
}

/// As with the headers that a route adds or leaves out.
#[tokio::test]
async fn the_name_of_a_header_is_compared_without_case() {
    let publisher = MemoryPublisher::new();
    let to = |target: &str| Route::to(Arc::new(publisher.clone()), target);
    let routes =
        Routes::new().route(to("eu.{header:REGION}").header("Region", "eu-*")).otherwise(to("{+header:Region|none}"));
    let with = |headers: &[(&str, &str)]| {
        let builder = Envelope::builder("order.placed").payload_json("{}");
        headers.iter().fold(builder, |builder, (name, value)| builder.header(*name, *value)).build().expect("valid")
    };
    let events = vec![
        with(&[("region", "eu-1")]),
        with(&[("Region", "us-1"), ("region", "eu-2")]),
        with(&[("REGION", "us-2")]),
        with(&[("regions", "eu-3")]),
    ];
    run(events, routes).await;
    assert_eq!(targets(&publisher), ["eu.eu-1", "none", "us-1", "us-2"]);
}

/// None of them replaces another.
#[tokio::test]
async fn of_several_conditions_all_have_to_be_true_and_changes_follow_each_other() {
    let publisher = MemoryPublisher::new();
    let of_type = |expected: &'static str| move |event: &Delivery| event.event_type() != expected;
    let signed = |sign: &'static str| {
        move |_: &Delivery, mut message: Message| {
            message.key = Some(format!("{}{sign}", message.key.unwrap_or_default()).into());
            if sign == "!" { Err("enough".to_owned()) } else { Ok(message) }
        }
    };
    let to = || Route::to(Arc::new(publisher.clone()), "{event_type}");
    let events = || ["a", "b", "c"].map(event).to_vec();
    run(events(), Routes::new().route(to().when(of_type("a")).when(of_type("b"))).unrouted(Unrouted::Drop)).await;
    assert_eq!(targets(&publisher), ["c"]);
    run(events(), Routes::new().route(to().only(of_type("a")).only(of_type("b")))).await;
    assert_eq!(targets(&publisher), ["c", "c"]);
    run(vec![order("d", "o-1")], Routes::new().route(to().map(signed("-1")).map(signed("-2")))).await;
    let keys: Vec<_> = publisher.published().iter().filter_map(|message| message.key.clone()).collect();
    assert_eq!(keys.last().map(|key| &**key), Some("o-1-1-2"));
    let store = run(vec![event("e")], Routes::new().route(to().map(signed("!")).map(signed("-2")))).await;
    assert_eq!(errors(&store), [Some("route `route-1`: enough".to_owned())], "the first error ends it");
}

#[tokio::test]
async fn an_event_that_no_route_takes_is_given_up_parked_or_dropped() {
    let publisher = MemoryPublisher::new();
    let routes =
        |unrouted| Routes::new().route(Route::to(Arc::new(publisher.clone()), "x").types(["a"])).unrouted(unrouted);
    let store = run(vec![event("b")], routes(Unrouted::Dead)).await;
    assert_eq!(errors(&store), [Some("no route takes event type `b` of aggregate type `__GLOBAL__`".to_owned())]);
    let store = run(vec![event("b")], routes(Unrouted::Drop)).await;
    assert_eq!(errors(&store), [None]);
    let store = self::store(vec![event("b")]).await;
    let outbox = outbox(&store, &routes(Unrouted::Park(Duration::from_secs(3600))).build().expect("valid")).await;
    while errors(&store) == [None] {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    outbox.shutdown().await;
    let row = &store.inspect().rows()[0];
    assert_eq!((row.status, row.attempts), (Status::Retry, 0));
    assert!(publisher.calls().is_empty());
}

#[tokio::test]
async fn a_raw_message_is_the_payload_and_says_which_event_it_is() {
    let publisher = MemoryPublisher::new();
    let route =
        Route::to(Arc::new(publisher.clone()), "x").without_headers(["trace*"]).with_header("from", "{tenant_id}");
    let event = order("order.placed", "o-1");
    let (id, at) = (event.id().to_string(), event.occurred_at().to_string());
    run(vec![event], Routes::new().route(route)).await;
    let [message] = &publisher.published()[..] else { panic!("one message") };
    assert_eq!((&*message.body, &*message.content_type), (&br#"{"b":1,  "a":2}"#[..], "application/json"));
    assert_eq!(message.key.as_deref(), Some("o-1"));
    let expected = [
        ("aggregate-id", "o-1"),
        ("aggregate-type", "order"),
        ("event-id", &*id),
        ("event-key", "o-1"),
        ("event-time", &*at),
        ("event-type", "order.placed"),
        ("from", "acme"),
        ("region", "eu-1"),
        ("tenant-id", "acme"),
    ];
    assert_eq!(headers(message), expected);
}

#[tokio::test]
async fn an_event_cannot_give_what_the_outbox_gives_in_any_case() {
    let names = ["Event-ID", "TENANT-ID", "CE-Id", "Ce-Subject", "ce-datacontenttype", "From", "X-Secret"];
    let own = [("Region", "1"), ("region", "2"), ("ce-dataschema", "3")];
    let forged = || names.into_iter().map(|name| (name, "forged")).chain(own).collect::<Headers>();
    // Without tenant and aggregate: what a message lacks is not the event's to add.
    let event = || Envelope::builder("note").headers(forged()).payload_json("{}").build().expect("valid");
    for (format, kept) in [
        (Format::Raw, &["CE-Id", "Ce-Subject", "Region", "ce-datacontenttype", "ce-dataschema", "region"][..]),
        (Format::CloudeventsBinary, &["Region", "ce-dataschema", "region"]),
        (Format::CloudeventsStructured, &["Region", "ce-dataschema", "region"]),
    ] {
        let publisher = MemoryPublisher::new();
        let route = Route::to(Arc::new(publisher.clone()), "x").format(format);
        let route = route.with_header("from", "the route").without_headers(["x-SECRET*"]);
        run(vec![event()], Routes::new().route(route)).await;
        let [message] = &publisher.published()[..] else { panic!("one message") };
        let foreign = headers(message)
            .into_iter()
            .map(|(name, _)| name)
            .filter(|name| names.iter().any(|forged| forged == name) || own.iter().any(|(own, _)| own == name));
        assert_eq!(foreign.collect::<Vec<_>>(), kept, "{format:?}");
        assert_eq!(message.header("from"), Some("the route"));
    }
}

#[tokio::test]
async fn no_value_of_an_event_leads_to_the_targets_of_the_broker_itself() {
    let event =
        |tenant: &str| Envelope::builder("$SYS.note").tenant_id(tenant).payload_json("{}").build().expect("valid");
    for (target, taken) in [
        ("{tenant_id}", &["acme"][..]),
        ("{+tenant_id}/x", &["acme/x"]),
        ("{event_type}", &[]),
        ("events/{tenant_id}", &["events/$SYS", "events/acme"]),
        ("$aws/{tenant_id}", &["$aws/$SYS", "$aws/acme"]),
        ("$aws/rules", &["$aws/rules", "$aws/rules"]),
    ] {
        let publisher = MemoryPublisher::new();
        let info = PublisherInfo::new("memory", "memory:").with_reserved('$');
        let route = Route::to(Arc::new(Described(publisher.clone(), info)), target);
        let store = run(vec![event("$SYS"), event("acme")], Routes::new().route(route)).await;
        assert_eq!(targets(&publisher), taken, "{target}");
        let refused: Vec<String> = errors(&store).into_iter().flatten().collect();
        assert_eq!(refused.len(), 2 - taken.len(), "{target}: {refused:?}");
        assert!(refused.iter().all(|error| error.contains("would begin with `$`")), "{target}: {refused:?}");
    }
}

#[tokio::test]
async fn a_payload_that_is_a_cloud_event_cannot_replace_the_one_in_the_headers() {
    let forged = || {
        let event =
            Envelope::builder("note").payload_bytes("APPLICATION/cloudevents+json", br#"{"id":"forged"}"#.to_vec());
        event.build().expect("valid")
    };
    for (format, sent) in [(Format::Raw, 1), (Format::CloudeventsBinary, 0), (Format::CloudeventsStructured, 1)] {
        let publisher = MemoryPublisher::new();
        let route = Route::to(Arc::new(publisher.clone()), "x").format(format);
        let store = run(vec![forged()], Routes::new().route(route)).await;
        assert_eq!(publisher.published().len(), sent, "{format:?}");
        let refused = errors(&store)[0].as_ref().is_some_and(|error| error.contains("another content type"));
        assert_eq!(refused, sent == 0, "{format:?}: {:?}", errors(&store));
        assert_eq!(store.inspect().rows()[0].status == Status::Dead, sent == 0, "{format:?}");
    }
}

#[tokio::test]
async fn a_cloud_event_has_its_attributes_as_headers_or_around_its_data() {
    let publisher = MemoryPublisher::new();
    let to = |target| Route::to(Arc::new(publisher.clone()), target).source("/shop").without_headers(["*"]);
    let event = || order("order.placed", "o-1");
    let binary = to("x").format(Format::CloudeventsBinary);
    run(vec![event()], Routes::new().route(binary)).await;
    let structured = to("x").format(Format::CloudeventsStructured).key("{event_type}");
    run(vec![event()], Routes::new().route(structured)).await;
    let [binary, structured] = &publisher.published()[..] else { panic!("two messages") };

    assert_eq!((&*binary.body, &*binary.content_type), (&br#"{"b":1,  "a":2}"#[..], "application/json"));
    for (name, value) in [
        ("ce-specversion", "1.0"),
        ("ce-id", binary.id.as_str()),
        ("ce-source", "/shop"),
        ("ce-type", "order.placed"),
        ("ce-subject", "o-1"),
        ("ce-partitionkey", "o-1"),
        ("ce-traceparent", "00-t-s-01"),
    ] {
        assert_eq!(binary.header(name), Some(value), "{name}");
    }
    assert_eq!(binary.headers.len(), 8, "those and the time: {:?}", binary.headers);

    assert_eq!(structured.content_type, "application/cloudevents+json");
    let body: serde_json::Value = serde_json::from_slice(&structured.body).expect("JSON");
    assert_eq!(body["specversion"], "1.0");
    assert_eq!(body["id"], structured.id.as_str());
    assert_eq!(body["partitionkey"], "order.placed");
    assert_eq!(body["data"]["b"], 1);
    assert!(String::from_utf8_lossy(&structured.body).contains(r#""data":{"b":1,  "a":2}"#), "verbatim");
}

/// With the SDK that CloudEvents publishes for Rust, which reads what an HTTP request has.
#[tokio::test]
async fn the_sdk_of_cloud_events_reads_both_modes() {
    let bytes = || Envelope::builder("photo").payload_bytes("image/x", vec![0, 255]).build().expect("valid");
    for format in [Format::CloudeventsBinary, Format::CloudeventsStructured] {
        let publisher = MemoryPublisher::new();
        let route = Route::to(Arc::new(publisher.clone()), "x").source("/shop").without_headers(["*"]).format(format);
        run(vec![order("order.placed", "o-1"), bytes()], Routes::new().route(route)).await;
        let [order, photo] = &publisher.published()[..] else { panic!("two messages") };

        let read = read_by_the_sdk(order);
        assert_eq!(read.specversion(), SpecVersion::V10);
        assert_eq!(
            (read.id(), read.ty(), &**read.source()),
            (order.id.as_str(), "order.placed", "/shop"),
            "{format:?}"
        );
        assert_eq!((read.subject(), read.datacontenttype()), (Some("o-1"), Some("application/json")), "{format:?}");
        assert!(read.time().is_some(), "{format:?}");
        let mut extensions: Vec<_> = read.iter_extensions().map(|(name, value)| (name, value.to_string())).collect();
        extensions.sort_unstable();
        assert_eq!(
            extensions,
            [("partitionkey", "o-1".to_owned()), ("traceparent", "00-t-s-01".to_owned())],
            "{format:?}"
        );
        let data: serde_json::Value = read.data().cloned().expect("data").try_into().expect("JSON");
        assert_eq!(data, serde_json::json!({"a": 2, "b": 1}), "{format:?}");

        let read = read_by_the_sdk(photo);
        assert_eq!((read.subject(), read.datacontenttype()), (None, Some("image/x")), "{format:?}");
        assert_eq!(read.data(), Some(&Data::Binary(vec![0, 255])), "{format:?}");
    }
}

fn read_by_the_sdk(message: &Message) -> cloudevents::Event {
    let mut headers = http::HeaderMap::new();
    headers.insert("content-type", message.content_type.parse().expect("a value"));
    for (name, value) in &message.headers {
        headers.insert(http::HeaderName::try_from(&**name).expect("a name"), value.parse().expect("a value"));
    }
    cloudevents::binding::http::to_event(&headers, message.body.to_vec()).expect("a CloudEvent")
}

#[tokio::test]
async fn bytes_stand_in_a_structured_cloud_event_as_base64() {
    let publisher = MemoryPublisher::new();
    let event = Envelope::builder("photo").payload_bytes("image/x", vec![0, 255]).build().expect("valid");
    let route = Route::to(Arc::new(publisher.clone()), "x").format(Format::CloudeventsStructured);
    run(vec![event], Routes::new().route(route)).await;
    let body: serde_json::Value = serde_json::from_slice(&publisher.published()[0].body).expect("JSON");
    assert_eq!((&body["data_base64"], &body["datacontenttype"]), (&"AP8=".into(), &"image/x".into()));
    assert!(body.get("data").is_none() && body.get("subject").is_none());
}

#[tokio::test]
async fn filters_and_mappings_are_asked_for_each_event() {
    let publisher = MemoryPublisher::new();
    let route = Route::to(Arc::new(publisher.clone()), "x").only(|event| event.event_type() != "noise").map(
        |event, mut message| {
            if event.event_type() == "odd" {
                return Err("cannot be mapped".to_owned());
            }
            message.target = "mapped".into();
            Ok(message)
        },
    );
    let store = run(vec![event("noise"), event("odd"), event("fine")], Routes::new().route(route)).await;
    assert_eq!(targets(&publisher), ["mapped"]);
    assert_eq!(errors(&store), [None, Some("route `route-1`: cannot be mapped".to_owned()), None]);
}

#[tokio::test]
async fn each_message_has_its_own_receipt() {
    let publisher = MemoryPublisher::new();
    publisher.answer_each(|message| match &*message.target {
        "large" => Answer::Fail(PublishError::permanent("is too large")),
        "odd" => Answer::Fail(PublishError::temporary("said 500")),
        _ => Answer::Confirm,
    });
    let route = Route::to(Arc::new(publisher.clone()), "{event_type}");
    let store = run(vec![event("fine"), event("large"), event("odd"), event("well")], Routes::new().route(route)).await;
    assert_eq!(targets(&publisher), ["fine", "well"]);
    let rows = store.inspect().rows();
    assert_eq!(rows.iter().map(|row| row.attempts).collect::<Vec<_>>(), [0, 0, 3, 0]);
    assert_eq!(rows[1].last_error.as_deref(), Some("route `route-1`: is too large"));
    assert_eq!(rows[2].last_error.as_deref(), Some("route `route-1`: said 500"));
}

#[tokio::test]
async fn a_destination_in_trouble_stays_alone_and_costs_no_attempt() {
    let (ill, well) = (MemoryPublisher::new(), MemoryPublisher::new());
    ill.answer(Answer::Fail(PublishError::unavailable("connection refused")));
    let pause = Duration::from_millis(400);
    let breaker = Breaker { failures: 5, pause, max_pause: pause };
    let forwarder = Routes::new()
        .route(Route::to(Arc::new(ill.clone()), "x").named("ill").types(["a"]).breaker(breaker))
        .route(Route::to(Arc::new(well.clone()), "x").named("well").types(["b"]))
        .build()
        .expect("valid");
    // Far more of those that cannot go than memory holds, and all of them before the others.
    let mut events: Vec<Envelope> = (0..3000).map(|_| event("a")).collect();
    events.extend((0..100).map(|_| event("b")));
    let store = store(events).await;
    let outbox = outbox(&store, &forwarder).await;
    ended(&outbox, 100).await;
    assert_eq!(well.published().len(), 100);
    let [ref status, _] = forwarder.status()[..] else { panic!("two routes") };
    assert!(
        matches!(&status.state, RouteState::Paused { problem, .. } if problem == "connection refused"),
        "{status:?}"
    );
    // More calls than workers: those that were on their way when it was paused are over.
    ill.wait_for_calls(5).await;
    let (since, attempted) = (Instant::now(), ill.calls().len());
    ill.wait_for_calls(attempted + 3).await;
    assert!(since.elapsed() >= 2 * pause, "one batch at the end of each pause, not three in {:?}", since.elapsed());
    // Even those that were sent, or were in memory when the route was paused: nothing of it is recorded.
    let untouched = |row: &MemoryRow| row.status == Status::New && row.attempts == 0 && row.last_error.is_none();
    let rows = store.inspect().rows();
    let held: Vec<&MemoryRow> = rows.iter().filter(|row| row.event.event_type() == "a").collect();
    assert_eq!(
        held.iter().filter(|row| untouched(row)).count(),
        3000,
        "of {}: {:?}",
        held.len(),
        held.iter().find(|row| !untouched(row))
    );

    ill.answer(Answer::Confirm);
    ended(&outbox, 3100).await;
    outbox.shutdown().await;
    assert_eq!((ill.published().len(), well.published().len()), (3000, 100), "each once");
    assert!(store.inspect().rows().iter().all(|row| row.status == Status::Done && row.attempts == 0));
    assert!(forwarder.status().iter().all(|status| status.state == RouteState::Delivering));
}

#[tokio::test]
async fn invalid_routes_are_refused_before_anything_runs() {
    let to = |target: &str| Route::to(Arc::new(MemoryPublisher::new()), target);
    let refused = |routes: Routes| routes.build().expect_err("refused").to_string();
    for (routes, expected) in [
        (Routes::new(), "there is no route at all"),
        (Routes::new().route(to("")), "`route-1`: setting `to` is empty"),
        (Routes::new().route(to("{evnt}")), "`{evnt}`, which does not exist"),
        (Routes::new().route(to("x").key("{")), "setting `key` has a `{` that is not closed"),
        (Routes::new().route(to("x").named("a").types(["t"])).route(to("y").named("a")), "the name of two routes"),
        (Routes::new().route(to("x")).route(to("y").types(["t"])), "`route-2`: it gets no event: route `route-1`"),
        (
            Routes::new().route(to("x").types(["order.*"])).route(to("y").types(["order.placed"]).tenants(["acme"])),
            "`route-2`: it gets no event: route `route-1` before it takes all that it asks for",
        ),
        (
            Routes::new()
                .route(to("x").types(["a.*"]).header("h", "v*"))
                .route(to("x").types(["b"]))
                .route(to("y").types(["b", "a.b"]).header("h", "v1")),
            "`route-3`: it gets no event: route `route-2` or route `route-1` before it",
        ),
        (Routes::new().otherwise(to("x").types(["t"])), "`default`: setting `otherwise` asks for certain events"),
        (Routes::new().route(to("x").tenants(Vec::<String>::new())), "setting `tenants` is empty"),
        (Routes::new().route(to("x")).route(to("y").types([""; 0])), "`route-2`: setting `types` is empty"),
        (Routes::new().route(Route::drop().aggregates([""; 0])), "leave it out to take everything"),
        (Routes::new().otherwise(to("x").tenants([""; 0])), "`default`: setting `tenants` is empty"),
        (Routes::new().route(to("x").concurrency(0)), "setting `concurrency` is 0"),
        (Routes::new().route(to("x").rate(0)), "setting `rate` is 0"),
        (Routes::new().route(to("x").with_header("event-id", "y")), "`with_headers` names `event-id`"),
        (
            Routes::new().route(to("x").format(Format::CloudeventsBinary).with_header("ce-id", "y")),
            "`with_headers` names `ce-id`",
        ),
        (
            Routes::new().route(to("x").without_headers(["region", "Tenant-Id"])),
            "setting `without_headers` names `Tenant-Id`, a header of the format",
        ),
        (
            Routes::new().route(to("x").format(Format::CloudeventsBinary).without_headers(["ce-id"])),
            "setting `without_headers` names `ce-id`, a header of the format",
        ),
        (
            Routes::new().route(to("x").breaker(Breaker { failures: 0, ..Breaker::default() })),
            "setting `breaker.failures` is 0; set 1 or more",
        ),
    ] {
        let error = refused(routes);
        assert!(error.contains(expected), "{error}");
    }
    assert!(refused(Routes::new()).starts_with("there is no route at all; add one"), "no route is named");
    for reachable in [
        Routes::new().route(to("x").types(["order.*"])).route(to("y").types(["*.placed"])),
        Routes::new().route(to("x").types(["order.placed"])).route(to("y").types(["order.*"])),
        Routes::new().route(to("x").tenants(["*"])).route(to("y")),
        Routes::new().route(to("x").types(["a"]).when(|_| true)).route(to("y").types(["a"])),
        Routes::new().route(to("x").header("h", "v")).route(to("y").header("h", "v*")),
        Routes::new().route(to("x").aggregates(["order"])).route(to("y").types(["a"])),
        Routes::new().route(to("x").without_headers(["tenant-*", "*", "ce-id", "traceparent", "x-event-id"])),
    ] {
        reachable.build().expect("the second one takes what the first one does not");
    }
}

#[tokio::test]
async fn a_check_asks_each_broker_once_for_all_that_is_fixed() {
    let (one, other) = (MemoryPublisher::new(), MemoryPublisher::new());
    one.only_targets(["there"]);
    let shared: Arc<dyn Publisher> = Arc::new(one);
    let routes = Routes::new()
        .route(Route::to(Arc::clone(&shared), "there").types(["a"]))
        .route(Route::to(Arc::clone(&shared), "{event_type}").types(["b"]))
        .route(Route::to(shared, "missing").named("lost").types(["c"]))
        .route(Route::to(Arc::new(other), "there"));
    let errors = routes.build().expect("valid").check().await.expect_err("one target is missing");
    let [error] = &errors[..] else { panic!("one broker complains: {errors:?}") };
    let text = error.to_string();
    assert!(text.contains("missing") && text.contains("`route-1`, `route-2`, `lost`"), "{text}");
}
