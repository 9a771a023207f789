//! mysql_async.

use mysql_async::prelude::Queryable as _;
use mysql_async::{Opts, OptsBuilder, Pool, PoolConstraints, PoolOpts};
use pillarbox_core::error::BoxError;
use pillarbox_mysql::MysqlStore;
use pillarbox_mysql_async::MysqlAsync;
use pillarbox_testkit::adapters::{Driver, InnerOf, Outcome};

use crate::place::{self, Mysql};

/// A pool of one connection.
struct Pooled {
    place: Mysql,
    held: Pool,
}

impl Driver for Pooled {
    type Marker = MysqlAsync;
    type Source<'a> = &'a Pool;
    type Store = MysqlStore;

    async fn create() -> Result<Self, BoxError> {
        let place = Mysql::create().await?;
        let held = pool()?;
        Ok(Self { place, held })
    }

    async fn destroy(self) -> Outcome {
        drop(self.held);
        self.place.destroy().await
    }

    fn store(&self) -> MysqlStore {
        self.place.store.clone()
    }

    fn source(&mut self) -> &Pool {
        &self.held
    }

    async fn execute(inner: &mut InnerOf<'_, Self>, sql: &str) -> Result<(), BoxError> {
        Ok(inner.query_drop(sql).await?)
    }
}

fn pool() -> Result<Pool, BoxError> {
    let one = PoolOpts::default().with_constraints(PoolConstraints::new(0, 1).ok_or("a pool of one")?);
    let options = Opts::from_url(&place::mysql_url())?;
    Ok(Pool::new(OptsBuilder::from_opts(options).pool_opts(one).prefer_socket(false)))
}

mod pool {
    pillarbox_testkit::adapter_tests!(super::Pooled);
}

mod own {
    use mysql_async::DriverError::NestedTransaction;
    use mysql_async::Error;
    use pillarbox_core::event::Envelope;
    use pillarbox_core::store::Admin as _;
    use pillarbox_engine::run::Outbox;

    use super::*;

    /// `START TRANSACTION` would commit what the caller's `BEGIN` holds.
    #[tokio::test(flavor = "multi_thread")]
    async fn a_refused_begin_leaves_the_transaction_as_it_was() -> Outcome {
        let driver = Pooled::create().await?;
        let outbox = Outbox::writer_only(driver.store()).start().await?;
        let table = outbox.store().info().table.clone();
        let insert =
            |id| format!("INSERT INTO {table} (event_id, event_type, payload) VALUES ('{id}', 'order.placed', '{{}}')");
        let mut conn = driver.held.get_conn().await?;
        for (end, count) in [("ROLLBACK", 0), ("COMMIT", 2)] {
            conn.query_drop("BEGIN").await?;
            conn.query_drop(insert("e-1")).await?;
            let refused = outbox.begin(&mut conn).await;
            assert!(matches!(refused, Err(Error::Driver(NestedTransaction))), "{refused:?}");
            drop(refused);
            conn.query_drop("DELETE FROM pillarbox_no_such_table").await.expect_err("there is no such table");
            let refused = outbox.begin(&mut conn).await;
            assert!(
                matches!(refused, Err(Error::Driver(NestedTransaction))),
                "the last answer does not say: {refused:?}"
            );
            drop(refused);
            conn.query_drop(insert("e-2")).await?;
            conn.query_drop(end).await?;
            assert_eq!(driver.store().counts().await?.new, count, "{end}");
        }
        for count in [3, 4] {
            let mut dropped = outbox.begin(&mut conn).await?;
            outbox.write(&mut dropped, Envelope::json("order.placed", "{}")?).await?;
            drop(dropped);
            let mut guard = outbox.begin(&mut conn).await?;
            outbox.write(&mut guard, Envelope::json("order.placed", "{}")?).await?;
            guard.commit().await?;
            assert_eq!(driver.store().counts().await?.new, count);
        }
        drop(conn);
        outbox.shutdown().await;
        driver.destroy().await
    }
}
