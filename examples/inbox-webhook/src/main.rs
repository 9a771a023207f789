//! A service that books the payments which a provider announces by webhooks, on SQLite with sqlx and axum. The provider calls again until it
//! hears that a delivery has arrived, so a payment may be announced several times. The inbox lets it be booked once.
//!
//! ```text
//! cd examples/inbox-webhook && DATABASE=payments.db LISTEN=127.0.0.1:3000 cargo run
//!
//! curl -i http://127.0.0.1:3000/webhooks/payments -H 'webhook-id: msg-1' --json '{"account": "ada", "cents": 1999}'
//! ```
//!
//! What is left out: a real service verifies the provider's signature before it believes anything.

mod payments;

use std::process::ExitCode;
use std::time::Duration;

use pillarbox::error::BoxError;
use pillarbox::{Inbox, SqliteStore, Store as _};
use tokio::net::TcpListener;

use crate::payments::Payments;

/// The time for which a delivery is remembered: longer than the provider tries.
const REMEMBERED: Duration = Duration::from_secs(30 * 24 * 3600);
const HOUR: Duration = Duration::from_secs(3600);

#[tokio::main]
async fn main() -> ExitCode {
    tracing_subscriber::fmt().with_env_filter("info").init();
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
    let store = SqliteStore::open(&variable("DATABASE")?).await?;
    // The inbox is a table beside the outbox's. This service writes no events, and so starts no outbox.
    store.migrate().await?;
    let pool = store.writer().clone();
    let inbox = Inbox::new(store, "payments")?;
    let payments = Payments::new(pool, inbox.clone()).await?;
    let listener = TcpListener::bind(variable("LISTEN")?).await?;
    tracing::info!("listening at {}", listener.local_addr()?);
    tokio::select! {
        ended = async { axum::serve(listener, payments.router()).await } => Ok(ended?),
        // No outbox runs here that would purge the inbox.
        never = inbox.purge_every(HOUR, REMEMBERED) => match never {},
        stopped = tokio::signal::ctrl_c() => Ok(stopped?),
    }
}
