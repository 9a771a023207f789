//! Claims against what happens at the same time: the server judges a row that changed meanwhile anew, but everything
//! around it as of the moment at which the statement began.

#![allow(clippy::expect_used, clippy::panic, reason = "a test's helpers fail as the test does")]

use crate::support::{Db, LEASE, NONE, claimer, done, events, fetch, seqs, with_db};
use pillarbox_core::ownership::Fence;
use pillarbox_core::store::{Fetched, FetchedRow, Store as _};

fn lock_of(db: &Db, node: &str) -> String {
    format!("SELECT FROM {}.outbox_node WHERE node_id = '{node}' FOR UPDATE", db.schema)
}

/// The claim saw the rows free and its rival nowhere, and was then made to wait.
#[tokio::test]
async fn a_claim_does_not_rob_a_node_that_joined_after_it_began() {
    with_db(async |db| {
        let store = db.store().await;
        let written = db.write(&store, events(5)).await;
        let slow = claimer(&store, "slow").await;
        let mut client = db.pool.get().await.expect("a connection");
        let holder = client.transaction().await.expect("begins");
        holder.execute(&lock_of(db, slow.as_str()), &[]).await.expect("locks");
        let wanted = fetch(10);
        let rival = async {
            db.waiting("outbox_node").await;
            let quick = claimer(&store, "quick").await;
            let claimed = store.claim(&quick, &fetch(3)).await.expect("claims");
            holder.rollback().await.expect("rolls back");
            (quick, claimed)
        };
        let (claimed, (quick, before)) = tokio::join!(store.claim(&slow, &wanted), rival);
        assert_eq!(seqs(&before.rows), written[..3]);
        assert_eq!(seqs(&claimed.expect("claims").rows), written[3..]);
        let verdicts = done(&store, &written[..3]).await;
        assert_eq!(store.settle(&quick, Fence::Row, &verdicts).await.expect("settles"), NONE, "they are still its own");
    })
    .await;
}

/// An eviction of a node and a claim by it wait for each other.
#[tokio::test]
async fn a_node_that_is_evicted_while_it_claims_gets_nothing() {
    with_db(async |db| {
        let store = db.store().await;
        db.write(&store, events(2)).await;
        let dying = claimer(&store, "dying").await;
        let mut client = db.pool.get().await.expect("a connection");
        let clearing = client.transaction().await.expect("begins");
        let delete = format!("DELETE FROM {}.outbox_node WHERE node_id = '{dying}'", db.schema);
        clearing.execute(&delete, &[]).await.expect("deletes");
        let wanted = fetch(10);
        let clear = async {
            db.waiting("outbox_node").await;
            clearing.commit().await.expect("commits");
        };
        let (claimed, ()) = tokio::join!(store.claim(&dying, &wanted), clear);
        assert!(claimed.expect("claims").rows.is_empty());
        let held = format!("SELECT count(*) FROM {}.outbox_event WHERE locked_by IS NOT NULL", db.schema);
        assert_eq!(db.text(&held).await.as_deref(), Some("0"));
    })
    .await;
}

/// A dead node's late release, and the claim of a living one after it, while its rows are being freed.
#[tokio::test]
async fn a_reclaim_does_not_free_what_changed_hands_meanwhile() {
    with_db(async |db| {
        let store = db.store().await;
        let written = db.write(&store, events(2)).await;
        let living = claimer(&store, "living").await;
        let table = format!("{}.outbox_event", db.schema);
        db.execute(&format!("UPDATE {table} SET locked_by = 'dead!'")).await;
        let mut client = db.pool.get().await.expect("a connection");
        let change = client.transaction().await.expect("begins");
        let sql = format!("UPDATE {table} SET locked_by = '{living}' WHERE seq = {}", written[0]);
        change.execute(&sql, &[]).await.expect("updates");
        let commit = async {
            db.waiting("outbox_event").await;
            change.commit().await.expect("commits");
        };
        let (reclaimed, ()) = tokio::join!(store.reclaim(&living, true), commit);
        assert_eq!(reclaimed.expect("reclaims").freed, 1);
        assert_eq!(db.column("locked_by", written[0]).await.as_deref(), Some(living.as_str()));
        assert_eq!(db.column("locked_by", written[1]).await.as_deref(), Some("!"));
    })
    .await;
}

/// Every node asks about once per lease: where nothing expired, it waits for nobody and writes nothing.
#[tokio::test]
async fn a_reclaim_without_a_reason_takes_no_lock() {
    with_db(async |db| {
        let store = db.store().await;
        let node = claimer(&store, "node").await;
        let mut client = db.pool.get().await.expect("a connection");
        let holder = client.transaction().await.expect("begins");
        let lock = format!("LOCK TABLE {0}.outbox_partition, {0}.outbox_event IN ACCESS EXCLUSIVE MODE", db.schema);
        holder.batch_execute(&lock).await.expect("locks");
        let reclaimed = tokio::time::timeout(LEASE, store.reclaim(&node, false)).await.expect("is not kept waiting");
        assert!(reclaimed.expect("reclaims").registered);
        holder.rollback().await.expect("rolls back");
    })
    .await;
}

/// Rows that wait for their time cannot have been claimed, so they are not looked at.
#[tokio::test]
async fn a_reclaim_covers_rows_whose_due_time_has_passed() {
    with_db(async |db| {
        let store = db.store().await;
        let written = db.write(&store, events(3)).await;
        let table = format!("{}.outbox_event", db.schema);
        db.execute(&format!(
            "UPDATE {table} SET locked_by = 'gone', status = 2, available_at = now() - interval '1 second' WHERE seq = {};
             UPDATE {table} SET locked_by = 'gone', available_at = now() + interval '1 hour' WHERE seq = {}",
            written[0], written[1]
        ))
        .await;
        let node = claimer(&store, "node").await;
        assert_eq!(store.reclaim(&node, true).await.expect("reclaims").freed, 1);
        let claimed = store.claim(&node, &fetch(10)).await.expect("claims");
        assert_eq!(before(&claimed), [(written[2], None), (written[0], Some("?"))]);
    })
    .await;
}

/// Rows with a due time get a third of the limit, and what is taken is what is returned.
#[tokio::test]
async fn a_claim_takes_what_it_returns_and_no_more() {
    with_db(async |db| {
        let store = db.store().await;
        let ready = db.write(&store, events(10)).await;
        let due = db.write(&store, events(10)).await;
        let table = format!("{}.outbox_event", db.schema);
        let late =
            format!("UPDATE {table} SET status = 2, available_at = now() - interval '1 hour' WHERE seq >= {}", due[0]);
        db.execute(&late).await;
        let node = claimer(&store, "node").await;
        let taken = seqs(&store.claim(&node, &fetch(9)).await.expect("claims").rows);
        assert_eq!(taken, [&ready[..6], &due[..3]].concat());
        let held = format!("SELECT count(*) FROM {table} WHERE locked_by = '{node}'");
        assert_eq!(db.text(&held).await.as_deref(), Some("9"));
    })
    .await;
}

/// Each row, and what it said of its holder.
fn before(claimed: &Fetched) -> Vec<(i64, Option<&str>)> {
    let rows = claimed.rows.iter().map(|row| match row {
        FetchedRow::Row(row) => (row.seq, row.locked_by.as_deref()),
        FetchedRow::Broken(row) => panic!("{row:?}"),
    });
    rows.collect()
}
