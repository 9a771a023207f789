use std::sync::Arc;

use async_trait::async_trait;
use pillarbox::adapters::sqlx::begin_immediate;
use pillarbox::handle::Path;
use pillarbox::{Outbox, SqliteStore, Store, TableName};
use sqlx::{AssertSqlSafe, SqliteConnection, SqlitePool};
use tokio::time::Instant;

use crate::order::{Ending, OrderPlaced};
use crate::shop::{Audit, Shop, path_name};
use pillarbox_program::failure::Failure;
use pillarbox_program::store;

const TABLES: &str = "
    CREATE TABLE IF NOT EXISTS demo_order (order_id TEXT PRIMARY KEY, run TEXT NOT NULL, total_cents INTEGER NOT NULL);
    CREATE TABLE IF NOT EXISTS demo_receipt (run TEXT NOT NULL, order_id TEXT NOT NULL, path TEXT NOT NULL);
";

/// The shop on an embedded file. The service and its outbox write through the same connection, as SQLite wants it.
#[derive(Debug)]
pub(crate) struct SqliteShop {
    store: SqliteStore,
    pool: SqlitePool,
}

impl SqliteShop {
    pub(crate) async fn open(file: &str, table: &TableName) -> Result<Self, Failure> {
        let store = store::sqlite(file, table).await?;
        Ok(Self { pool: store.writer().clone(), store })
    }
}

async fn insert_order(connection: &mut SqliteConnection, order: &OrderPlaced) -> Result<(), sqlx::Error> {
    sqlx::query("INSERT INTO demo_order (order_id, run, total_cents) VALUES (?1, ?2, ?3)")
        .bind(&order.order_id)
        .bind(order.run())
        .bind(order.total_cents)
        .execute(connection)
        .await?;
    Ok(())
}

const PLACE: &str = "place an order";

#[async_trait]
impl Shop for SqliteShop {
    fn store(&self) -> Arc<dyn Store> {
        Arc::new(self.store.clone())
    }

    async fn create_tables(&self) -> Result<(), Failure> {
        sqlx::raw_sql(TABLES).execute(&self.pool).await.map_err(Failure::during("create the shop's tables"))?;
        Ok(())
    }

    async fn place(&self, outbox: &Outbox, order: &OrderPlaced, ending: Ending) -> Result<Instant, Failure> {
        if ending == Ending::Guarded {
            let mut tx = outbox.begin(&self.pool).await.map_err(Failure::during(PLACE))?;
            insert_order(&mut tx, order).await.map_err(Failure::during(PLACE))?;
            outbox.write(&mut tx, order).await.map_err(Failure::during(PLACE))?;
            tx.commit().await.map_err(Failure::during(PLACE))?;
            return Ok(Instant::now());
        }
        let mut tx = begin_immediate(&self.pool).await.map_err(Failure::during(PLACE))?;
        insert_order(&mut tx, order).await.map_err(Failure::during(PLACE))?;
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
        sqlx::query("INSERT INTO demo_receipt (run, order_id, path) VALUES (?1, ?2, ?3)")
            .bind(run)
            .bind(order_id)
            .bind(path_name(path))
            .execute(&self.pool)
            .await
            .map_err(Failure::during("write a receipt"))?;
        Ok(())
    }

    async fn pending_orders(&self) -> Result<Vec<String>, Failure> {
        sqlx::query_scalar("SELECT aggregate_id FROM pillarbox_demo_event WHERE status IN (0, 2)")
            .fetch_all(&self.pool)
            .await
            .map_err(Failure::during("look for events of an earlier run"))
    }

    async fn audit(&self, run: &str, leftover: &[String]) -> Result<Audit, Failure> {
        let sql = include_str!("sql/audit.sql").replace("{leftover}", "SELECT value FROM json_each($2)");
        let row: (i64, i64, i64, i64, i64, i64, i64) = sqlx::query_as(AssertSqlSafe(sql))
            .bind(run)
            .bind(serde_json::to_string(leftover)?)
            .fetch_one(&self.pool)
            .await
            .map_err(Failure::during("check the database"))?;
        Ok(Audit::from_counts([row.0, row.1, row.2, row.3, row.4, row.5, row.6]))
    }
}
