//! A web service that takes orders, on PostgreSQL with sqlx and axum. An order and its event are written in one
//! transaction; a handler sends the receipt.
//!
//! ```text
//! cd examples/axum-orders
//! PILLARBOX_STORE__URL=postgres://postgres@127.0.0.1/postgres cargo run
//!
//! curl -i http://127.0.0.1:3000/orders --json '{"customer": "ada", "total_cents": 1999}'
//! curl    http://127.0.0.1:3000/orders/1
//! ```
//!
//! The outbox is configured by `pillarbox.toml`, if it is there, and by variables; `LISTEN` is the service's own address, and
//! `LISTEN_INTERNAL` that of its health, status and metrics, for your own network:
//!
//! ```text
//! curl    http://127.0.0.1:9464/outbox/health/ready
//! curl    http://127.0.0.1:9464/outbox/status
//! curl    http://127.0.0.1:9464/outbox/metrics
//! ```

mod orders;
mod receipts;

use std::error::Error;
use std::process::ExitCode;

use axum::Router;
use pillarbox::Delivery;
use pillarbox::axum::{Metrics, Pages};
use pillarbox::config::Loader;
use sqlx::postgres::PgPoolOptions;
use sqlx::{Connection as _, PgConnection};
use tokio::net::TcpListener;
use tokio::signal;

use crate::orders::{OrderPlaced, Shop};
use crate::receipts::Receipts;

type BoxError = Box<dyn Error + Send + Sync>;

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
    let settings = Loader::new().optional_file("pillarbox.toml").environment().load()?;
    let url = settings.database_url()?;
    create_tables(url.as_str()).await?;
    // The service's own connections; the outbox has some of its own to the same database.
    let pool = PgPoolOptions::new().max_connections(8).connect(url.as_str()).await?;

    // Before the outbox starts, which makes the handles of its metrics then.
    let metrics = Metrics::install()?;
    let receipts = Receipts { pool: pool.clone() };
    let send = move |order: OrderPlaced, delivery: Delivery| receipts.clone().send(order, delivery);
    let outbox = settings.outbox().handle(send).start().await?;

    let internal = listen("LISTEN_INTERNAL", "127.0.0.1:9464").await?;
    tracing::info!("health, status and metrics at http://{}/outbox", internal.local_addr()?);
    let listener = listen("LISTEN", "127.0.0.1:3000").await?;
    tracing::info!("listening on http://{}", listener.local_addr()?);

    // A listener of its own, so that only your own network reaches them.
    let pages = Router::new().nest("/outbox", Pages::new(outbox.clone()).metrics(metrics).router());
    let shop = Shop { pool: pool.clone(), outbox: outbox.clone() };
    let service = async {
        axum::serve(listener, orders::routes(shop)).with_graceful_shutdown(told_to_stop()).await?;
        // First the requests have ended, now the handlers; only then may the connections go.
        outbox.shutdown().await;
        pool.close().await;
        Ok(())
    };
    // The pages answer to the last, so that a probe sees the service stop.
    tokio::select! {
        ended = service => ended,
        ended = axum::serve(internal, pages).into_future() => ended,
    }?;
    tracing::info!("stopped");
    Ok(())
}

/// Listens at the address that a variable names, or else at this one.
async fn listen(variable: &str, otherwise: &str) -> Result<TcpListener, BoxError> {
    let address = std::env::var(variable).unwrap_or_else(|_| otherwise.to_owned());
    Ok(TcpListener::bind(&address).await.map_err(|error| format!("cannot listen on {address}: {error}"))?)
}

/// Creates the tables, one instance at a time. It is the first to connect, and says at once if that is impossible.
async fn create_tables(url: &str) -> Result<(), BoxError> {
    let connected = PgConnection::connect(url).await;
    let mut connection = connected.map_err(|error| format!("cannot connect to the database: {error}"))?;
    let mut tx = connection.begin().await?;
    sqlx::raw_sql("select pg_advisory_xact_lock(hashtext('axum-orders'))").execute(&mut *tx).await?;
    sqlx::raw_sql(include_str!("../schema.sql")).execute(&mut *tx).await?;
    tx.commit().await?;
    connection.close().await?;
    Ok(())
}

/// Waits for Ctrl-C, or for the signal by which service managers and containers stop a process.
async fn told_to_stop() {
    #[cfg(unix)]
    let terminate = async {
        if let Ok(mut signals) = signal::unix::signal(signal::unix::SignalKind::terminate()) {
            signals.recv().await;
        } else {
            std::future::pending::<()>().await;
        }
    };
    #[cfg(not(unix))]
    let terminate = std::future::pending();
    tokio::select! {
        _ = signal::ctrl_c() => {}
        () = terminate => {}
    }
}
