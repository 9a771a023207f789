//! The pages as a probe and an operator ask for them, over HTTP.

#![allow(clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

use std::net::SocketAddr;
use std::time::Duration;

use axum::Router;
use pillarbox_axum::{Metrics, Pages};
use pillarbox_core::event::Envelope;
use pillarbox_core::handle::Delivery;
use pillarbox_engine::run::{Mode, Outbox};
use pillarbox_memory::MemoryStore;
use pillarbox_testkit::{Fault, FaultyStore, Operation, Recorder};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

/// A server with these pages beside one of a service's own.
async fn serve(pages: Router<()>) -> (SocketAddr, JoinSet<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("binds");
    let address = listener.local_addr().expect("has an address");
    let service = Router::new().nest("/outbox", pages);
    let mut tasks = JoinSet::new();
    tasks.spawn(async move { axum::serve(listener, service).await.expect("serves") });
    (address, tasks)
}

/// The status code, the head and the body of a page.
async fn page(address: SocketAddr, path: &str) -> (u16, String, String) {
    let mut stream = TcpStream::connect(address).await.expect("connects");
    let request = format!("GET {path} HTTP/1.1\r\nhost: test\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.expect("asks");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.expect("is answered");
    let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
    let status = head.split(' ').nth(1).and_then(|code| code.parse().ok()).expect("a status code");
    (status, head.to_ascii_lowercase(), body.to_owned())
}

async fn status(address: SocketAddr) -> Value {
    let (code, head, body) = page(address, "/outbox/status").await;
    assert_eq!(code, 200, "{body}");
    assert!(head.contains("cache-control: no-store"), "{head}");
    serde_json::from_str(&body).expect("JSON")
}

#[tokio::test]
async fn the_pages_of_an_outbox_that_delivers() {
    let store = MemoryStore::new();
    let recorder = Recorder::new();
    let outbox = Outbox::multi_node(store.clone()).handle_all(recorder.clone()).start().await.expect("starts");
    let mut transaction = outbox.begin(&store).await.expect("begins");
    let secret = Envelope::builder("order.placed").key("secret-key").payload_json("\"secret-payload\"");
    outbox.write(&mut transaction, secret.build().expect("an event")).await.expect("writes");
    let later = Envelope::builder("order.due").payload_json("{}").deliver_after(Duration::from_secs(3600));
    outbox.write(&mut transaction, later.build().expect("an event")).await.expect("writes");
    transaction.commit().await.expect("commits");
    recorder.wait_for_ends(1).await;

    let (address, _server) = serve(Pages::new(outbox.clone()).router()).await;
    let (code, _, body) = page(address, "/outbox/health/live").await;
    assert_eq!((code, body.as_str()), (200, "alive\n"));
    let (code, _, body) = page(address, "/outbox/health/ready").await;
    assert_eq!((code, body.as_str()), (200, "ready\n"));
    let status = status(address).await;
    assert_eq!((&status["mode"], &status["role"]), (&json!("multi_node"), &json!("active")), "{status}");
    assert_eq!((&status["ready"], &status["problems"]), (&json!(true), &json!([])), "{status}");
    assert_eq!((&status["backlog"]["delayed"], &status["backlog"]["dead"]), (&json!(1), &json!(0)), "{status}");
    assert!(!status.to_string().contains("secret"), "{status}");
    assert_eq!(page(address, "/outbox/metrics").await.0, 404, "there is no recorder");
    assert_eq!(page(address, "/outbox/nothing").await.0, 404);

    outbox.shutdown().await;
    assert_eq!(page(address, "/outbox/health/ready").await.2, "not ready: stopped\n");
    assert_eq!(page(address, "/outbox/health/live").await.0, 503);
}

#[tokio::test]
async fn a_public_listener_sees_probes_alone() {
    let outbox = Outbox::single_node(MemoryStore::new()).handle_all(Recorder::new()).start().await.expect("starts");
    let pages = Pages::new(outbox.clone()).metrics(Metrics::rendered_by(String::new));
    let (address, _server) = serve(pages.probes()).await;
    for (path, code) in [("health/live", 200), ("health/ready", 200), ("status", 404), ("metrics", 404)] {
        assert_eq!(page(address, &format!("/outbox/{path}")).await.0, code, "{path}");
    }
    outbox.shutdown().await;
}

#[tokio::test]
async fn a_table_that_cannot_be_counted_is_said_and_is_no_zero() {
    let store = FaultyStore::new(MemoryStore::new());
    let outbox = Outbox::builder(Mode::WriterOnly).store(store.clone()).start().await.expect("starts");
    store.set(Operation::Inspect, Fault::Refused);
    let (address, _server) = serve(Pages::new(outbox.clone()).router()).await;
    let first = status(address).await;
    assert_eq!((&first["backlog"], &first["role"]), (&Value::Null, &json!("writing")), "{first}");
    assert!(first["backlog_problem"].is_string(), "{first}");
    outbox.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn the_table_is_counted_once_in_five_seconds() {
    let store = FaultyStore::new(MemoryStore::new());
    let outbox = Outbox::builder(Mode::WriterOnly).store(store.clone()).start().await.expect("starts");
    let (address, _server) = serve(Pages::new(outbox.clone()).router()).await;
    let before = store.calls(Operation::Inspect);
    for _ in 0..20 {
        status(address).await;
    }
    assert_eq!(store.calls(Operation::Inspect), before + 1);
    tokio::time::advance(Duration::from_secs(5)).await;
    status(address).await;
    assert_eq!(store.calls(Operation::Inspect), before + 2);
    outbox.shutdown().await;
}

#[tokio::test]
async fn metrics_are_those_of_the_documentation() {
    let metrics = Metrics::install().expect("the only recorder of this process");
    let refused = Metrics::install().expect_err("there is one").to_string();
    assert!(refused.contains("one recorder in a process") && refused.contains("Metrics::rendered_by"), "{refused}");
    let recorder = Recorder::around(async |_: Delivery| ());
    let outbox = Outbox::single_node(MemoryStore::new()).handle_all(recorder).start().await.expect("starts");
    let (address, _server) = serve(Pages::new(outbox.clone()).metrics(metrics).router()).await;
    let (code, head, body) = page(address, "/outbox/metrics").await;
    assert_eq!(code, 200);
    assert!(head.contains("content-type: text/plain; version=0.0.4"), "{head}");
    assert!(body.contains("pillarbox_dispatch_success_total{"), "{body}");
    outbox.shutdown().await;
}
