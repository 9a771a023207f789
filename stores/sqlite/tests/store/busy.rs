use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use pillarbox_core::error::StoreErrorKind;
use pillarbox_core::ownership::{Fence, NodeId};
use pillarbox_core::store::Store as _;
use pillarbox_sqlite::SqliteOptions;
use pillarbox_sqlx::begin_immediate;
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{ConnectOptions as _, Connection as _};
use tokio::time::timeout;

use crate::scratch::{Scratch, done, owner, pending, write};

/// Tiny transactions without a pause, on a connection and a thread that are not the store's, as another process makes
/// them. Counts them.
fn write_without_pause(file: &str, transactions: &AtomicUsize, stop: &AtomicBool) {
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    runtime.block_on(async {
        let options = SqliteConnectOptions::new().filename(file).busy_timeout(Duration::ZERO);
        let mut connection = options.connect().await.expect("connects");
        while !stop.load(Ordering::Relaxed) {
            // Without the lock it tries again at once, which gives it every advantage.
            let Ok(mut tx) = connection.begin_with("BEGIN IMMEDIATE").await else { continue };
            sqlx::query("INSERT INTO business DEFAULT VALUES").execute(&mut *tx).await.expect("inserts");
            tx.commit().await.expect("commits");
            transactions.fetch_add(1, Ordering::Relaxed);
        }
    });
}

#[tokio::test]
async fn a_busy_foreign_writer_does_not_starve_settling() {
    let scratch = Scratch::new();
    let store = scratch.store().await;
    let node = owner(&store).await;
    let seqs = write(&store, 200).await;
    sqlx::query("CREATE TABLE business (id INTEGER PRIMARY KEY)").execute(store.writer()).await.expect("creates");
    let (transactions, stop) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicBool::new(false)));
    let foreign = std::thread::spawn({
        let (file, transactions, stop) = (scratch.file(), Arc::clone(&transactions), Arc::clone(&stop));
        move || write_without_pause(&file, &transactions, &stop)
    });
    let settled = timeout(Duration::from_secs(20), async {
        for (number, batch) in (1..).zip(seqs.chunks(10)) {
            while transactions.load(Ordering::Relaxed) < number * 5 {
                tokio::task::yield_now().await;
            }
            let verdicts: Vec<_> = done(&store, batch).await;
            assert_eq!(
                store.settle(&node, Fence::Table, &verdicts).await.expect("the lock is had in time"),
                Vec::<i64>::new()
            );
        }
    });
    let settled = settled.await;
    stop.store(true, Ordering::Relaxed);
    foreign.join().expect("the foreign writer does not panic");
    settled.expect("20 batches are settled beside at least 100 foreign transactions");
    assert!(pending(&store).await.is_empty());
}

#[tokio::test]
async fn a_lock_that_is_never_released_is_contention() {
    let scratch = Scratch::new();
    let store =
        SqliteOptions::new(scratch.file()).busy_timeout(Duration::from_millis(300)).open().await.expect("opens");
    store.migrate().await.expect("migrates");
    let foreign = scratch.foreign_pool().await;
    let held = foreign.begin_with("BEGIN IMMEDIATE").await.expect("begins");
    let error = store.settle(&nobody(), Fence::Table, &done(&store, &[1]).await).await.expect_err("the lock is held");
    assert_eq!(error.kind(), StoreErrorKind::Contention, "{error}");
    assert!(error.to_string().contains("shop.db"), "{error}");
    held.rollback().await.expect("rolls back");
    assert_eq!(store.settle(&nobody(), Fence::Table, &done(&store, &[1]).await).await.expect("the lock is free"), [1]);
}

/// As while another process migrates a large table.
#[tokio::test]
async fn a_migration_waits_for_the_lock_and_needs_none_where_nothing_is_missing() {
    let scratch = Scratch::new();
    let store =
        SqliteOptions::new(scratch.file()).busy_timeout(Duration::from_millis(100)).open().await.expect("opens");
    let foreign = scratch.foreign_pool().await;
    let held = foreign.begin_with("BEGIN IMMEDIATE").await.expect("begins");
    let later = async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        held.rollback().await.expect("rolls back");
    };
    let (migrated, ()) = tokio::join!(timeout(Duration::from_secs(20), store.migrate()), later);
    migrated.expect("in time").expect("it had its turn");

    let held = foreign.begin_with("BEGIN IMMEDIATE").await.expect("begins");
    let none = timeout(Duration::from_secs(1), store.migrate()).await;
    none.expect("it waits for nobody").expect("nothing is missing");
    held.rollback().await.expect("rolls back");
}

#[tokio::test]
async fn a_transaction_held_on_the_writer_is_contention_too() {
    let scratch = Scratch::new();
    let store = SqliteOptions::new(scratch.file()).busy_timeout(Duration::from_secs(1)).open().await.expect("opens");
    store.migrate().await.expect("migrates");
    let held = begin_immediate(store.writer()).await.expect("begins");
    let error =
        store.settle(&nobody(), Fence::Table, &done(&store, &[1]).await).await.expect_err("the writer is taken");
    assert_eq!(error.kind(), StoreErrorKind::Contention, "{error}");
    drop(held);
    assert_eq!(
        store.settle(&nobody(), Fence::Table, &done(&store, &[1]).await).await.expect("the writer is free"),
        [1]
    );
}

fn nobody() -> NodeId {
    NodeId::from_stored("nobody-1")
}
