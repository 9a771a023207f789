//! Orders on PostgreSQL with SeaORM: an order and its event are written in one transaction, and a handler sends the receipt.
//!
//! ```text
//! DATABASE_URL=postgres://postgres@127.0.0.1/postgres cargo run -p sea-orm-orders
//! ```
#![allow(clippy::print_stdout, reason = "a program that shows what it does")]

use std::error::Error;

use pillarbox::{Delivery, Event, HandlerError, Outbox, PostgresStore, Store as _};
use sea_orm::ActiveValue::Set;
use sea_orm::{ActiveModelTrait as _, ConnectionTrait as _, Database, DatabaseConnection};
use serde::{Deserialize, Serialize};

mod order {
    use sea_orm::entity::prelude::*;

    #[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
    #[sea_orm(table_name = "orders")]
    pub(crate) struct Model {
        #[sea_orm(primary_key)]
        pub(crate) id: i64,
        pub(crate) customer: String,
        pub(crate) total_cents: i64,
    }

    #[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
    pub(crate) enum Relation {}

    impl ActiveModelBehavior for ActiveModel {}
}

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
async fn place(db: &DatabaseConnection, outbox: &Outbox, order: OrderPlaced) -> Result<(), BoxError> {
    let mut tx = outbox.begin(db).await?;
    let row = order::ActiveModel {
        customer: Set(order.customer.clone()),
        total_cents: Set(order.total_cents),
        ..Default::default()
    };
    row.insert(&*tx).await?;
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
    let db = Database::connect(&url).await?;
    let table = "CREATE TABLE IF NOT EXISTS orders (id bigserial PRIMARY KEY, customer text NOT NULL, total_cents bigint NOT NULL)";
    db.execute_unprepared(table).await?;
    let outbox = Outbox::single_node(store).handle(send_receipt).start().await?;

    place(&db, &outbox, OrderPlaced { customer: "ada".into(), total_cents: 1999 }).await?;
    let refused = place(&db, &outbox, OrderPlaced { customer: "eve".into(), total_cents: 0 }).await;
    // What is in memory is still delivered.
    outbox.shutdown().await;
    db.close().await?;
    refused.err().map(drop).ok_or_else(|| "an order of nothing was taken".into())
}
