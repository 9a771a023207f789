//! The service as its provider meets it: deliveries that come several times, at once and after a crash.

#![allow(clippy::expect_used, clippy::panic, reason = "a test's helpers fail as the test does")]

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;

use futures_util::future::{join, join_all};
use reqwest::{Client, StatusCode};
use serde_json::json;
use sqlx::Connection as _;
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};

const DELIVERIES: i64 = 50;

/// The running service; it does not outlive the test.
struct Service {
    process: Mutex<Child>,
    url: String,
}

impl Service {
    fn start(database: &Path) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_inbox-webhook"));
        command.env("DATABASE", database).env("LISTEN", "127.0.0.1:0").env("NO_COLOR", "1").stdout(Stdio::piped());
        let mut process = command.spawn().expect("it starts");
        let lines = BufReader::new(process.stdout.take().expect("piped")).lines();
        let told = lines.map(|line| line.expect("text")).find_map(|line| {
            let (_, address) = line.split_once("listening at ")?;
            Some(address.to_owned())
        });
        Self { process: Mutex::new(process), url: format!("http://{}/webhooks/payments", told.expect("an address")) }
    }

    /// By SIGKILL, wherever it is.
    fn kill(&self) {
        let mut process = self.process.lock().expect("not poisoned");
        process.kill().and_then(|()| process.wait()).expect("it can be killed");
    }

    /// Announces a payment of as many cents as its number.
    async fn deliver(&self, client: &Client, number: i64) -> StatusCode {
        let request = client.post(&self.url).header("webhook-id", format!("msg-{number}"));
        let answer = request.json(&json!({"account": "ada", "cents": number})).send().await;
        answer.map_or(StatusCode::BAD_GATEWAY, |answer| answer.status())
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        self.kill();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn each_payment_is_booked_once_however_often_it_is_delivered() {
    let folder = tempfile::tempdir().expect("a folder");
    let database = folder.path().join("payments.db");
    // The client of these tests speaks plain HTTP, and still asks for a provider when the workspace is built as one.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let client = Client::new();
    let service = Service::start(&database);
    // Each of the first half three times at once.
    let first: Vec<i64> = (1..=DELIVERIES / 2).flat_map(|number| [number; 3]).collect();
    let answers = join_all(first.iter().map(|number| service.deliver(&client, *number))).await;
    assert!(answers.iter().all(|answer| *answer == StatusCode::NO_CONTENT), "{answers:?}");
    // All of them, and the service is killed once it has booked one more: some are booked and not answered, some not booked.
    let all: Vec<i64> = (1..=DELIVERIES).collect();
    let crash = async {
        while bookings(&database).await.0 <= DELIVERIES / 2 {
            tokio::task::yield_now().await;
        }
        service.kill();
    };
    let (_, ()) = join(join_all(all.iter().map(|number| service.deliver(&client, *number))), crash).await;
    let service = Service::start(&database);
    let again = join_all(all.iter().map(|number| service.deliver(&client, *number))).await;
    assert!(again.iter().all(|answer| *answer == StatusCode::NO_CONTENT), "{again:?}");
    assert_eq!(bookings(&database).await, (DELIVERIES, DELIVERIES * (DELIVERIES + 1) / 2));

    let nameless = client.post(&service.url).json(&json!({"account": "ada", "cents": 1})).send().await;
    assert_eq!(nameless.expect("an answer").status(), StatusCode::BAD_REQUEST);
    let long =
        client.post(&service.url).header("webhook-id", "m".repeat(256)).json(&json!({"account": "a", "cents": 1}));
    let answer = long.send().await.expect("an answer");
    assert_eq!(answer.status(), StatusCode::BAD_REQUEST);
    let text = answer.text().await.expect("text");
    assert_eq!(text, "the message id has 256 bytes, over the limit of 255; shorten it; a hash of it will do");
    assert_eq!(bookings(&database).await.0, DELIVERIES);
}

/// The number of bookings, and their sum.
async fn bookings(database: &Path) -> (i64, i64) {
    let options = SqliteConnectOptions::new().filename(database);
    let mut connection = SqliteConnection::connect_with(&options).await.expect("opens");
    let sums = sqlx::query_as("SELECT count(*), coalesce(sum(cents), 0) FROM booking");
    sums.fetch_one(&mut connection).await.expect("reads")
}
