use mysql_async::prelude::Queryable as _;
use mysql_async::{Opts, OptsBuilder, Pool, Transaction};
use pillarbox::adapters::mysql_async::MysqlTx;
use pillarbox::handle::{Registration, on_type};
use pillarbox::{Delivery, MysqlStore, in_transaction};

use crate::held::{HeldPool, HeldTx};
use crate::{BoxError, Commit, booked};

/// The end of a session that stands still with a transaction open. MySQL knows only the end of any session that stands still.
const END_WHAT_STANDS_STILL: &str =
    "SET SESSION wait_timeout = 5 /*M!100600 , wait_timeout = 60, idle_transaction_timeout = 5 */";

pub(crate) async fn open(url: &str, commit: Commit) -> Result<(MysqlStore, Registration), BoxError> {
    let options = OptsBuilder::from_opts(Opts::from_url(url)?).prefer_socket(false).setup(vec![END_WHAT_STANDS_STILL]);
    Ok((MysqlStore::connect(url).await?, registration(Pool::new(options), commit)))
}

async fn book(tx: &mut Transaction<'static>, delivery: &Delivery) -> Result<(), BoxError> {
    tx.exec_drop("INSERT INTO booking (event_id) VALUES (?)", (delivery.id().as_str(),)).await?;
    Ok(())
}

fn registration(pool: Pool, commit: Commit) -> Registration {
    match commit {
        Commit::Together => {
            let handler = async |delivery: Delivery, mut tx: MysqlTx| {
                delivery.outbox()?.write(&mut tx, booked()?).await?;
                book(&mut tx, &delivery).await
            };
            on_type("payment", in_transaction(pool, handler))
        }
        Commit::Held => {
            let handler = async |delivery: Delivery, mut tx: HeldTx<MysqlTx>| {
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
