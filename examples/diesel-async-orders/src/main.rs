//! Orders on PostgreSQL with diesel-async: an order and its event are written in one transaction, and a handler sends the receipt.
//!
//! ```text
//! DATABASE_URL=postgres://postgres@127.0.0.1/postgres cargo run -p diesel-async-orders
//! ```
#![allow(clippy::print_stdout, reason = "a program that shows what it does")]

use std::error::Error;

use diesel::ExpressionMethods as _;
use diesel_async::pooled_connection::AsyncDieselConnectionManager;
use diesel_async::pooled_connection::deadpool::Pool;
use diesel_async::{AsyncPgConnection, RunQueryDsl as _, SimpleAsyncConnection as _};
use pillarbox::{Delivery, Event, HandlerError, Outbox, PostgresStore, Store as _};
use serde::{Deserialize, Serialize};

#[allow(missing_docs, reason = "what the macro makes has none")]
mod schema {
    diesel::table! {
        orders (id) {
            id -> BigInt,
            customer -> Text,
            total_cents -> BigInt,
        }
    }
}

use schema::orders;

type BoxError = Box<dyn Error + Send + Sync>;

#[derive(Serialize, Deserialize, Event)]
#[event(name = "order.placed", aggregate = "order", key = customer)]
struct OrderPlaced {
    customer: String,
    total_cents: i64,
}

async fn send_receipt(order: OrderPlaced, _: Delivery) -> Result<(), HandlerError> {
    println!("receipt for {}: {} cents", order.customer, order.total_cents);
    Ok(())
}

/// An order of nothing is refused after both rows were written: its event never existed.
async fn place(pool: &Pool<AsyncPgConnection>, outbox: &Outbox, order: OrderPlaced) -> Result<(), BoxError> {
    let mut tx = outbox.begin(pool).await?;
    let row = (orders::customer.eq(&order.customer), orders::total_cents.eq(order.total_cents));
    diesel::insert_into(orders::table).values(row).execute(&mut *tx).await?;
    outbox.write(&mut tx, &order).await?;
    if order.total_cents <= 0 {
        return Err("an order costs something".into());
    }
    Ok(tx.commit().await?)
}

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    let url = std::env::var("DATABASE_URL").map_err(|_| "DATABASE_URL names no database")?;
    let store = PostgresStore::connect(&url).await?;
    store.migrate().await?;
    let pool = Pool::builder(AsyncDieselConnectionManager::<AsyncPgConnection>::new(&url)).max_size(4).build()?;
    let table = "CREATE TABLE IF NOT EXISTS orders (id bigserial PRIMARY KEY, customer text NOT NULL, total_cents bigint NOT NULL)";
    pool.get().await?.batch_execute(table).await?;
    let outbox = Outbox::single_node(store).handle(send_receipt).start().await?;

    place(&pool, &outbox, OrderPlaced { customer: "ada".into(), total_cents: 1999 }).await?;
    let refused = place(&pool, &outbox, OrderPlaced { customer: "eve".into(), total_cents: 0 }).await;
    // What is in memory is still delivered.
    outbox.shutdown().await;
    refused.err().map(drop).ok_or_else(|| "an order of nothing was taken".into())
}
