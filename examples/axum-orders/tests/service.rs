//! The service as its users meet it: a process, HTTP, and a signal to stop. It needs PostgreSQL.

#![allow(clippy::expect_used, clippy::panic, reason = "a test's helpers fail as the test does")]
#![cfg(unix)]

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use pillarbox::event::Stamp;
use serde_json::{Value, json};
use sqlx::{AssertSqlSafe, Connection as _, Executor as _, PgConnection};
use tokio::time::{sleep, timeout};

const SOON: Duration = Duration::from_secs(20);

/// A schema of its own for the test, which is dropped at the end.
struct Schema {
    server: String,
    name: String,
}

impl Schema {
    async fn create() -> Self {
        let server = std::env::var("PILLARBOX_TEST_POSTGRES_URL")
            .unwrap_or_else(|_| "postgres://postgres@127.0.0.1:5432/postgres".to_owned());
        let name = format!("axum_orders_{}", Stamp::system().next_id().as_str().to_ascii_lowercase());
        let schema = Self { server, name };
        schema.on_server(format!("CREATE SCHEMA {}", schema.name)).await;
        schema
    }

    async fn on_server(&self, statement: String) {
        let mut connection = PgConnection::connect(&self.server).await.unwrap_or_else(|error| {
            panic!(
                "this test needs PostgreSQL and cannot reach it ({error}); run it by ./scripts/test, or name a server: \
                 PILLARBOX_TEST_POSTGRES_URL=postgres://USER@HOST:PORT/DATABASE"
            )
        });
        connection.execute(AssertSqlSafe(statement)).await.expect("the schema");
    }

    fn url(&self) -> String {
        in_schema(&self.server, &self.name)
    }
}

/// The same server, where all tables are in this schema.
fn in_schema(url: &str, schema: &str) -> String {
    let separator = if url.contains('?') { '&' } else { '?' };
    format!("{url}{separator}options=-c%20search_path%3D{schema}")
}

/// The running service; it does not outlive the test.
struct Service {
    process: Child,
    address: String,
    /// The place of its health, status and metrics.
    internal: String,
}

impl Service {
    fn start(schema: &Schema) -> Self {
        // The client of these tests speaks plain HTTP, and still asks for a provider when the workspace is built as one.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let mut process = Command::new(env!("CARGO_BIN_EXE_axum-orders"))
            .current_dir(env!("CARGO_MANIFEST_DIR"))
            .env("PILLARBOX_STORE__URL", schema.url())
            .env("LISTEN", "127.0.0.1:0")
            .env("LISTEN_INTERNAL", "127.0.0.1:0")
            .env("NO_COLOR", "1")
            .stdout(Stdio::piped())
            .spawn()
            .expect("the service starts");
        let mut log = BufReader::new(process.stdout.take().expect("its log")).lines();
        let mut said = |words: &str| {
            let line = log.find_map(|line| Some(line.expect("text").split_once(words)?.1.trim().to_owned()));
            line.expect("the service says where it listens")
        };
        let (internal, address) = (said("metrics at "), said("listening on "));
        // Read on, so that it can go on writing.
        std::thread::spawn(move || log.for_each(drop));
        Self { process, address, internal }
    }

    async fn stop(mut self) -> ExitStatus {
        let pid = self.process.id().to_string();
        assert!(Command::new("kill").args(["-TERM", &pid]).status().expect("kill").success());
        timeout(SOON, async {
            loop {
                match self.process.try_wait().expect("its state") {
                    Some(status) => return status,
                    None => sleep(Duration::from_millis(10)).await,
                }
            }
        })
        .await
        .expect("it stops")
    }

    async fn place(&self, order: &Value) -> reqwest::Response {
        let url = format!("{}/orders", self.address);
        reqwest::Client::new().post(url).json(order).send().await.expect("an answer")
    }

    async fn order(&self, id: i64) -> reqwest::Response {
        reqwest::get(format!("{}/orders/{id}", self.address)).await.expect("an answer")
    }

    /// A page of the internal listener, with its status code.
    async fn page(&self, path: &str) -> (u16, String) {
        let answer = reqwest::get(format!("{}/{path}", self.internal)).await.expect("an answer");
        (answer.status().as_u16(), answer.text().await.expect("text"))
    }

    async fn order_with_receipt(&self, id: i64) -> Value {
        let sent = async {
            loop {
                let order: Value = self.order(id).await.json().await.expect("an order");
                if order["receipt_sent"] == true {
                    return order;
                }
                sleep(Duration::from_millis(10)).await;
            }
        };
        timeout(SOON, sent).await.expect("the receipt is sent")
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        // It has stopped already unless the test has failed.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_order_gets_its_receipt() {
    let schema = Schema::create().await;
    let (first, second) = (Service::start(&schema), Service::start(&schema));

    let answer = first.place(&json!({ "customer": "ada", "total_cents": 1999 })).await;
    assert_eq!(answer.status(), 201);
    let id = answer.json::<Value>().await.expect("JSON")["order_id"].as_i64().expect("an id");
    let expected = json!({ "customer": "ada", "total_cents": 1999, "receipt_sent": true });
    assert_eq!(first.order_with_receipt(id).await, expected);
    assert_eq!(second.order_with_receipt(id).await, expected, "the instances share a database");

    assert_eq!(first.place(&json!({ "customer": "eve", "total_cents": -1 })).await.status(), 422);
    assert_eq!(first.order(id + 1).await.status(), 404);

    for (path, words) in [("health/live", "alive"), ("health/ready", "ready")] {
        assert_eq!(first.page(path).await, (200, format!("{words}\n")));
    }
    let (code, status) = first.page("status").await;
    let status: Value = serde_json::from_str(&status).expect("JSON");
    assert_eq!((code, &status["ready"], &status["problems"]), (200, &json!(true), &json!([])), "{status}");
    assert!(status["backlog"]["due"].is_u64() && !status.to_string().contains("ada"), "{status}");
    let (code, metrics) = first.page("metrics").await;
    assert!(code == 200 && metrics.contains("pillarbox_dispatch_success_total{"), "{metrics}");
    let outside = reqwest::get(format!("{}/outbox/status", first.address)).await.expect("an answer");
    assert_eq!(outside.status(), 404, "they are not on the service's own listener");

    assert!(first.stop().await.success());
    // The other goes on.
    let answer = second.place(&json!({ "customer": "bob", "total_cents": 1 })).await;
    let id = answer.json::<Value>().await.expect("JSON")["order_id"].as_i64().expect("an id");
    second.order_with_receipt(id).await;
    assert!(second.stop().await.success());
    schema.on_server(format!("DROP SCHEMA {} CASCADE", schema.name)).await;
}
