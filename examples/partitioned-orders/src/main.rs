//! Orders go through their stages, and whoever follows an order is told of them in their order: placed, paid, shipped. Two
//! nodes share the orders between them, as two instances of a service would.
//!
//! ```text
//! cargo run -p partitioned-orders
//! ```
//!
//! One order's payment fails at its first attempt. Its shipment waits until it has succeeded; the other orders go on.
#![allow(clippy::print_stdout, reason = "a program that shows what it does")]

mod logbook;

use std::error::Error;
use std::path::Path;
use std::time::Duration;

use pillarbox::{Admin as _, Delivery, Event, Outbox, SqliteStore, Store as _};
use serde::{Deserialize, Serialize};
use tokio::time::sleep;

use crate::logbook::Logbook;

type BoxError = Box<dyn Error + Send + Sync>;

const ORDERS: u32 = 20;
const STAGES: [&str; 3] = ["placed", "paid", "shipped"];
/// The order whose payment does not succeed at once.
const UNLUCKY: &str = "o-7";

/// The key decides what keeps its order: events of one order do, events of two orders do not.
#[derive(Debug, Serialize, Deserialize, Event)]
#[event(name = "order.moved", aggregate = "order", key = order_id)]
struct OrderMoved {
    order_id: String,
    stage: String,
}

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    let directory = tempfile::tempdir()?;
    let file = directory.path().join("shop.db");
    let logbook = Logbook::default();

    // Two stores with connections of their own, as two processes have. SQLite files can be shared by the processes of one
    // machine; with PostgreSQL, MySQL or MariaDB the nodes would be anywhere.
    let (store, first) = node("first", &file, &logbook).await?;
    let (_, second) = node("second", &file, &logbook).await?;
    both_have_their_share(&store).await?;

    for stage in STAGES {
        for order in 1..=ORDERS {
            let moved = OrderMoved { order_id: format!("o-{order}"), stage: stage.to_owned() };
            let mut tx = first.begin(store.writer()).await?;
            // The business rows of the order would be written here.
            first.write(&mut tx, &moved).await?;
            tx.commit().await?;
        }
    }

    while store.backlog().await?.due > 0 || store.backlog().await?.delayed > 0 {
        sleep(Duration::from_millis(20)).await;
    }
    first.shutdown().await;
    second.shutdown().await;
    print!("{}", logbook.by_order());
    Ok(())
}

async fn node(name: &str, file: &Path, logbook: &Logbook) -> Result<(SqliteStore, Outbox), BoxError> {
    let store = SqliteStore::open(&file.display().to_string()).await?;
    store.migrate().await?;
    let logbook = logbook.clone();
    let follow = move |event: OrderMoved, delivery: Delivery| {
        let logbook = logbook.clone();
        async move { follow(&event, &delivery, &logbook) }
    };
    let outbox = Outbox::partitioned(store.clone())
        .node_name(name)
        // What the other node writes is found by looking; a commit of its own wakes a node at once.
        .poll_interval(Duration::from_millis(20), Duration::from_millis(200))
        .handle(follow)
        .start()
        .await?;
    Ok((store, outbox))
}

/// The handler. An error keeps the later events of this order waiting until another attempt succeeds.
fn follow(event: &OrderMoved, delivery: &Delivery, logbook: &Logbook) -> Result<(), BoxError> {
    if event.order_id == UNLUCKY && event.stage == "paid" && !delivery.is_retry() {
        return Err("the bank does not answer".into());
    }
    logbook.note(&event.order_id, &event.stage, delivery.node().as_str());
    Ok(())
}

/// A node that starts takes what is free; what the other one has it is given within a second.
async fn both_have_their_share(store: &SqliteStore) -> Result<(), BoxError> {
    while store.nodes().await?.iter().filter(|node| node.partitions == 128).count() < 2 {
        sleep(Duration::from_millis(20)).await;
    }
    Ok(())
}
