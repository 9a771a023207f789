//! The service beside a real NATS server and a collector: one request, one trace.

#![allow(clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]
#![cfg(unix)]

use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};

use async_nats::jetstream::{self, stream};
use pillarbox_programtest::Collector;
use pillarbox_testkit::publishers::Server;
use serde_json::json;

async fn nats() -> Server {
    let server = Server::start("nats-server", |place, command| {
        command
            .args(["-a", "127.0.0.1", "-p", &place.port.to_string(), "-js", "-sd"])
            .arg(place.directory.join("data"));
        Ok(())
    });
    server.await.expect("NATS starts")
}

#[tokio::test]
async fn a_request_and_the_brokers_confirmation_are_one_trace() {
    let (server, collector, folder) = (nats().await, Collector::start().await, tempfile::tempdir().expect("a folder"));
    let client = async_nats::connect(server.address().to_string()).await.expect("connects");
    let subjects = vec!["order.>".to_owned()];
    let stream = stream::Config { name: "ORDERS".to_owned(), subjects, ..stream::Config::default() };
    let stream = jetstream::new(client).create_stream(stream).await.expect("a stream");

    let mut service = Command::new(env!("CARGO_BIN_EXE_traced-orders"))
        .env("DATABASE", folder.path().join("orders.db"))
        .env("NATS_URL", server.address().to_string())
        .env("LISTEN", "127.0.0.1:0")
        .env("OTEL_EXPORTER_OTLP_ENDPOINT", &collector.endpoint)
        .env("NO_COLOR", "1")
        .stderr(Stdio::piped())
        .spawn()
        .expect("the service starts");
    let mut log = BufReader::new(service.stderr.take().expect("its log")).lines();
    let address = log.find_map(|line| Some(line.expect("text").split_once("listening on ")?.1.trim().to_owned()));
    let address = address.expect("the service says where it listens");
    // What it logs from here on has to go somewhere.
    let rest = std::thread::spawn(move || log.map_while(Result::ok).collect::<Vec<_>>());

    let _ = rustls::crypto::ring::default_provider().install_default();
    let order = reqwest::Client::new().post(format!("{address}/orders")).json(&json!({"total_cents": 1999}));
    let answer = order.send().await.expect("an answer");
    assert_eq!(answer.status(), 201);

    // The exporter sends every five seconds, and what is left when the service stops.
    let sent = collector.wait_for("publish orders", 1).await;
    let (requests, handled) = (collector.spans("POST /orders"), collector.spans("handle"));
    let ([request], [handled], [sent]) = (&*requests, &*handled, &*sent) else {
        panic!("{requests:#?} {handled:#?} {sent:#?}");
    };
    for child in [handled, sent] {
        assert_eq!((&child.trace_id, &child.parent_id), (&request.trace_id, &request.span_id), "{child:#?}");
        assert_eq!(child.service, "shop");
    }
    assert_eq!((sent.status, &*sent.attributes["messaging.destination.name"]), (1, "order.placed"), "{sent:#?}");
    // The consumer can go on with the same trace.
    let message = stream.get_raw_message(1).await.expect("the message");
    let parent = message.headers.get("traceparent").expect("the header").as_str();
    assert_eq!(parent, format!("00-{}-{}-01", request.trace_id, request.span_id));

    let stopped = Command::new("kill").args(["-INT", &service.id().to_string()]).status();
    assert!(stopped.expect("kill runs").success());
    assert!(service.wait().expect("ends").success(), "{:?}", rest.join());
}
