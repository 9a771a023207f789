//! Transactions that meet: who waits, who does not, and what becomes of a deadlock.

#![allow(clippy::expect_used, clippy::panic, reason = "a test's helpers fail as the test does")]

use std::time::Duration;

use crate::support::{self, LEASE, done, events, eventually, fetch, node, with_db};
use mysql_async::prelude::Queryable as _;
use mysql_async::{IsolationLevel, TxOpts};
use pillarbox_core::error::StoreErrorKind;
use pillarbox_core::ownership::{Epochs, Fence, NodeMode, Partitions, Rebalanced, Renewal};
use pillarbox_core::row::{Change, Expected};
use pillarbox_core::store::{Admin as _, FetchedRow, Purge, Purgeable, Store as _};
use pillarbox_core::write::{Action, Command, Connection as _};
use pillarbox_mysql::MysqlStore;

/// How many sessions of this database are at a statement for longer than any of these takes by itself.
async fn waiting(db: &support::Db) -> Option<String> {
    let sql = format!(
        "SELECT COUNT(*) FROM information_schema.PROCESSLIST
         WHERE DB = '{}' AND COMMAND = 'Query' AND TIME_MS > 200 AND ID <> CONNECTION_ID()",
        db.name
    );
    db.text(&sql).await
}

/// A settle that is stuck holds the fence, and the lease is renewed all the same; the node's removal waits for it.
#[tokio::test]
async fn a_settle_under_way_is_in_the_way_of_a_removal_and_not_of_a_renewal() {
    with_db(async |db| {
        let store = db.store().await;
        let owner = support::owner(&store).await;
        let written = db.write(&store, events(1)).await;
        let mut user = db.pool.start_transaction(TxOpts::default()).await.expect("begins");
        user.query_drop("SELECT * FROM outbox_event FOR UPDATE").await.expect("locks the event");

        let verdicts = done(&store, &written).await;
        let settle = store.settle(&owner, Fence::Table, &verdicts);
        let meanwhile = async {
            eventually("the settle waits", async || waiting(db).await.as_deref() == Some("1")).await;
            let renewed = tokio::time::timeout(Duration::from_secs(5), store.renew(&owner, LEASE, None, None)).await;
            assert!(matches!(renewed.expect("does not wait").expect("renews"), Renewal::Renewed { .. }));
            let leave = async {
                store.leave(&owner).await.expect("leaves");
            };
            let release = async {
                eventually("the removal waits", async || waiting(db).await.as_deref() == Some("2")).await;
                user.rollback().await.expect("rolls back");
            };
            tokio::join!(leave, release);
        };
        let (settled, ()) = tokio::join!(settle, meanwhile);
        assert_eq!(settled.expect("settles"), [0_i64; 0], "it was first");
        assert_eq!(store.counts().await.expect("counts").done, 1);
        assert_eq!(store.settle(&owner, Fence::Table, &verdicts).await.expect("settles"), written, "it has left");
    })
    .await;
}

/// A settle of a node whose lease has ended comes first, or not at all: its partitions change hands only after it.
#[tokio::test]
async fn a_settle_under_way_is_in_the_way_of_sharing_out_what_its_node_owned() {
    with_db(async |db| {
        let store = db.store().await;
        let (dying, heir) = (node("dying"), node("heir"));
        store.join(&dying, NodeMode::Partitioned, LEASE).await.expect("joins");
        store.rebalance(&dying, &Epochs::none()).await.expect("rebalances");
        let written = db.write(&store, events(1)).await;
        let mut user = db.pool.start_transaction(TxOpts::default()).await.expect("begins");
        user.query_drop("SELECT * FROM outbox_event FOR UPDATE").await.expect("locks the event");

        let verdicts = done(&store, &written).await;
        let settle = store.settle(&dying, Fence::Partition, &verdicts);
        let meanwhile = async {
            eventually("the settle waits", async || waiting(db).await.as_deref() == Some("1")).await;
            db.execute("UPDATE outbox_node SET expires_at = UTC_TIMESTAMP(6)").await;
            store.join(&heir, NodeMode::Partitioned, LEASE).await.expect("joins");
            let release = async {
                eventually("the heir waits", async || waiting(db).await.as_deref() == Some("2")).await;
                user.rollback().await.expect("rolls back");
            };
            let nothing = Epochs::none();
            tokio::join!(store.rebalance(&heir, &nothing), release).0
        };
        let (settled, rebalanced) = tokio::join!(settle, meanwhile);
        assert_eq!(settled.expect("settles"), [0_i64; 0], "it was first");
        let Rebalanced::Member(holding) = rebalanced.expect("rebalances") else { panic!("it is registered") };
        assert_eq!((holding.owned, holding.unclean), (Partitions::ALL, Partitions::ALL));
        let refused = store.settle(&dying, Fence::Partition, &verdicts).await.expect("settles");
        assert_eq!(refused, written, "it was evicted");
    })
    .await;
}

/// Whoever needs the lock of the nodes is told after a while that it is held, and where to look.
#[tokio::test]
async fn a_lock_that_is_held_for_long_is_named() {
    with_db(async |db| {
        let store = db.store().await;
        let mut user = db.pool.start_transaction(TxOpts::default()).await.expect("begins");
        let lock = "UPDATE outbox_partition SET interventions = 1 WHERE `partition` = 0";
        user.query_drop(lock).await.expect("locks");
        let refused = store.join(&node("first"), NodeMode::Partitioned, LEASE).await.expect_err("is held up");
        assert_eq!(refused.kind(), StoreErrorKind::Contention);
        let message = refused.to_string();
        for part in ["partition 0", "outbox_partition", "innodb_trx"] {
            assert!(message.contains(part), "{part}: {message}");
        }
        user.rollback().await.expect("rolls back");
        store.join(&node("first"), NodeMode::Partitioned, LEASE).await.expect("joins");
    })
    .await;
}

/// Rows that another transaction has locked are passed over.
#[tokio::test]
async fn a_claim_waits_for_no_row() {
    with_db(async |db| {
        let store = db.store().await;
        let claimer = node("claimer");
        store.join(&claimer, NodeMode::MultiNode, LEASE).await.expect("joins");
        let written = db.write(&store, events(3)).await;
        let mut user = db.pool.start_transaction(TxOpts::default()).await.expect("begins");
        let lock = format!("SELECT * FROM outbox_event WHERE seq = {} FOR UPDATE", written[1]);
        user.query_drop(lock).await.expect("locks");
        let claim = tokio::time::timeout(Duration::from_secs(5), store.claim(&claimer, &fetch(10))).await;
        let claimed: Vec<i64> =
            claim.expect("does not wait").expect("claims").rows.iter().map(FetchedRow::seq).collect();
        assert_eq!(claimed, [written[0], written[2]]);
        user.rollback().await.expect("rolls back");
    })
    .await;
}

/// A handler's transaction is of the service's level, at which a completion locks all that it reads. It does so in the order of a join.
#[tokio::test]
async fn a_completion_and_a_join_run_into_no_deadlock_at_repeatable_read() {
    for mode in [NodeMode::SingleNode, NodeMode::Partitioned] {
        with_db(async |db| {
            let store = db.store().await;
            let owner = node("owner");
            store.join(&owner, mode, LEASE).await.expect("joins");
            let fence = if mode == NodeMode::Partitioned {
                store.rebalance(&owner, &Epochs::none()).await.expect("rebalances");
                Fence::Partition
            } else {
                store.acquire(&owner).await.expect("acquires");
                Fence::Table
            };
            let written = db.write(&store, events(1)).await;
            // The partition that a join locks.
            db.execute("UPDATE outbox_event SET `partition` = 0").await;
            let verdicts = done(&store, &written).await;
            let mut level = TxOpts::default();
            level.with_isolation_level(IsolationLevel::RepeatableRead);
            let mut handler = db.pool.start_transaction(level).await.expect("begins");
            let mut steps = store.complete(&owner, fence, &verdicts[0]).statements.into_iter().map(|statement| {
                let action = Action::Complete { node: &owner, fence, verdict: &verdicts[0] };
                Command { action, statements: vec![statement] }
            });
            let (lock, change) = (steps.next().expect("locks"), steps.next().expect("changes"));

            handler.run(&lock).await.expect("locks");
            let complete = async {
                eventually("the join waits", async || waiting(db).await.as_deref() == Some("1")).await;
                assert_eq!(handler.run(&change).await.expect("is not the victim of a deadlock"), 1, "{mode:?}");
                handler.commit().await.expect("commits");
            };
            let other = node("other");
            let (joined, ()) = tokio::join!(store.join(&other, mode, LEASE), complete);
            joined.expect("joins");
            assert_eq!(store.counts().await.expect("counts").done, 1);
        })
        .await;
    }
}

/// The settle is the victim of a deadlock, since it has changed less; it begins anew, and nobody hears of it.
#[tokio::test]
async fn a_deadlock_is_run_again() {
    with_db(async |db| {
        let store = db.store().await;
        let owner = support::owner(&store).await;
        let written = db.write(&store, events(200)).await;
        let mut user = db.pool.start_transaction(TxOpts::default()).await.expect("begins");
        // The settle locks in ascending order, and gets stuck at the last row.
        let backwards = format!("UPDATE outbox_event SET tenant_id = 'x' WHERE seq > {}", written[100]);
        user.query_drop(backwards).await.expect("locks");
        let half = [written[0], written[101]];
        let verdicts = done(&store, &half).await;
        let settle = store.settle(&owner, Fence::Table, &verdicts);
        let meanwhile = async {
            eventually("the settle waits", async || waiting(db).await.as_deref() == Some("1")).await;
            let circle = format!("UPDATE outbox_event SET tenant_id = 'x' WHERE seq = {}", written[0]);
            user.query_drop(circle).await.expect("is not the victim");
            user.commit().await.expect("commits");
        };
        let (settled, ()) = tokio::join!(settle, meanwhile);
        assert_eq!(settled.expect("settles"), [0_i64; 0]);
        assert_eq!(store.counts().await.expect("counts").done, 2);
    })
    .await;
}

/// Fills the event table with 20 rows in a state, and deletes them while a writer's transaction is open that has inserted another one. A
/// server would read so small a table as a whole, and wait for the writer.
async fn beside_a_writer<T>(
    db: &support::Db,
    store: &MysqlStore,
    state: &str,
    delete: impl AsyncFnOnce(&[i64]) -> T,
) -> T {
    db.execute("DELETE FROM outbox_event").await;
    let written = db.write(store, events(20)).await;
    db.execute(&format!("UPDATE outbox_event SET {state}")).await;
    let mut writer = db.pool.start_transaction(TxOpts::default()).await.expect("begins");
    let insert = "INSERT INTO outbox_event (event_id, event_type, payload) VALUES ('open', 't', '{}')";
    writer.query_drop(insert).await.expect("inserts");
    let deleted = tokio::time::timeout(Duration::from_secs(8), delete(&written)).await;
    writer.rollback().await.expect("rolls back");
    assert_eq!(db.text("SELECT CAST(COUNT(*) AS CHAR) FROM outbox_event").await.as_deref(), Some("0"), "{state}");
    deleted.unwrap_or_else(|_| panic!("it waited for the writer: {state}"))
}

#[tokio::test]
async fn deleting_events_waits_for_no_writer() {
    with_db(async |db| {
        let store = db.store().await;
        let owner = support::owner(&store).await;
        // On the first attempt, and after a failed one.
        for attempts in [0, 1] {
            let state = format!("attempts = {attempts}");
            let settle = async |written: &[i64]| {
                let mut verdicts = done(&store, written).await;
                for verdict in &mut verdicts {
                    verdict.change = Change::Remove;
                    verdict.expected = Expected { attempts, replays: 0 };
                }
                store.settle(&owner, Fence::Table, &verdicts).await
            };
            let refused = beside_a_writer(db, &store, &state, settle).await;
            assert_eq!(refused.expect("settles"), [0_i64; 0], "{attempts}");
        }
        let discard = async |written: &[i64]| store.discard(written).await;
        let discarded = beside_a_writer(db, &store, "status = 3, done_at = '2000-01-01'", discard).await;
        assert_eq!(discarded.expect("discards").len(), 20);
        store.leave(&owner).await.expect("leaves");
        for (what, status) in [(Purgeable::Done, 1), (Purgeable::Dead, 3), (Purgeable::All, 0)] {
            let state = format!("status = {status}, done_at = '2000-01-01', created_at = '2000-01-01'");
            let purge = async |_: &[i64]| store.purge(&Purge::new(what, Duration::from_secs(60), 100)).await;
            let purged = beside_a_writer(db, &store, &state, purge).await;
            assert_eq!(purged.expect("purges").removed, 20, "{what:?}");
        }
    })
    .await;
}

/// The purge passes over messages that a transaction has just received.
#[tokio::test]
async fn purging_the_inbox_waits_for_no_receiver() {
    with_db(async |db| {
        let store = db.store().await;
        let old = "INSERT INTO outbox_inbox (consumer, message_id, received_at) VALUES ('c', ?, '2000-01-01')";
        let mut connection = db.pool.get_conn().await.expect("a connection");
        connection.exec_batch(old, (0..20).map(|number| (number,))).await.expect("fills the inbox");
        let mut receiver = db.pool.start_transaction(TxOpts::default()).await.expect("begins");
        receiver.run(&store.receive("c", "just received")).await.expect("receives");
        let purge = store.purge_inbox("c", Duration::from_secs(60), 100);
        let purged = tokio::time::timeout(Duration::from_secs(8), purge).await;
        receiver.rollback().await.expect("rolls back");
        assert_eq!(purged.expect("it waited for the receiver").expect("purges"), 20);
    })
    .await;
}
