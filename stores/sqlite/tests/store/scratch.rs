use std::path::{Path, PathBuf};
use std::time::Duration;

use pillarbox_core::event::{Envelope, Stamp};
use pillarbox_core::ownership::{NodeId, NodeMode};
use pillarbox_core::row::Verdict;
use pillarbox_core::store::{Fetch, FetchScope, FetchedRow, Heads, Row, Store};
use pillarbox_core::write::{Finish, insert};
use pillarbox_sqlite::SqliteStore;
use pillarbox_sqlx::begin_immediate;
use pillarbox_testkit::done_at;
use sqlx::SqlitePool;
use sqlx::sqlite::{SqliteConnectOptions, SqlitePoolOptions};

/// A directory of its own for the files of a test, removed with it.
pub(crate) struct Scratch(PathBuf);

impl Scratch {
    pub(crate) fn new() -> Self {
        let directory = std::env::temp_dir().join(format!("pillarbox_sx_{}", Stamp::system().next_id()));
        std::fs::create_dir(&directory).expect("the directory for temporary files is writable");
        Self(directory)
    }

    pub(crate) fn file(&self) -> String {
        self.path().join("shop.db").to_str().expect("a UTF-8 path").to_owned()
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// A store with its tables.
    pub(crate) async fn store(&self) -> SqliteStore {
        let store = SqliteStore::open(&self.file()).await.expect("opens");
        store.migrate().await.expect("migrates");
        store
    }

    /// A pool of the service's own, of one connection.
    pub(crate) async fn foreign_pool(&self) -> SqlitePool {
        let options = SqliteConnectOptions::new().filename(self.file());
        SqlitePoolOptions::new().max_connections(1).connect_with(options).await.expect("connects")
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

pub(crate) fn event(payload: &str) -> Envelope {
    Envelope::json("order.placed", payload).expect("valid")
}

/// Writes so many events in one transaction.
pub(crate) async fn write(store: &SqliteStore, events: usize) -> Vec<i64> {
    let mut tx = begin_immediate(store.writer()).await.expect("begins");
    let events = (0..events).map(|number| event(&number.to_string())).collect();
    let seqs = insert(store, &mut tx, events).await.expect("inserts");
    Finish::commit(tx).await.expect("commits");
    seqs
}

/// A node that owns the table.
pub(crate) async fn owner(store: &SqliteStore) -> NodeId {
    let node = NodeId::from_stored("owner-1");
    store.join(&node, NodeMode::SingleNode, Duration::from_secs(60)).await.expect("joins");
    store.acquire(&node).await.expect("acquires");
    node
}

pub(crate) async fn pending(store: &SqliteStore) -> Vec<Row> {
    let fetched = store.fetch(&Fetch::new(10_000)).await.expect("fetches");
    let row = |row| match row {
        FetchedRow::Row(row) => row,
        FetchedRow::Broken(row) => panic!("{row:?}"),
    };
    fetched.rows.into_iter().map(row).collect()
}

/// Every partition, with these heads.
pub(crate) fn scope(heads: Heads) -> FetchScope {
    FetchScope { partitions: 0..=255, heads, without: Vec::new(), only: Vec::new(), node: None }
}

pub(crate) async fn done(store: &SqliteStore, seqs: &[i64]) -> Vec<Verdict> {
    done_at(store, seqs).await.expect("reads the rows")
}
