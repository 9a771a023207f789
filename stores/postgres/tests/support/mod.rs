//! A schema of its own for every test, on the server that `PILLARBOX_TEST_POSTGRES_URL` names.

#![allow(dead_code, reason = "every test program uses a part of it")]
#![allow(clippy::expect_used, clippy::panic, reason = "a test's helpers fail as the test does")]

pub(crate) mod server;

use std::panic::{AssertUnwindSafe, resume_unwind};
use std::time::Duration;

use deadpool_postgres::{Manager, Pool};
use futures_util::FutureExt as _;
use pillarbox_core::event::{Envelope, Stamp};
use pillarbox_core::ownership::{Acquired, NodeId, NodeMode, NodeName};
use pillarbox_core::row::Verdict;
use pillarbox_core::store::{Fetch, FetchedRow, Store};
use pillarbox_core::write::insert;
use pillarbox_postgres::{PostgresOptions, PostgresStore};
use pillarbox_testkit::done_at;
// Named nowhere, it would not be linked, and its implementations not found.
use pillarbox_tokio_postgres as _;
use tokio_postgres::NoTls;
use tokio_postgres::config::Host;
use tokio_postgres::error::SqlState;

/// No `seq`: what a settle refuses when all is well.
pub(crate) const NONE: [i64; 0] = [];

pub(crate) const LEASE: Duration = Duration::from_secs(3600);

pub(crate) fn url() -> String {
    std::env::var("PILLARBOX_TEST_POSTGRES_URL")
        .unwrap_or_else(|_| "postgres://postgres@127.0.0.1:5432/postgres".to_owned())
}

fn config() -> tokio_postgres::Config {
    url().parse().expect("PILLARBOX_TEST_POSTGRES_URL is a URL")
}

/// The name of the server's host.
pub(crate) fn host() -> String {
    match config().get_hosts() {
        [Host::Tcp(name), ..] => name.clone(),
        hosts => panic!("PILLARBOX_TEST_POSTGRES_URL has to name a host of TCP, not {hosts:?}"),
    }
}

/// A name that no other test and no earlier run has used.
pub(crate) fn unique(prefix: &str) -> String {
    format!("{prefix}_{}", Stamp::system().next_id().as_str().to_ascii_lowercase())
}

/// The server as an administrator sees it.
pub(crate) struct Db {
    pub(crate) schema: String,
    pub(crate) pool: Pool,
}

/// Runs a test in a schema of its own, which is dropped whatever comes of the test.
pub(crate) async fn with_db<F: AsyncFnOnce(&Db)>(test: F) {
    let pool = Pool::builder(Manager::new(config(), NoTls)).max_size(8).build().expect("a pool");
    if let Err(error) = pool.get().await {
        panic!(
            "these tests need PostgreSQL and cannot reach it ({error}); run them by ./scripts/test, or name a server: \
             PILLARBOX_TEST_POSTGRES_URL=postgres://USER@HOST:PORT/DATABASE"
        );
    }
    let db = Db { schema: unique("pillarbox"), pool };
    let outcome = AssertUnwindSafe(test(&db)).catch_unwind().await;
    db.drop_schema().await;
    if let Err(panic) = outcome {
        resume_unwind(panic);
    }
}

impl Db {
    pub(crate) fn options(&self) -> PostgresOptions {
        self.options_at(&url())
    }

    /// A store in this schema by another URL.
    pub(crate) fn options_at(&self, url: &str) -> PostgresOptions {
        PostgresOptions::parse(url).expect("a valid URL").table(format!("{}.outbox_event", self.schema))
    }

    /// The same for another user of the database, with the password `x`.
    pub(crate) fn options_as(&self, role: &str) -> PostgresOptions {
        self.options_at(&self.url_with(&format!("{role}:x"), ""))
    }

    /// The server's URL with other credentials (unless empty) and more parameters, each led by `&`.
    pub(crate) fn url_with(&self, credentials: &str, parameters: &str) -> String {
        self.url_at(&host(), credentials, parameters)
    }

    /// The same under another name of the host.
    pub(crate) fn url_at(&self, host: &str, credentials: &str, parameters: &str) -> String {
        let config = config();
        let credentials = match (credentials, config.get_user(), config.get_password()) {
            ("", Some(user), Some(password)) => format!("{user}:{}@", String::from_utf8_lossy(password)),
            ("", Some(user), None) => format!("{user}@"),
            ("", None, _) => String::new(),
            (credentials, ..) => format!("{credentials}@"),
        };
        let port = config.get_ports().first().copied().unwrap_or(5432);
        let database = config.get_dbname().unwrap_or("postgres");
        format!("postgres://{credentials}{host}:{port}/{database}?connect_timeout=10{parameters}")
    }

    /// A store with its tables in place.
    pub(crate) async fn store(&self) -> PostgresStore {
        let store = self.options().connect().await.expect("connects");
        store.migrate().await.expect("migrates");
        store
    }

    /// Drops the schema. A session whose client is gone may still be at work on its tables, in another order.
    async fn drop_schema(&self) {
        let drop = format!("DROP SCHEMA IF EXISTS {} CASCADE", self.schema);
        let client = self.pool.get().await.expect("a connection");
        while let Err(error) = client.batch_execute(&drop).await {
            assert_eq!(error.code(), Some(&SqlState::T_R_DEADLOCK_DETECTED), "{error:?} in {drop}");
        }
    }

    pub(crate) async fn execute(&self, sql: &str) {
        let client = self.pool.get().await.expect("a connection");
        client.batch_execute(sql).await.unwrap_or_else(|error| panic!("{error:?} in {sql}"));
    }

    /// The first column of the first row, as text.
    pub(crate) async fn text(&self, sql: &str) -> Option<String> {
        let client = self.pool.get().await.expect("a connection");
        let row = client.query_opt(&format!("SELECT ({sql})::text"), &[]).await;
        row.unwrap_or_else(|error| panic!("{error:?} in {sql}")).and_then(|row| row.get(0))
    }

    /// A column of one event.
    pub(crate) async fn column(&self, column: &str, seq: i64) -> Option<String> {
        self.text(&format!("SELECT {column} FROM {}.outbox_event WHERE seq = {seq}", self.schema)).await
    }

    /// The definitions of the indexes of a schema, in the order of their names, without the schema's name.
    pub(crate) async fn indexes(&self, schema: &str) -> Vec<String> {
        // Not from pg_indexes: that view describes every index it passes over, and fails on those which a test beside this one
        // is dropping.
        let sql = format!(
            "SELECT string_agg(pg_get_indexdef(oid), E'\\n' ORDER BY relname) FROM pg_class
             WHERE relkind = 'i' AND relnamespace = '{schema}'::regnamespace"
        );
        let all = self.text(&sql).await.unwrap_or_default();
        all.replace(&format!("{schema}."), "").lines().map(str::to_owned).collect()
    }

    /// Until a statement on that table of this schema waits for a lock.
    pub(crate) async fn waiting(&self, table: &str) {
        let sql = format!(
            "SELECT count(*) FROM pg_stat_activity
             WHERE wait_event_type = 'Lock' AND query LIKE '%\"{}\".\"{table}\"%' AND pid <> pg_backend_pid()",
            self.schema
        );
        eventually(&format!("a wait on {table}"), async || self.text(&sql).await.as_deref() != Some("0")).await;
    }

    /// Writes and commits events through the adapter.
    pub(crate) async fn write(&self, store: &dyn Store, events: Vec<Envelope>) -> Vec<i64> {
        let mut client = self.pool.get().await.expect("a connection");
        let mut transaction = client.transaction().await.expect("begins");
        let seqs = insert(store, &mut transaction, events).await.expect("inserts");
        transaction.commit().await.expect("commits");
        seqs
    }
}

pub(crate) fn event() -> Envelope {
    Envelope::builder("order.placed")
        .aggregate("order", "o-1")
        .payload_json(r#"{"b":1,  "a":2,"a":3}"#)
        .build()
        .expect("a valid event")
}

pub(crate) fn events(count: usize) -> Vec<Envelope> {
    (0..count).map(|_| event()).collect()
}

pub(crate) fn node(name: &str) -> NodeId {
    NodeId::incarnate(&NodeName::new(name).expect("a valid name"), Stamp::system())
}

/// A node that has joined and owns everything.
pub(crate) async fn owner(store: &dyn Store) -> NodeId {
    let node = node("owner");
    store.join(&node, NodeMode::SingleNode, LEASE).await.expect("joins");
    let acquired = store.acquire(&node).await.expect("acquires");
    assert!(matches!(acquired, Acquired::Owner { .. }), "{acquired:?}");
    node
}

/// A node that has joined those that claim rows.
pub(crate) async fn claimer(store: &dyn Store, name: &str) -> NodeId {
    let node = node(name);
    store.join(&node, NodeMode::MultiNode, LEASE).await.expect("joins");
    node
}

pub(crate) fn fetch(limit: usize) -> Fetch {
    Fetch::new(limit)
}

pub(crate) fn seqs(rows: &[FetchedRow]) -> Vec<i64> {
    rows.iter().map(FetchedRow::seq).collect()
}

pub(crate) async fn done(store: &dyn Store, seqs: &[i64]) -> Vec<Verdict> {
    done_at(store, seqs).await.expect("reads the rows")
}

/// Tries until it holds. For what other processes do in their own time: servers that notice a closed connection.
pub(crate) async fn eventually(what: &str, holds: impl AsyncFn() -> bool) {
    for _ in 0..200 {
        if holds().await {
            return;
        }
        tokio::time::sleep(Duration::from_millis(25)).await;
    }
    panic!("it never came about: {what}");
}
