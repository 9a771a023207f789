use pillarbox::adapters::sqlx::SqliteTx;
use pillarbox::handle::{Registration, on_type};
use pillarbox::{Delivery, SqliteStore, in_transaction};
use sqlx::{SqliteConnection, SqlitePool};

use crate::held::{HeldPool, HeldTx};
use crate::{BoxError, Commit, booked};

pub(crate) async fn open(file: &str, commit: Commit) -> Result<(SqliteStore, Registration), BoxError> {
    let store = SqliteStore::open(file).await?;
    let writer = store.writer().clone();
    Ok((store, registration(writer, commit)))
}

async fn book(connection: &mut SqliteConnection, delivery: &Delivery) -> Result<(), BoxError> {
    let book = sqlx::query("INSERT INTO booking (event_id) VALUES (?)").bind(delivery.id().to_string());
    book.execute(connection).await?;
    Ok(())
}

fn registration(pool: SqlitePool, commit: Commit) -> Registration {
    match commit {
        Commit::Together => {
            let handler = async |delivery: Delivery, mut tx: SqliteTx| {
                delivery.outbox()?.write(&mut tx, booked()?).await?;
                book(&mut tx, &delivery).await
            };
            on_type("payment", in_transaction(pool, handler))
        }
        Commit::Held => {
            let handler = async |delivery: Delivery, mut tx: HeldTx<SqliteTx>| {
                delivery.outbox()?.write(&mut tx, booked()?).await?;
                book(&mut tx, &delivery).await
            };
            on_type("payment", in_transaction(HeldPool(pool), handler))
        }
        Commit::Apart => on_type("payment", move |delivery: Delivery| {
            let pool = pool.clone();
            async move {
                let outbox = delivery.outbox()?;
                let mut tx = outbox.begin(&pool).await?;
                outbox.write(&mut tx, booked()?).await?;
                book(&mut tx, &delivery).await?;
                tx.commit().await?;
                Ok::<_, BoxError>(())
            }
        }),
    }
}
