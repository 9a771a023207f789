//! The tests that `docs/testing.md` goes through. They need PostgreSQL; each has a schema of its own.

#![allow(clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod database;
mod pages;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use pillarbox::retry::FixedBackoff;
use pillarbox_testkit::TestOutbox;
use serde_json::json;
use tested_orders::{FeedbackDue, Mailer, NewOrder, OrderPlaced, Shop, failed, outbox, place, replay_failed, routes};

use crate::database::{BoxError, Database, Test, with_database};

const DAY: Duration = Duration::from_secs(24 * 3600);

/// A mail service that fails while it is told to, and remembers what it was asked to send.
#[derive(Clone, Default)]
struct Mails {
    down: Arc<AtomicBool>,
    asked: Arc<Mutex<Vec<(String, String)>>>,
}

impl Mails {
    fn asked(&self) -> Vec<(String, String)> {
        self.asked.lock().expect("no test has panicked").clone()
    }
}

impl Mailer for Mails {
    fn send(&self, id: &str, text: &str) -> Result<(), BoxError> {
        self.asked.lock().expect("no test has panicked").push((id.to_owned(), text.to_owned()));
        if self.down.load(Ordering::SeqCst) { Err("the mail service is down".into()) } else { Ok(()) }
    }
}

/// The service's own outbox on the database of the test, with short pauses between attempts.
async fn start(database: &Database, mails: &Mails) -> Result<Test, BoxError> {
    let soon = FixedBackoff::new(Duration::from_millis(5))?;
    let build =
        |store| outbox(store, database.pool.clone(), Arc::new(mails.clone())).retry_policy(soon).max_attempts(3);
    Ok(TestOutbox::on(database.store.clone(), build).await?)
}

fn order(total_cents: i64) -> NewOrder {
    NewOrder { customer: "ada".to_owned(), total_cents }
}

#[tokio::test]
async fn an_order_and_its_event_are_written_in_one_transaction() {
    with_database(async |database| {
        let test = start(database, &Mails::default()).await?;
        let mut tx = test.begin(&database.pool).await?;
        let order_id = place(&test.writer(), &mut tx, &order(1250)).await?;

        let mut written = test.written_in(&mut tx).await?;
        let expected = OrderPlaced { order_id, customer: "ada".to_owned(), total_cents: 1250 };
        assert_eq!(written.take::<OrderPlaced>(), expected);
        written.assert_empty();

        tx.rollback().await?;
        assert_eq!(database.count("orders").await?, 0);
        test.committed().await?.assert_empty();
        test.shutdown().await;
        Ok(())
    })
    .await;
}

/// Posts an order to the service, which listens as in production.
async fn post(test: &Test, database: &Database, total_cents: i64) -> Result<(u16, String), BoxError> {
    // The client speaks plain HTTP here, and still asks for a provider when the workspace is built as one.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    let url = format!("http://{}/orders", listener.local_addr()?);
    let service = routes(Shop { pool: database.pool.clone(), outbox: (*test).clone() });
    let body = json!({"customer": "ada", "total_cents": total_cents});
    let request = async {
        let answer = reqwest::Client::new().post(url).json(&body).send().await?;
        Ok::<_, BoxError>((answer.status().as_u16(), answer.text().await?))
    };
    tokio::select! {
        answer = request => answer,
        ended = axum::serve(listener, service).into_future() => Err(format!("the service has ended: {ended:?}").into()),
    }
}

#[tokio::test]
async fn a_request_is_answered_and_its_handlers_do_their_work() {
    with_database(async |database| {
        let mails = Mails::default();
        let test = start(database, &mails).await?;
        let (status, order_id) = post(&test, database, 1250).await?;
        assert_eq!(status, 201);
        let order_id: i64 = order_id.parse()?;
        test.deliver_all().await?;

        assert_eq!(database.count("receipts").await?, 1);
        let texts: Vec<String> = mails.asked().into_iter().map(|(_, text)| text).collect();
        assert_eq!(texts, ["ada: a receipt for 1250 cents"]);

        let mut committed = test.committed().await?;
        assert_eq!(committed.take::<OrderPlaced>().order_id, order_id);
        let delay = committed.events()[0].delay().expect("it is delayed");
        assert!(delay > 6 * DAY && delay < 8 * DAY, "{delay:?}");
        assert_eq!(committed.take::<FeedbackDue>(), FeedbackDue { order_id, customer: "ada".to_owned() });
        committed.assert_empty();
        test.shutdown().await;
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn a_refused_order_writes_nothing() {
    with_database(async |database| {
        let test = start(database, &Mails::default()).await?;
        assert_eq!(post(&test, database, -1).await?.0, 422);
        assert_eq!(database.count("orders").await?, 0);
        test.committed().await?.assert_empty();
        test.shutdown().await;
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn a_receipt_that_was_given_up_is_sent_after_a_replay() {
    with_database(async |database| {
        let mails = Mails::default();
        mails.down.store(true, Ordering::SeqCst);
        let test = start(database, &mails).await?;
        post(&test, database, 1250).await?;
        test.deliver_all().await?;
        assert_eq!(failed(&test).await?.len(), 1);
        assert_eq!(database.count("receipts").await?, 0, "rolled back with each attempt");

        mails.down.store(false, Ordering::SeqCst);
        assert_eq!(replay_failed(&test).await?, 1);
        test.deliver_all().await?;
        assert_eq!(database.count("receipts").await?, 1);
        let mut ids: Vec<String> = mails.asked().into_iter().map(|(id, _)| id).collect();
        assert_eq!(ids.len(), 4, "three attempts, and the one after the replay");
        ids.dedup();
        assert_eq!(ids.len(), 1, "each with the same id");
        test.shutdown().await;
        Ok(())
    })
    .await;
}
