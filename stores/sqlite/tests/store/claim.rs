use std::collections::BTreeMap;
use std::process::{Command, Stdio};
use std::time::Duration;

use futures_util::future::try_join_all;
use pillarbox_core::error::StoreError;
use pillarbox_core::event::Stamp;
use pillarbox_core::ownership::{Fence, NodeId, NodeMode};
use pillarbox_core::store::{Admin as _, Fetch, FetchedRow, Store as _};
use pillarbox_sqlite::{SqliteOptions, SqliteStore};
use sqlx::ConnectOptions as _;
use sqlx::sqlite::SqliteConnectOptions;

use crate::scratch::{Scratch, done, pending, write};

const EVENTS: usize = 2_000;

fn some(limit: usize) -> Fetch {
    Fetch::new(limit)
}

async fn peer(store: &SqliteStore) -> NodeId {
    let node = NodeId::from_stored(&format!("peer-{}", Stamp::system().next_id()));
    store.join(&node, NodeMode::MultiNode, Duration::from_secs(60)).await.expect("joins");
    node
}

/// Claims and settles until nothing is left, and returns every row it was given, as often as it was given it.
async fn drain(file: &str) -> Result<Vec<i64>, StoreError> {
    let store = SqliteStore::open(file).await?;
    let node = peer(&store).await;
    let mut claimed = Vec::new();
    loop {
        let fetched = store.claim(&node, &some(7)).await?;
        if fetched.rows.is_empty() {
            store.leave(&node).await?;
            return Ok(claimed);
        }
        let seqs: Vec<i64> = fetched.rows.iter().map(FetchedRow::seq).collect();
        let verdicts: Vec<_> = done(&store, &seqs).await;
        let refused = store.settle(&node, Fence::Row, &verdicts).await?;
        assert_eq!(refused, Vec::<i64>::new(), "the rows are the node's own");
        claimed.extend(seqs);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stores_on_one_file_claim_each_row_once() {
    let scratch = Scratch::new();
    let mut seqs = write(&scratch.store().await, EVENTS).await;
    let file = scratch.file();
    // Each store's connections have threads of their own.
    let nodes = (0..4).map(|_| drain(&file));
    let mut claimed = try_join_all(nodes).await.expect("drains").concat();
    claimed.sort_unstable();
    seqs.sort_unstable();
    assert_eq!(claimed, seqs);
}

/// SQLite locks a file differently between processes than between the connections of one. This test is both: run anew
/// by itself with a file in its environment it is the other process, and prints what it claimed.
#[tokio::test]
async fn processes_on_one_file_claim_each_row_once() {
    const FILE: &str = "PILLARBOX_TEST_SQLITE_FILE";
    const CLAIMED: &str = "claimed:";
    if let Ok(file) = std::env::var(FILE) {
        for seq in drain(&file).await.expect("drains") {
            println!("\n{CLAIMED}{seq}");
        }
        return;
    }
    let scratch = Scratch::new();
    let store = scratch.store().await;
    let seqs = write(&store, EVENTS).await;
    let program = std::env::current_exe().expect("has a path");
    let processes: Vec<_> = (0..2)
        .map(|_| {
            Command::new(&program)
                .args(["--exact", "claim::processes_on_one_file_claim_each_row_once", "--nocapture"])
                .env(FILE, scratch.file())
                .stdout(Stdio::piped())
                .spawn()
                .expect("starts")
        })
        .collect();
    let mut times = BTreeMap::from_iter(seqs.iter().map(|seq| (*seq, 0)));
    for process in processes {
        let output = process.wait_with_output().expect("ends");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
        let text = String::from_utf8(output.stdout).expect("is text");
        for seq in text.lines().filter_map(|line| line.strip_prefix(CLAIMED)) {
            *times.entry(seq.parse().expect("is a number")).or_default() += 1;
        }
    }
    assert_eq!(times.len(), EVENTS, "nothing else was claimed");
    assert!(times.values().all(|times| *times == 1), "{times:?}");
    assert!(pending(&store).await.is_empty());
}

#[tokio::test]
async fn looking_in_vain_keeps_nobody_from_writing() {
    let scratch = Scratch::new();
    let store =
        SqliteOptions::new(scratch.file()).busy_timeout(Duration::from_millis(300)).open().await.expect("opens");
    store.migrate().await.expect("migrates");
    let (node, other) = (peer(&store).await, peer(&store).await);
    write(&store, 3).await;
    assert_eq!(store.claim(&other, &some(10)).await.expect("claims").rows.len(), 3);
    // Whoever waited for the write lock would fail.
    let foreign = scratch.foreign_pool().await;
    let held = foreign.begin_with("BEGIN IMMEDIATE").await.expect("begins");
    assert!(store.claim(&node, &some(10)).await.expect("finds nothing").rows.is_empty());
    for thorough in [false, true] {
        let reclaimed = store.reclaim(&node, thorough).await.expect("finds nothing");
        assert!(reclaimed.registered && reclaimed.freed == 0 && reclaimed.next_expiry.is_some(), "{reclaimed:?}");
    }
    assert_eq!(store.backlog().await.expect("counts").due, 3);
    held.rollback().await.expect("rolls back");
}

#[tokio::test]
async fn a_row_that_an_unknown_program_holds_is_freed_by_a_thorough_look_only() {
    let scratch = Scratch::new();
    let store = scratch.store().await;
    let node = peer(&store).await;
    write(&store, 2).await;
    let mut prompt = SqliteConnectOptions::new().filename(scratch.file()).connect().await.expect("connects");
    let sql = "UPDATE outbox_event SET locked_by = 'gone-1' WHERE seq = 1;
               UPDATE outbox_event SET locked_by = 'gone-1!', available_at = 1 WHERE seq = 2";
    sqlx::raw_sql(sql).execute(&mut prompt).await.expect("updates");
    assert_eq!(store.reclaim(&node, false).await.expect("looks").freed, 0);
    assert!(store.claim(&node, &some(10)).await.expect("claims").rows.is_empty());
    assert_eq!(store.reclaim(&node, true).await.expect("looks").freed, 2);
    let before: Vec<_> = pending(&store).await.into_iter().map(|row| row.locked_by).collect();
    assert_eq!(before, [Some("?".into()), Some("!".into())]);
}
