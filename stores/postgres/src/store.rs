use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use pillarbox_core::error::StoreError;
use pillarbox_core::ownership::{Acquired, Mode, NodeId, Renewal};
use pillarbox_core::settle::{Status, Verdict};
use pillarbox_core::store::{Counts, Fetch, Fetched, Store, StoreInfo, TableName};
use pillarbox_core::write::{Dialect, NewRow, Statement};

use crate::error::Failure;
use crate::session::Sessions;
use crate::sql::Sql;
use crate::{PostgresOptions, fetch, insert, ownership, schema, settle};

/// An outbox in PostgreSQL (12 or later). Cheap to clone; all clones share their connections.
#[derive(Debug, Clone)]
pub struct PostgresStore {
    inner: Arc<Inner>,
}

#[derive(Debug)]
pub(crate) struct Inner {
    pub(crate) sessions: Sessions,
    pub(crate) table: TableName,
    pub(crate) sql: Sql,
    pub(crate) durable_marks: bool,
    info: StoreInfo,
}

impl PostgresStore {
    /// Connects with the default options. See [`PostgresOptions::parse`] for what the URL can say.
    ///
    /// # Errors
    /// When the URL is malformed, or the database cannot be reached or refuses. The error says where the database is and
    /// never contains the password.
    pub async fn connect(url: &str) -> Result<Self, StoreError> {
        PostgresOptions::parse(url)?.connect().await
    }

    pub(crate) fn new(sessions: Sessions, table: TableName, durable_marks: bool) -> Self {
        let info = StoreInfo::new(Dialect::POSTGRES, sessions.address(), table.to_string());
        Self { inner: Arc::new(Inner { sql: Sql::new(&table), sessions, table, durable_marks, info }) }
    }
}

#[cfg(test)]
impl PostgresStore {
    pub(crate) fn inner(&self) -> &Inner {
        &self.inner
    }
}

#[async_trait]
impl Store for PostgresStore {
    fn info(&self) -> &StoreInfo {
        &self.inner.info
    }

    fn insert<'a>(&self, rows: &'a [NewRow]) -> Vec<Statement<'a>> {
        insert::statements(&self.inner.sql, rows)
    }

    async fn migrate(&self) -> Result<(), StoreError> {
        self.inner.sessions.patient_call("migrate the tables", schema::migrate(&self.inner)).await
    }

    fn migration_sql(&self) -> String {
        schema::script(&self.inner.table, 0)
    }

    async fn check(&self) -> Result<(), StoreError> {
        self.inner.sessions.call("check the tables", schema::check(&self.inner)).await
    }

    async fn join(&self, node: &NodeId, mode: Mode, lease: Duration) -> Result<(), StoreError> {
        self.inner.sessions.call("register the node", ownership::join(&self.inner, node, mode, lease)).await
    }

    async fn acquire(&self, node: &NodeId) -> Result<Acquired, StoreError> {
        self.inner.sessions.call("acquire ownership", ownership::acquire(&self.inner, node)).await
    }

    async fn renew(&self, node: &NodeId, lease: Duration) -> Result<Renewal, StoreError> {
        self.inner.sessions.call("renew the lease", ownership::renew(&self.inner, node, lease)).await
    }

    async fn leave(&self, node: &NodeId) -> Result<(), StoreError> {
        self.inner.sessions.call("unregister the node", ownership::leave(&self.inner, node)).await
    }

    async fn fetch(&self, fetch: &Fetch) -> Result<Fetched, StoreError> {
        self.inner.sessions.call("fetch events", fetch::fetch(&self.inner, fetch)).await
    }

    async fn settle(&self, node: &NodeId, verdicts: &[Verdict]) -> Result<Vec<i64>, StoreError> {
        self.inner.sessions.call("settle events", settle::settle(&self.inner, node, verdicts)).await
    }

    async fn counts(&self) -> Result<Counts, StoreError> {
        self.inner.sessions.call("count events", counts(&self.inner)).await
    }

    async fn close(&self) {
        self.inner.sessions.close();
    }
}

async fn counts(store: &Inner) -> Result<Counts, Failure> {
    let mut session = store.sessions.session().await?;
    let transaction = session.transaction().await?;
    // The one statement that does read the whole table.
    transaction.batch_execute("SET LOCAL enable_seqscan = on").await?;
    let rows = transaction.query_typed(&store.sql.counts, &[]).await?;
    transaction.commit().await?;
    session.finish();
    let mut counts = Counts::default();
    for row in rows {
        let (status, count): (i16, i64) = (row.try_get(0)?, row.try_get(1)?);
        let count = u64::try_from(count).unwrap_or(0);
        match Status::ALL.into_iter().find(|known| known.code() == status) {
            Some(Status::New) => counts.new = count,
            Some(Status::Done) => counts.done = count,
            Some(Status::Retry) => counts.retry = count,
            Some(Status::Dead) => counts.dead = count,
            None => {}
        }
    }
    Ok(counts)
}
