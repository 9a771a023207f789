//! A service that books payments until it is killed: `pillarbox-killtest-worker URL MODE`.
//!
//! Each event `payment` becomes one row of the table `booking`, and one event `booked`, in the transaction in which it becomes DONE.

use std::error::Error;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use mysql_async::prelude::Queryable as _;
use pillarbox::adapters::{mysql_async::MysqlTx, sqlx::SqliteTx, tokio_postgres::PooledTx};
use pillarbox::handle::Registration;
use pillarbox::handle::on_type;
use pillarbox::run::Mode;
use pillarbox::{Delivery, Envelope, MysqlStore, Outbox, PostgresStore, SqliteStore, Store, in_transaction};

type BoxError = Box<dyn Error + Send + Sync>;

/// The outbox, for the handler: it is registered before there is one.
type Later = Arc<OnceLock<Outbox>>;

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    let mut args = std::env::args().skip(1);
    let (Some(url), Some(mode)) = (args.next(), args.next()) else { return Err("expected: URL MODE".into()) };
    let mode = match &*mode {
        "multi_node" => Mode::MultiNode,
        "partitioned" => Mode::Partitioned,
        other => return Err(format!("`{other}` is not multi_node or partitioned").into()),
    };
    let outbox = Later::default();
    if url.starts_with("postgres:") {
        let manager = deadpool_postgres::Manager::new(url.parse()?, tokio_postgres::NoTls);
        let pool = deadpool_postgres::Pool::builder(manager).max_size(4).build()?;
        serve(PostgresStore::connect(&url).await?, mode, &outbox, on_postgres(&outbox, pool)).await
    } else if url.starts_with("mysql:") {
        let pool = mysql_async::Pool::from_url(&url)?;
        serve(MysqlStore::connect(&url).await?, mode, &outbox, on_mysql(&outbox, pool)).await
    } else {
        let store = SqliteStore::open(&url).await?;
        let writer = store.writer().clone();
        serve(store, mode, &outbox, on_sqlite(&outbox, writer)).await
    }
}

async fn serve(store: impl Store, mode: Mode, later: &Later, book: Registration) -> Result<(), BoxError> {
    let mut config = pillarbox::run::Config::default();
    // Soon after a process was killed, others have what it had.
    config.ownership.lease = Duration::from_secs(1);
    config.claim.min_interval = Duration::from_millis(5);
    config.claim.max_interval = Duration::from_millis(50);
    config.retry.max_attempts = 1_000_000;
    let outbox = Outbox::builder(mode).store(store).config(config).handler(book);
    let outbox = outbox.handler(on_type("booked", async |_: Delivery| {})).start().await?;
    later.get_or_init(|| outbox);
    std::future::pending().await
}

fn booked() -> Result<Envelope, BoxError> {
    Ok(Envelope::json("booked", "{}")?)
}

fn outbox(later: &Later) -> Result<&Outbox, BoxError> {
    later.get().ok_or_else(|| "the outbox is starting".into())
}

fn on_postgres(later: &Later, pool: deadpool_postgres::Pool) -> Registration {
    let later = Arc::clone(later);
    let book = move |delivery: Delivery, mut tx: PooledTx| {
        let later = Arc::clone(&later);
        async move {
            outbox(&later)?.write(&mut tx, booked()?).await?;
            tx.execute("INSERT INTO booking (event_id) VALUES ($1)", &[&delivery.id().as_str()]).await?;
            Ok::<_, BoxError>(())
        }
    };
    on_type("payment", in_transaction(pool, book))
}

fn on_mysql(later: &Later, pool: mysql_async::Pool) -> Registration {
    let later = Arc::clone(later);
    let book = move |delivery: Delivery, mut tx: MysqlTx| {
        let later = Arc::clone(&later);
        async move {
            outbox(&later)?.write(&mut tx, booked()?).await?;
            tx.exec_drop("INSERT INTO booking (event_id) VALUES (?)", (delivery.id().as_str(),)).await?;
            Ok::<_, BoxError>(())
        }
    };
    on_type("payment", in_transaction(pool, book))
}

fn on_sqlite(later: &Later, pool: sqlx::SqlitePool) -> Registration {
    let later = Arc::clone(later);
    let book = move |delivery: Delivery, mut tx: SqliteTx| {
        let later = Arc::clone(&later);
        async move {
            outbox(&later)?.write(&mut tx, booked()?).await?;
            let book = sqlx::query("INSERT INTO booking (event_id) VALUES (?)").bind(delivery.id().to_string());
            book.execute(&mut *tx).await?;
            Ok::<_, BoxError>(())
        }
    };
    on_type("payment", in_transaction(pool, book))
}
