use std::sync::Arc;

use async_trait::async_trait;
use deadpool_postgres::{GenericClient, Pool};
use pillarbox::handle::Path;
use pillarbox::{Outbox, PostgresStore, Store, TableName};
use tokio::time::Instant;

use crate::order::{Ending, OrderPlaced};
use crate::shop::{Audit, Shop, path_name};
use pillarbox_program::failure::Failure;
use pillarbox_program::service::postgres_pool;
use pillarbox_program::store;

const TABLES: &str = "
    CREATE TABLE IF NOT EXISTS demo_order (order_id text PRIMARY KEY, run text NOT NULL, total_cents bigint NOT NULL);
    CREATE TABLE IF NOT EXISTS demo_receipt (run text NOT NULL, order_id text NOT NULL, path text NOT NULL);
";

/// The shop on PostgreSQL: the service has a pool of its own, beside the one of its outbox.
#[derive(Debug)]
pub(crate) struct PostgresShop {
    store: PostgresStore,
    pool: Pool,
}

impl PostgresShop {
    pub(crate) async fn open(url: &str, table: &TableName) -> Result<Self, Failure> {
        /// One for each writer and each worker of the outbox.
        const CONNECTIONS: usize = 8;
        let store = store::postgres(url, table).await?;
        Ok(Self { store, pool: postgres_pool(url, CONNECTIONS)? })
    }

    async fn client(&self) -> Result<deadpool_postgres::Client, Failure> {
        self.pool.get().await.map_err(Failure::during("connect to the database"))
    }
}

async fn insert_order(client: &impl GenericClient, order: &OrderPlaced) -> Result<(), tokio_postgres::Error> {
    let insert = "INSERT INTO demo_order (order_id, run, total_cents) VALUES ($1, $2, $3)";
    let insert = client.prepare_cached(insert).await?;
    client.execute(&insert, &[&order.order_id, &order.run(), &order.total_cents]).await?;
    Ok(())
}

const PLACE: &str = "place an order";

#[async_trait]
impl Shop for PostgresShop {
    fn store(&self) -> Arc<dyn Store> {
        Arc::new(self.store.clone())
    }

    async fn create_tables(&self) -> Result<(), Failure> {
        self.client().await?.batch_execute(TABLES).await.map_err(Failure::during("create the shop's tables"))
    }

    async fn place(&self, outbox: &Outbox, order: &OrderPlaced, ending: Ending) -> Result<Instant, Failure> {
        let mut client = self.client().await?;
        if ending == Ending::Guarded {
            let mut tx = outbox.begin(&mut client).await.map_err(Failure::during(PLACE))?;
            insert_order(&*tx, order).await.map_err(Failure::during(PLACE))?;
            outbox.write(&mut tx, order).await.map_err(Failure::during(PLACE))?;
            tx.commit().await.map_err(Failure::during(PLACE))?;
            return Ok(Instant::now());
        }
        let mut tx = client.transaction().await.map_err(Failure::during(PLACE))?;
        insert_order(&tx, order).await.map_err(Failure::during(PLACE))?;
        let written = outbox.write(&mut tx, order).await.map_err(Failure::during(PLACE))?;
        if ending == Ending::RolledBack {
            tx.rollback().await.map_err(Failure::during("roll an order back"))?;
            return Ok(Instant::now());
        }
        tx.commit().await.map_err(Failure::during(PLACE))?;
        let committed = Instant::now();
        if ending == Ending::Reported {
            outbox.notify_committed(written);
        }
        Ok(committed)
    }

    async fn insert_receipt(&self, run: &str, order_id: &str, path: Path) -> Result<(), Failure> {
        const DOING: &str = "write a receipt";
        let client = self.client().await?;
        let insert = "INSERT INTO demo_receipt (run, order_id, path) VALUES ($1, $2, $3)";
        let insert = client.prepare_cached(insert).await.map_err(Failure::during(DOING))?;
        client.execute(&insert, &[&run, &order_id, &path_name(path)]).await.map_err(Failure::during(DOING))?;
        Ok(())
    }

    async fn pending_orders(&self) -> Result<Vec<String>, Failure> {
        const DOING: &str = "look for events of an earlier run";
        let select = "SELECT aggregate_id FROM pillarbox_demo_event WHERE status IN (0, 2)";
        let rows = self.client().await?.query(select, &[]).await.map_err(Failure::during(DOING))?;
        rows.iter().map(|row| row.try_get(0).map_err(Failure::during(DOING))).collect()
    }

    async fn audit(&self, run: &str, leftover: &[String]) -> Result<Audit, Failure> {
        const DOING: &str = "check the database";
        let sql = include_str!("sql/audit.sql").replace("{leftover}", "SELECT unnest($2::text[])");
        let row = self.client().await?.query_one(&sql, &[&run, &leftover]).await.map_err(Failure::during(DOING))?;
        let mut counts = [0_i64; 7];
        for (column, count) in counts.iter_mut().enumerate() {
            *count = row.try_get(column).map_err(Failure::during(DOING))?;
        }
        Ok(Audit::from_counts(counts))
    }
}
