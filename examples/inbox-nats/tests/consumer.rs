//! The service beside a server of NATS and PostgreSQL: a stream with duplicates, and a process that is killed while it works.

#![allow(clippy::expect_used, clippy::panic, reason = "a test's helpers fail as the test does")]

use std::process::{Child, Command};
use std::time::Duration;

use async_nats::HeaderMap;
use async_nats::jetstream::{self, consumer::PullConsumer, stream};
use pillarbox::error::BoxError;
use pillarbox::event::Stamp;
use pillarbox_testkit::publishers::Server;
use sqlx::{AssertSqlSafe, Connection as _, Executor as _, PgConnection};
use tokio::time::{sleep, timeout};

const ORDERS: usize = 300;
const SOON: Duration = Duration::from_secs(60);

/// The running service; it does not outlive the test.
struct Service(Child);

impl Service {
    fn start(nats: &str, database: &str) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_inbox-nats"));
        Self(command.env("NATS_URL", nats).env("DATABASE_URL", database).spawn().expect("it starts"))
    }
}

impl Drop for Service {
    /// By SIGKILL, wherever it is.
    fn drop(&mut self) {
        self.0.kill().and_then(|()| self.0.wait()).expect("it can be killed");
    }
}

#[tokio::test]
async fn each_order_is_invoiced_once_whatever_comes_twice() -> Result<(), BoxError> {
    let broker = Server::start("nats-server", |place, command| {
        command.args(["--addr", "127.0.0.1", "--port", &place.port.to_string(), "--jetstream", "--store_dir"]);
        command.arg(&place.directory);
        Ok(())
    })
    .await?;
    let nats = format!("nats://{}", broker.address());
    let server = std::env::var("PILLARBOX_TEST_POSTGRES_URL")
        .unwrap_or_else(|_| "postgres://postgres@127.0.0.1:5432/postgres".to_owned());
    let mut connection = PgConnection::connect(&server)
        .await
        .unwrap_or_else(|error| panic!("this test needs PostgreSQL ({error}); run it by ./scripts/test"));
    let schema = format!("inbox_nats_{}", Stamp::system().next_id().as_str().to_ascii_lowercase());
    connection.execute(AssertSqlSafe(format!("CREATE SCHEMA {schema}; SET search_path = {schema}"))).await?;
    let separator = if server.contains('?') { '&' } else { '?' };
    let database = format!("{server}{separator}options=-c%20search_path%3D{schema}");

    let consumer = publish(&nats).await?;
    let ran = timeout(SOON, consume(&nats, &database, &mut connection, consumer)).await;
    let sums = sqlx::query_as("SELECT count(*), count(DISTINCT order_id), sum(total_cents)::bigint FROM invoice");
    let sums: Result<(i64, i64, i64), _> = sums.fetch_one(&mut connection).await;
    connection.execute(AssertSqlSafe(format!("DROP SCHEMA {schema} CASCADE"))).await?;
    ran??;
    let orders = i64::try_from(ORDERS)?;
    assert_eq!(sums?, (orders, orders, orders * (orders + 1) / 2));
    Ok(())
}

/// A stream that holds each order twice: the publisher tried again, and the stream looks at no id.
async fn publish(nats: &str) -> Result<PullConsumer, BoxError> {
    let jetstream = jetstream::new(async_nats::connect(nats).await?);
    let config = stream::Config { name: "ORDERS".into(), subjects: vec!["orders.>".into()], ..Default::default() };
    let stream = jetstream.create_stream(config).await?;
    for order in (1..=ORDERS).chain(1..=ORDERS) {
        let mut headers = HeaderMap::new();
        headers.insert("event-id", format!("event-{order}"));
        let body = format!(r#"{{"order_id": "o-{order}", "total_cents": {order}}}"#);
        jetstream.publish_with_headers("orders.placed", headers, body.into()).await?.await?;
    }
    let config = jetstream::consumer::pull::Config {
        durable_name: Some("billing".to_owned()),
        // What a killed process has not acknowledged comes again this soon.
        ack_wait: Duration::from_secs(1),
        ..Default::default()
    };
    Ok(stream.create_consumer(config).await?)
}

/// Lets two processes consume at once, kills each while it works, and starts others, until nothing is left.
async fn consume(
    nats: &str,
    database: &str,
    connection: &mut PgConnection,
    mut consumer: PullConsumer,
) -> Result<(), BoxError> {
    for share in [1, 2, 3] {
        let _services = [Service::start(nats, database), Service::start(nats, database)];
        while invoices(connection).await < ORDERS * share / 4 {
            sleep(Duration::from_millis(2)).await;
        }
    }
    let _service = Service::start(nats, database);
    loop {
        let info = consumer.info().await?;
        if info.num_pending == 0 && info.num_ack_pending == 0 {
            return Ok(());
        }
        sleep(Duration::from_millis(20)).await;
    }
}

/// The number of invoices; none before there is a table.
async fn invoices(connection: &mut PgConnection) -> usize {
    let count: Result<i64, _> = sqlx::query_scalar("SELECT count(*) FROM invoice").fetch_one(connection).await;
    count.map_or(0, |count| usize::try_from(count).expect("a number of rows"))
}
