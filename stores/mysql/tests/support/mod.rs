//! A database of its own for every test, on the server that `PILLARBOX_TEST_MYSQL_URL` names.

#![allow(dead_code, reason = "every test program uses a part of it")]
#![allow(clippy::expect_used, clippy::panic, reason = "a test's helpers fail as the test does")]

pub(crate) mod server;

use std::panic::{AssertUnwindSafe, resume_unwind};
use std::time::Duration;

use futures_util::FutureExt as _;
use mysql_async::prelude::Queryable as _;
use mysql_async::{Opts, OptsBuilder, Pool, TxOpts};
use pillarbox_core::event::{Envelope, Stamp};
use pillarbox_core::ownership::{Acquired, NodeId, NodeMode};
use pillarbox_core::row::Verdict;
use pillarbox_core::store::{Fetch, FetchedRow, Store};
use pillarbox_core::write::insert;
use pillarbox_mysql::{MysqlOptions, MysqlStore};
use pillarbox_testkit::done_at;
// Named nowhere, it would not be linked, and its implementations not found.
use pillarbox_mysql_async as _;

pub(crate) const LEASE: Duration = Duration::from_secs(3600);

pub(crate) fn url() -> String {
    std::env::var("PILLARBOX_TEST_MYSQL_URL").unwrap_or_else(|_| "mysql://root@127.0.0.1:3306/test".to_owned())
}

pub(crate) fn server() -> Opts {
    Opts::from_url(&url()).expect("PILLARBOX_TEST_MYSQL_URL is a URL")
}

/// A name that no other test and no earlier run has used.
pub(crate) fn unique(prefix: &str) -> String {
    format!("{prefix}_{}", Stamp::system().next_id().as_str().to_ascii_lowercase())
}

/// The server as an administrator sees it.
pub(crate) struct Db {
    /// The name of the database.
    pub(crate) name: String,
    pub(crate) pool: Pool,
}

/// Runs a test in a database of its own, which is dropped whatever comes of the test.
pub(crate) async fn with_db<F: AsyncFnOnce(&Db)>(test: F) {
    let name = unique("pillarbox");
    let admin = Pool::new(OptsBuilder::from_opts(server()).prefer_socket(false));
    let mut connection = match admin.get_conn().await {
        Ok(connection) => connection,
        Err(error) => panic!(
            "these tests need MariaDB and cannot reach it ({error}); run them by ./scripts/test, or name a server: \
             PILLARBOX_TEST_MYSQL_URL=mysql://USER@HOST:PORT/DATABASE"
        ),
    };
    connection.query_drop(format!("CREATE DATABASE {name}")).await.expect("creates");
    let pool = Pool::new(OptsBuilder::from_opts(server()).prefer_socket(false).db_name(Some(&name)));
    let db = Db { name, pool };
    let outcome = AssertUnwindSafe(test(&db)).catch_unwind().await;
    connection.query_drop(format!("DROP DATABASE {}", db.name)).await.expect("drops");
    if let Err(panic) = outcome {
        resume_unwind(panic);
    }
}

impl Db {
    /// The server's URL with this database, other credentials (unless empty), and parameters.
    pub(crate) fn url_with(&self, credentials: &str, parameters: &str) -> String {
        let server = server();
        let credentials = match (credentials, server.user(), server.pass()) {
            ("", Some(user), Some(password)) => format!("{user}:{password}"),
            ("", Some(user), None) => user.to_owned(),
            (credentials, ..) => credentials.to_owned(),
        };
        let (host, port) = (server.ip_or_hostname(), server.tcp_port());
        format!("mysql://{credentials}@{host}:{port}/{}?{parameters}", self.name)
    }

    pub(crate) fn options(&self) -> MysqlOptions {
        MysqlOptions::parse(&self.url_with("", "")).expect("a valid URL")
    }

    /// A store with its tables in place.
    pub(crate) async fn store(&self) -> MysqlStore {
        let store = self.options().connect().await.expect("connects");
        store.migrate().await.expect("migrates");
        store
    }

    pub(crate) async fn execute(&self, sql: &str) {
        let mut connection = self.pool.get_conn().await.expect("a connection");
        connection.query_drop(sql).await.unwrap_or_else(|error| panic!("{error}: {sql}"));
    }

    /// The first column of the first row, as text.
    pub(crate) async fn text(&self, sql: &str) -> Option<String> {
        let mut connection = self.pool.get_conn().await.expect("a connection");
        let row: Option<Option<String>> =
            connection.query_first(sql).await.unwrap_or_else(|error| panic!("{error}: {sql}"));
        row.flatten()
    }

    /// A column of one event.
    pub(crate) async fn column(&self, column: &str, seq: i64) -> Option<String> {
        self.text(&format!("SELECT CAST({column} AS CHAR) FROM outbox_event WHERE seq = {seq}")).await
    }

    /// Writes events in a transaction of their own.
    pub(crate) async fn write(&self, store: &MysqlStore, events: Vec<Envelope>) -> Vec<i64> {
        let mut transaction = self.pool.start_transaction(TxOpts::default()).await.expect("begins");
        let seqs = insert(store, &mut transaction, events).await.expect("inserts");
        transaction.commit().await.expect("commits");
        seqs
    }
}

pub(crate) fn events(count: usize) -> Vec<Envelope> {
    let event = |n| Envelope::json("order.placed", format!("{{\"n\": {n}}}")).expect("valid");
    (0..count).map(event).collect()
}

pub(crate) fn node(name: &str) -> NodeId {
    NodeId::from_stored(&unique(name))
}

/// A node that owns the table.
pub(crate) async fn owner(store: &MysqlStore) -> NodeId {
    let owner = node("owner");
    store.join(&owner, NodeMode::SingleNode, LEASE).await.expect("joins");
    assert!(matches!(store.acquire(&owner).await.expect("acquires"), Acquired::Owner { .. }));
    owner
}

pub(crate) async fn done(store: &MysqlStore, seqs: &[i64]) -> Vec<Verdict> {
    done_at(store, seqs).await.expect("reads the rows")
}

pub(crate) fn fetch(limit: usize) -> Fetch {
    Fetch::new(limit)
}

pub(crate) async fn pending(store: &MysqlStore) -> Vec<i64> {
    store.fetch(&fetch(1000)).await.expect("fetches").rows.iter().map(FetchedRow::seq).collect()
}

/// Waits for what others do in their own time: servers that notice a closed connection.
pub(crate) async fn eventually(what: &str, holds: impl AsyncFn() -> bool) {
    for _ in 0..60 {
        if holds().await {
            return;
        }
        // The server renews its table of transactions only if nobody has read it for 100 ms.
        tokio::time::sleep(Duration::from_millis(150)).await;
    }
    panic!("it never came about: {what}");
}
