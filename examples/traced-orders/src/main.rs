//! A web service whose requests can be followed to the broker: a request writes an order and its event in one transaction, the
//! outbox sends the event to NATS, and all of it is one trace, from the request to the broker's confirmation.
//!
//! ```text
//! nats stream add ORDERS --subjects 'order.>' --defaults
//! cd examples/traced-orders
//! NATS_URL=nats://127.0.0.1:4222 OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:4318 cargo run
//!
//! curl -i http://127.0.0.1:3000/orders --json '{"total_cents": 1999}'
//! ```
//!
//! Any collector that takes OTLP over HTTP shows the trace, Jaeger for one. Without the variable nothing is sent to one.

mod orders;
mod traces;

use std::io::Write as _;
use std::process::ExitCode;
use std::sync::Arc;

use pillarbox::error::BoxError;
use pillarbox::handle::{Events, on_batch};
use pillarbox::publishers::nats::{NatsOptions, NatsPublisher};
use pillarbox::routes::{Route, Routes};
use pillarbox::{Outbox, SqliteStore, Store as _};
use tokio::net::TcpListener;

use crate::orders::Shop;

#[tokio::main]
async fn main() -> ExitCode {
    let provider = match traces::install() {
        Ok(provider) => provider,
        Err(error) => {
            // There is no log yet.
            let _ = writeln!(std::io::stderr(), "traces cannot be sent: {error}");
            return ExitCode::FAILURE;
        }
    };
    let ended = serve().await;
    // What is not sent yet. It waits for the collector, which has no business on a thread of the runtime.
    let flushed = tokio::task::spawn_blocking(move || provider.shutdown()).await;
    if let Err(error) = ended {
        tracing::error!("{error}");
        return ExitCode::FAILURE;
    }
    if let Ok(Err(error)) = flushed {
        tracing::warn!("the last traces could not be sent: {error}");
    }
    ExitCode::SUCCESS
}

async fn serve() -> Result<(), BoxError> {
    let variable = |name: &str, otherwise: &str| std::env::var(name).unwrap_or_else(|_| otherwise.to_owned());
    let store = SqliteStore::open(&variable("DATABASE", "orders.db")).await?;
    store.migrate().await?;
    let pool = store.writer().clone();
    orders::create_table(&pool).await?;

    let nats = NatsPublisher::new(NatsOptions::new(variable("NATS_URL", "nats://127.0.0.1:4222")))?;
    let forwarder = Routes::new().route(Route::to(Arc::new(nats), "{event_type}").named("orders")).build()?;
    let outbox = Outbox::single_node(store)
        .type_pause(forwarder.type_pause())
        .handler(on_batch(Events::Others, 256, forwarder))
        .start()
        .await?;

    let listener = TcpListener::bind(variable("LISTEN", "127.0.0.1:3000")).await?;
    tracing::info!("listening on http://{}", listener.local_addr()?);
    let shop = Shop { pool, outbox: outbox.clone() };
    axum::serve(listener, orders::routes(shop)).with_graceful_shutdown(told_to_stop()).await?;
    outbox.shutdown().await;
    Ok(())
}

async fn told_to_stop() {
    let _ended = tokio::signal::ctrl_c().await;
}
