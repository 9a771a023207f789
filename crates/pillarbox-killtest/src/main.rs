//! A service that books payments until it is killed: `pillarbox-killtest-worker URL MODE`.
//!
//! Each event `payment` becomes one row of the table `booking`, and one event `booked`, in the transaction in which it becomes DONE.

use std::error::Error;
use std::time::Duration;

use mysql_async::prelude::Queryable as _;
use pillarbox::adapters::{mysql_async::MysqlTx, sqlx::SqliteTx, tokio_postgres::PooledTx};
use pillarbox::handle::Registration;
use pillarbox::handle::on_type;
use pillarbox::run::Mode;
use pillarbox::{Delivery, Envelope, MysqlStore, Outbox, PostgresStore, SqliteStore, Store, in_transaction};

type BoxError = Box<dyn Error + Send + Sync>;

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    let mut args = std::env::args().skip(1);
    let (Some(url), Some(mode)) = (args.next(), args.next()) else { return Err("expected: URL MODE".into()) };
    let mode = match &*mode {
        "multi_node" => Mode::MultiNode,
        "partitioned" => Mode::Partitioned,
        other => return Err(format!("`{other}` is not multi_node or partitioned").into()),
    };
    if url.starts_with("postgres:") {
        let manager = deadpool_postgres::Manager::new(url.parse()?, tokio_postgres::NoTls);
        let pool = deadpool_postgres::Pool::builder(manager).max_size(4).build()?;
        serve(PostgresStore::connect(&url).await?, mode, on_postgres(pool)).await
    } else if url.starts_with("mysql:") {
        let pool = mysql_async::Pool::from_url(&url)?;
        serve(MysqlStore::connect(&url).await?, mode, on_mysql(pool)).await
    } else {
        let store = SqliteStore::open(&url).await?;
        let writer = store.writer().clone();
        serve(store, mode, on_sqlite(writer)).await
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

fn on_postgres(pool: deadpool_postgres::Pool) -> Registration {
    let book = async |delivery: Delivery, mut tx: PooledTx| {
        delivery.outbox()?.write(&mut tx, booked()?).await?;
        tx.execute("INSERT INTO booking (event_id) VALUES ($1)", &[&delivery.id().as_str()]).await?;
        Ok::<_, BoxError>(())
    };
    on_type("payment", in_transaction(pool, book))
}

fn on_mysql(pool: mysql_async::Pool) -> Registration {
    let book = async |delivery: Delivery, mut tx: MysqlTx| {
        delivery.outbox()?.write(&mut tx, booked()?).await?;
        tx.exec_drop("INSERT INTO booking (event_id) VALUES (?)", (delivery.id().as_str(),)).await?;
        Ok::<_, BoxError>(())
    };
    on_type("payment", in_transaction(pool, book))
}

fn on_sqlite(pool: sqlx::SqlitePool) -> Registration {
    let book = async |delivery: Delivery, mut tx: SqliteTx| {
        delivery.outbox()?.write(&mut tx, booked()?).await?;
        let book = sqlx::query("INSERT INTO booking (event_id) VALUES (?)").bind(delivery.id().to_string());
        book.execute(&mut *tx).await?;
        Ok::<_, BoxError>(())
    };
    on_type("payment", in_transaction(pool, book))
}
