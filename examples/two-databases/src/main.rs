//! Two outboxes on two databases in one process. They share a handler, which keeps nothing, and nothing else.
//!
//! An event lives in the database of the business rows it belongs to, since one transaction has to write both. A service
//! on two databases therefore has two outboxes: two stores, two nodes, two sets of settings.
//!
//! ```text
//! cargo run -p two-databases                  # two SQLite files in a temporary directory
//!
//! ORDERS_OUTBOX_STORE__URL=postgres://postgres@127.0.0.1/postgres cargo run -p two-databases
//! ```
#![allow(clippy::print_stdout, reason = "a program that shows what it does")]

mod department;

use pillarbox::{Delivery, Event};
use serde::{Deserialize, Serialize};

use crate::department::{BoxError, Department};

#[derive(Debug, Serialize, Deserialize, Event)]
#[event(name = "order.placed", aggregate = "order", key = order_id)]
struct OrderPlaced {
    order_id: String,
}

#[derive(Debug, Serialize, Deserialize, Event)]
#[event(name = "stock.taken", aggregate = "stock", key = article)]
struct StockTaken {
    article: String,
    pieces: u32,
}

/// The handler of both. Which outbox an event came from it need not know.
async fn announce(delivery: Delivery) {
    let payload = delivery.payload().as_json().unwrap_or("(binary)");
    println!("announced {} {payload}", delivery.event_type());
}

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    let directory = tempfile::tempdir()?;
    let orders = Department::open("ORDERS_OUTBOX_", &directory.path().join("orders.db"), announce).await?;
    let stock = Department::open("STOCK_OUTBOX_", &directory.path().join("stock.db"), announce).await?;

    orders.record("order o-1", &OrderPlaced { order_id: "o-1".to_owned() }).await?;
    stock.record("took 2 of a-7", &StockTaken { article: "a-7".to_owned(), pieces: 2 }).await?;

    // There is no transaction over both databases. What has to happen in both is written as an event in the first and
    // done by its handler in the second.
    orders.close().await;
    stock.close().await;
    println!("orders: {} delivered, stock: {} delivered", orders.delivered(), stock.delivered());
    Ok(())
}
