use pillarbox_core::store::Admin as _;
use pillarbox_core::write::insert;
use pillarbox_sqlx::begin_immediate;
use sqlx::Executor as _;

use crate::scratch::{Scratch, event, pending, write};

#[tokio::test]
async fn a_service_with_a_pool_of_its_own_writes_events_too() {
    let scratch = Scratch::new();
    let store = scratch.store().await;
    let pool = scratch.foreign_pool().await;
    let mut tx = pool.begin().await.expect("begins");
    insert(&store, &mut tx, vec![event("1")]).await.expect("inserts");
    assert!(pending(&store).await.is_empty(), "nothing is committed yet");
    tx.commit().await.expect("commits");
    assert_eq!(pending(&store).await.len(), 1);
}

#[tokio::test]
async fn a_forgotten_begin_is_rolled_back() {
    let scratch = Scratch::new();
    let store = scratch.store().await;
    let mut connection = store.writer().acquire().await.expect("connects");
    connection.execute("BEGIN").await.expect("begins");
    connection
        .execute("INSERT INTO outbox_event (event_id, event_type, payload) VALUES ('a', 't', '1')")
        .await
        .expect("inserts");
    drop(connection);
    write(&store, 1).await;
    assert_eq!(pending(&store).await.len(), 1);
}

#[tokio::test]
async fn a_transaction_that_sqlite_ended_by_itself_does_not_spoil_the_writer() {
    let scratch = Scratch::new();
    let store = scratch.store().await;
    let seqs = write(&store, 1).await;
    let mut tx = begin_immediate(store.writer()).await.expect("begins");
    // What a full disk does to any statement, a conflict clause does on demand.
    let sql = "INSERT OR ROLLBACK INTO outbox_event (seq, event_id, event_type) VALUES (?, 'a', 't')";
    sqlx::query(sql).bind(seqs[0]).execute(&mut *tx).await.expect_err("the primary key is taken");
    tx.commit().await.expect_err("there is no transaction left");
    write(&store, 1).await;
    assert_eq!(pending(&store).await.len(), 2);
    assert_eq!(store.counts().await.expect("counts").new, 2);
}
