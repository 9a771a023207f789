//! A database with its business table and its outbox, whichever of the two kinds it is.

use std::error::Error;
use std::future::Future;
use std::path::Path;

use pillarbox::config::Loader;
use pillarbox::event::IntoEnvelope;
use pillarbox::{Delivery, Outbox};
use sqlx::{PgPool, SqlitePool};

pub(crate) type BoxError = Box<dyn Error + Send + Sync>;

pub(crate) struct Department {
    outbox: Outbox,
    pool: Pool,
}

/// The connections through which the department writes.
enum Pool {
    Sqlite(SqlitePool),
    Postgres(PgPool),
}

const TABLE: &str = "create table if not exists journal (entry text not null)";
const ENTRY: &str = "insert into journal (entry) values ($1)";

impl Department {
    /// Opens the database that the variable `{prefix}STORE__URL` names, otherwise the file.
    pub(crate) async fn open<F: Future<Output = ()> + Send + 'static>(
        prefix: &str,
        file: &Path,
        handler: fn(Delivery) -> F,
    ) -> Result<Self, BoxError> {
        let mut settings = Loader::new().environment_of(prefix).load()?;
        settings.store.migrate = true;
        if settings.store.url.is_none() {
            settings.store.url = Some(format!("sqlite://{}", file.display()).into());
        }
        let url = settings.database_url()?;
        let (outbox, pool) = if url.as_str().starts_with("postgres") {
            let pool = PgPool::connect(url.as_str()).await?;
            sqlx::query(TABLE).execute(&pool).await?;
            (settings.outbox(), Pool::Postgres(pool))
        } else {
            // SQLite has one writer at a time, so the department writes through the store's connection.
            let store = settings.sqlite_options()?.open().await?;
            let pool = store.writer().clone();
            sqlx::query(TABLE).execute(&pool).await?;
            (settings.outbox().store(store), Pool::Sqlite(pool))
        };
        Ok(Self { outbox: outbox.handle_all(handler).start().await?, pool })
    }

    /// Writes an entry and its event, in one transaction.
    pub(crate) async fn record(&self, entry: &str, event: impl IntoEnvelope) -> Result<(), BoxError> {
        match &self.pool {
            Pool::Sqlite(pool) => {
                let mut tx = self.outbox.begin(pool).await?;
                sqlx::query(ENTRY).bind(entry).execute(&mut *tx).await?;
                self.outbox.write(&mut tx, event).await?;
                tx.commit().await?;
            }
            Pool::Postgres(pool) => {
                let mut tx = self.outbox.begin(pool).await?;
                sqlx::query(ENTRY).bind(entry).execute(&mut *tx).await?;
                self.outbox.write(&mut tx, event).await?;
                tx.commit().await?;
            }
        }
        Ok(())
    }

    /// Handles what has been committed here, and stops.
    pub(crate) async fn close(&self) {
        self.outbox.shutdown().await;
        match &self.pool {
            Pool::Sqlite(pool) => pool.close().await,
            Pool::Postgres(pool) => pool.close().await,
        }
    }

    /// The number of events that this process has delivered for the department.
    pub(crate) fn delivered(&self) -> u64 {
        self.outbox.stats().done
    }
}
