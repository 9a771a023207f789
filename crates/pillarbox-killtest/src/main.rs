//! A service that books payments until it is killed: `pillarbox-killtest-worker URL MODE COMMIT`.
//!
//! Each event `payment` becomes one row of the table `booking`, and one event `booked`. `COMMIT` names the transaction of both:
//!
//! - `together`: the one in which the payment becomes DONE
//! - `held`: the same, and before each commit the worker writes the line `completed` and waits for a line of standard input or for its end
//! - `apart`: one of the handler's own, before the payment becomes DONE. A kill in between books it twice: the mistake that the tests must
//!   be able to see.

mod held;
mod mysql;
mod postgres;
mod sqlite;

use std::error::Error;
use std::time::Duration;

use pillarbox::handle::Registration;
use pillarbox::handle::on_type;
use pillarbox::run::Mode;
use pillarbox::{Delivery, Envelope, Outbox, Store};

type BoxError = Box<dyn Error + Send + Sync>;

/// The transaction in which a payment is booked.
#[derive(Debug, Clone, Copy)]
enum Commit {
    Together,
    Held,
    Apart,
}

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [url, mode, commit] = &*args else { return Err("expected: URL MODE COMMIT".into()) };
    let mode = match &**mode {
        "multi_node" => Mode::MultiNode,
        "partitioned" => Mode::Partitioned,
        other => return Err(format!("`{other}` is not multi_node or partitioned").into()),
    };
    let commit = match &**commit {
        "together" => Commit::Together,
        "held" => Commit::Held,
        "apart" => Commit::Apart,
        other => return Err(format!("`{other}` is not together, held or apart").into()),
    };
    if url.starts_with("postgres:") {
        let (store, book) = postgres::open(url, commit).await?;
        serve(store, mode, book).await
    } else if url.starts_with("mysql:") {
        let (store, book) = mysql::open(url, commit).await?;
        serve(store, mode, book).await
    } else {
        let (store, book) = sqlite::open(url, commit).await?;
        serve(store, mode, book).await
    }
}

async fn serve(store: impl Store, mode: Mode, book: Registration) -> Result<(), BoxError> {
    let mut config = pillarbox::run::Config::default();
    // Soon after a process was killed, others have what it had.
    config.ownership.lease = Duration::from_secs(1);
    config.claim.min_interval = Duration::from_millis(5);
    config.claim.max_interval = Duration::from_millis(50);
    config.retry.max_attempts = 1_000_000;
    let outbox = Outbox::builder(mode).store(store).config(config).handler(book);
    let _outbox = outbox.handler(on_type("booked", async |_: Delivery| {})).start().await?;
    std::future::pending().await
}

fn booked() -> Result<Envelope, BoxError> {
    Ok(Envelope::json("booked", "{}")?)
}
