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
