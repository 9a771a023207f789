//! A service that writes an invoice for each order that a stream of NATS JetStream brings. JetStream delivers at least once: after a crash,
//! a lost acknowledgement or a publisher that tried again, an order comes twice. The inbox lets it be invoiced once.
//!
//! ```text
//! nats stream add ORDERS --subjects 'orders.>' --defaults
//! cd examples/inbox-nats
//! NATS_URL=nats://127.0.0.1:4222 DATABASE_URL=postgres://postgres@127.0.0.1/postgres cargo run
//!
//! nats pub orders.placed '{"order_id": "o-1", "total_cents": 1999}' -H 'event-id: 1'      # as often as you like
//! ```

mod billing;

use std::process::ExitCode;
use std::time::Duration;

use async_nats::jetstream::{self, AckKind, consumer::pull};
use futures_util::StreamExt as _;
use pillarbox::error::BoxError;
use pillarbox::{Inbox, PostgresStore, Store as _};
use sqlx::PgPool;

use crate::billing::Billing;

/// The time for which a message is remembered: longer than the stream keeps it, so that it cannot come again after that.
const REMEMBERED: Duration = Duration::from_secs(30 * 24 * 3600);
const HOUR: Duration = Duration::from_secs(3600);

#[tokio::main]
async fn main() -> ExitCode {
    tracing_subscriber::fmt().with_env_filter("info,async_nats=warn,sqlx=warn").init();
    match serve().await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tracing::error!("{error}");
            ExitCode::FAILURE
        }
    }
}

async fn serve() -> Result<(), BoxError> {
    let variable = |name: &str| std::env::var(name).map_err(|_| format!("set the variable {name}"));
    let (nats, database) = (variable("NATS_URL")?, variable("DATABASE_URL")?);
    let store = PostgresStore::connect(&database).await?;
    // The inbox is a table beside the outbox's. This service writes no events, and so starts no outbox.
    store.migrate().await?;
    let inbox = Inbox::new(store, "billing")?;
    let billing = Billing::new(PgPool::connect(&database).await?, inbox.clone()).await?;
    let stream = jetstream::new(async_nats::connect(nats).await?).get_stream("ORDERS").await?;
    let durable = pull::Config { durable_name: Some("billing".to_owned()), ..pull::Config::default() };
    let consumer = stream.get_or_create_consumer("billing", durable).await?;
    tracing::info!("consuming");
    tokio::select! {
        ended = consume(&consumer, &billing) => ended,
        // No outbox runs here that would purge the inbox.
        never = inbox.purge_every(HOUR, REMEMBERED) => match never {},
        stopped = tokio::signal::ctrl_c() => Ok(stopped?),
    }
}

/// Handles messages one by one. Each is acknowledged after its commit: what is not acknowledged comes again, and is passed over then.
async fn consume(consumer: &jetstream::consumer::PullConsumer, billing: &Billing) -> Result<(), BoxError> {
    let mut messages = consumer.messages().await?;
    while let Some(message) = messages.next().await {
        let message = message?;
        let answer = match billing.handle(&message).await {
            Ok(()) => AckKind::Ack,
            Err(error) => {
                tracing::warn!(subject = %message.subject, "not handled, comes again: {error}");
                AckKind::Nak(Some(Duration::from_secs(5)))
            }
        };
        message.ack_with(answer).await?;
    }
    Err("the subscription has ended".into())
}
