use deadpool_postgres::{Client, Manager, Pool};
use pillarbox::adapters::tokio_postgres::PooledTx;
use pillarbox::handle::{Registration, on_type};
use pillarbox::{Delivery, PostgresStore, in_transaction};

use crate::held::{HeldPool, HeldTx};
use crate::{BoxError, Commit, booked};

pub(crate) async fn open(url: &str, commit: Commit) -> Result<(PostgresStore, Registration), BoxError> {
    let manager = Manager::new(url.parse()?, tokio_postgres::NoTls);
    let pool = Pool::builder(manager).max_size(4).build()?;
    Ok((PostgresStore::connect(url).await?, registration(pool, commit)))
}

async fn book(client: &Client, delivery: &Delivery) -> Result<(), BoxError> {
    client.execute("INSERT INTO booking (event_id) VALUES ($1)", &[&delivery.id().as_str()]).await?;
    Ok(())
}

fn registration(pool: Pool, commit: Commit) -> Registration {
    match commit {
        Commit::Together => {
            let handler = async |delivery: Delivery, mut tx: PooledTx| {
                delivery.outbox()?.write(&mut tx, booked()?).await?;
                book(&tx, &delivery).await
            };
            on_type("payment", in_transaction(pool, handler))
        }
        Commit::Held => {
            let handler = async |delivery: Delivery, mut tx: HeldTx<PooledTx>| {
                delivery.outbox()?.write(&mut tx, booked()?).await?;
                book(&tx, &delivery).await
            };
            on_type("payment", in_transaction(HeldPool(pool), handler))
        }
        Commit::Apart => on_type("payment", move |delivery: Delivery| {
            let pool = pool.clone();
            async move {
                let outbox = delivery.outbox()?;
                let mut tx = outbox.begin(&pool).await?;
                outbox.write(&mut tx, booked()?).await?;
                book(&tx, &delivery).await?;
                tx.commit().await?;
                Ok::<_, BoxError>(())
            }
        }),
    }
}
