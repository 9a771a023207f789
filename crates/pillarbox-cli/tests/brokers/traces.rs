//! The relay's traces, as a collector of OpenTelemetry receives them.

use pillarbox_programtest::Collector;

use crate::endpoint::Endpoint;
use crate::nats;
use crate::relay::{Shop, pillarbox, stop};

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const PARENT: &str = "00f067aa0ba902b7";

impl Shop {
    /// Inserts an event that was written in a trace, as a service in another language does.
    async fn insert_traced(&self, id: &str, event_type: &str) {
        self.execute(&format!(
            "INSERT INTO outbox_event (event_id, event_type, payload, headers)
             VALUES ('{id}', '{event_type}', '{{}}', '{{\"traceparent\": \"00-{TRACE}-{PARENT}-01\"}}')"
        ))
        .await;
    }
}

#[tokio::test]
async fn a_message_is_a_span_of_its_events_trace_that_ends_with_the_brokers_confirmation() {
    let (server, collector, shop) = (nats::start().await, Collector::start().await, Shop::open().await);
    let _client = nats::client(&server, &["orders.>"]).await;
    let address = server.address();
    let file = shop.configure(
        "single_node",
        &format!(
            "[publisher.nats]\nkind = \"nats\"\nurl = \"{address}\"\nusername = \"relay\"\npassword = \"{}\"\n\
             [[route]]\nname = \"orders\"\npublisher = \"nats\"\nto = \"orders.{{event_type}}\"\n",
            nats::PASSWORD
        ),
    );
    shop.insert_traced("traced", "placed").await;
    shop.insert("placed", 1, 1).await;
    let mut relay = pillarbox(&["relay", "--config", file.to_str().unwrap()]);
    let relay = relay.env("OTEL_EXPORTER_OTLP_ENDPOINT", &collector.endpoint).spawn().unwrap();
    shop.wait_until("status = 1", 2).await;
    let ended = stop(relay).await;
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let spans = collector.spans("publish orders");
    // An event without a trace has none.
    assert_eq!(spans.len(), 1, "{spans:#?}");
    let span = &spans[0];
    assert_eq!((&*span.trace_id, &*span.parent_id, span.status), (TRACE, PARENT, 1), "{span:#?}");
    assert_eq!(span.service, "pillarbox-relay");
    let attribute = |name: &str| span.attributes.get(name).map(String::as_str);
    for (name, value) in [
        ("messaging.system", "nats"),
        ("messaging.destination.name", "orders.placed"),
        ("messaging.message.id", "traced"),
        ("route", "orders"),
        ("attempt", "1"),
    ] {
        assert_eq!(attribute(name), Some(value), "{name}: {span:#?}");
    }
}

#[tokio::test]
async fn a_message_that_is_refused_is_a_failed_span_and_the_log_names_its_trace() {
    let (collector, shop) = (Collector::start().await, Shop::open().await);
    let endpoint = Endpoint::start("422 Unprocessable Content").await;
    let file = shop.configure(
        "single_node",
        &format!(
            "[publisher.hooks]\nkind = \"webhook\"\nurl = \"http://127.0.0.1:{}/\"\nallow_private = true\n\
             [[route]]\nname = \"hooks\"\npublisher = \"hooks\"\nto = \"/\"\n",
            endpoint.port
        ),
    );
    shop.insert_traced("traced", "placed").await;
    let mut relay = pillarbox(&["relay", "--config", file.to_str().unwrap()]);
    let relay = relay.env("OTEL_EXPORTER_OTLP_ENDPOINT", &collector.endpoint).spawn().unwrap();
    shop.wait_until("status = 3", 1).await;
    let ended = stop(relay).await;
    let spans = collector.spans("publish hooks");
    let span = spans.first().unwrap_or_else(|| panic!("no span: {ended:?}"));
    assert_eq!((&*span.trace_id, &*span.parent_id, span.status), (TRACE, PARENT, 2), "{span:#?}");
    assert!(span.problem.contains("422"), "{span:#?}");
    let line = ended.stderr.lines().find(|line| line.contains("the event is DEAD"));
    assert!(line.is_some_and(|line| line.contains(&format!("trace_id=\"{TRACE}\""))), "{}", ended.stderr);
}

/// A collector that is away holds up neither events nor the end.
#[tokio::test]
async fn events_are_delivered_without_the_collector() {
    let (shop, endpoint) = (Shop::open().await, Endpoint::start("204 No Content").await);
    let file = shop.configure(
        "single_node",
        &format!(
            "[publisher.hooks]\nkind = \"webhook\"\nurl = \"http://127.0.0.1:{}/\"\nallow_private = true\n\
             [[route]]\nname = \"hooks\"\npublisher = \"hooks\"\nto = \"/\"\n",
            endpoint.port
        ),
    );
    shop.insert_traced("traced", "placed").await;
    let mut relay = pillarbox(&["relay", "--config", file.to_str().unwrap()]);
    let relay = relay.env("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:9").spawn().unwrap();
    shop.wait_until("status = 1", 1).await;
    let ended = stop(relay).await;
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(ended.stderr.contains("opentelemetry") && ended.stderr.contains("ExportError"), "{}", ended.stderr);
}

#[tokio::test]
async fn a_protocol_that_is_not_offered_is_refused() {
    let shop = Shop::open().await;
    let file = shop.configure("single_node", "");
    let mut relay = pillarbox(&["relay", "--config", file.to_str().unwrap()]);
    relay.env("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:9").env("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc");
    let output = relay.output().await.unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("OTEL_EXPORTER_OTLP_PROTOCOL is `grpc`"), "{said}");
}
