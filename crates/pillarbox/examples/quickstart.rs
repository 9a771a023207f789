//! A service that takes orders, on SQLite with sqlx: the order and its event in one transaction, the receipt by a handler.
//!
//! ```text
//! cargo run -p pillarbox --example quickstart
//! ```
#![allow(clippy::print_stdout, reason = "a program that shows what it does")]

use std::error::Error;
use std::time::Duration;

use pillarbox::{Delivery, Event, HandlerError, Outbox, SqliteStore, Store};
use serde::{Deserialize, Serialize};
use tokio::sync::mpsc;

#[derive(Debug, Serialize, Deserialize, Event)]
#[event(name = "order.placed", aggregate = "order", key = order_id)]
struct OrderPlaced {
    order_id: String,
    total_cents: i64,
}

impl OrderPlaced {
    fn new(order_id: &str, total_cents: i64) -> Self {
        Self { order_id: order_id.to_owned(), total_cents }
    }
}

/// Sends receipts. `delivery.id()` is the same for every delivery of an event, so a mail service can deduplicate by it.
async fn send_receipt(event: &OrderPlaced, delivery: &Delivery) -> Result<(), HandlerError> {
    if event.total_cents < 0 {
        return Err(HandlerError::unrecoverable("an order cannot cost less than nothing"));
    }
    println!("receipt for {}: {} cents ({:?} path)", event.order_id, event.total_cents, delivery.path());
    Ok(())
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let directory = tempfile::tempdir()?;
    let file = directory.path().join("shop.db");

    // One database file for both. The service writes through the store's connection: SQLite has one writer at a time, and
    // behind this one nobody starves. Any other pool on the file works too.
    let store = SqliteStore::open(file.to_str().ok_or("the path is no text")?).await?;
    store.migrate().await?;
    let pool = store.writer().clone();
    sqlx::query("create table orders (order_id text primary key, total_cents integer not null)").execute(&pool).await?;

    // The channel is only here to know when all receipts are sent.
    let (sent, mut receipts) = mpsc::unbounded_channel();
    let handler = move |event: OrderPlaced, delivery: Delivery| {
        let sent = sent.clone();
        async move {
            send_receipt(&event, &delivery).await?;
            sent.send(event.order_id).map_err(HandlerError::retryable)
        }
    };
    let outbox = Outbox::single_node(store).handle(handler).start().await?;

    // (a) The guard around the driver's transaction: commit and hot path in one step.
    let mut tx = outbox.begin(&pool).await?;
    place(&mut tx, "o-1", 1999).await?;
    outbox.write(&mut tx, &OrderPlaced::new("o-1", 1999)).await?;
    tx.commit().await?;

    // (b) The service's own transaction, committed through the outbox.
    let mut tx = pool.begin().await?;
    place(&mut tx, "o-2", 2499).await?;
    let receipt = outbox.write(&mut *tx, &OrderPlaced::new("o-2", 2499)).await?;
    outbox.commit(tx, receipt).await?;

    // What is rolled back never happened: neither the order nor the event.
    let mut tx = outbox.begin(&pool).await?;
    place(&mut tx, "o-3", 1).await?;
    outbox.write(&mut tx, &OrderPlaced::new("o-3", 1)).await?;
    tx.rollback().await?;

    let mut orders = Vec::new();
    for _ in 0..2 {
        let order = tokio::time::timeout(Duration::from_secs(10), receipts.recv()).await?;
        orders.push(order.ok_or("the handler is gone")?);
    }
    outbox.shutdown().await;
    if let Some(order) = receipts.recv().await {
        return Err(format!("{order} was handled, but it was rolled back or handled before").into());
    }
    orders.sort();
    println!("receipts sent for {}", orders.join(", "));
    Ok(())
}

async fn place(tx: &mut sqlx::SqliteConnection, order_id: &str, total_cents: i64) -> Result<(), sqlx::Error> {
    sqlx::query("insert into orders (order_id, total_cents) values (?, ?)")
        .bind(order_id)
        .bind(total_cents)
        .execute(tx)
        .await?;
    Ok(())
}
