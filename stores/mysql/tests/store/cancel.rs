//! Every call may be dropped at any await: nothing may be left behind in the database or in the pool.

use crate::support::{self, LEASE, done, events, eventually, fetch, node, with_db};
use mysql_async::prelude::Queryable as _;
use pillarbox_core::ownership::{Fence, NodeMode};
use pillarbox_core::store::{Admin as _, Store as _};
use pillarbox_testkit::{CutShort, rows_at};

#[tokio::test]
async fn dropped_calls_leave_nothing_behind() {
    with_db(async |db| {
        let store = db.options().pool_size(3).connect().await.expect("connects");
        store.migrate().await.expect("migrates");
        let owner = support::owner(&store).await;
        let written = db.write(&store, events(200)).await;
        let verdicts = done(&store, &written).await;
        let mut calls = CutShort::default();
        for round in 0..100 {
            let other = node("other");
            let seqs = &written[round * 2..round * 2 + 2];
            calls.cut_short("join", store.join(&other, NodeMode::SingleNode, LEASE)).await;
            calls.cut_short("acquire", store.acquire(&other)).await;
            calls.cut_short("fetch", store.fetch(&fetch(100))).await;
            calls.cut_short("claim", store.claim(&other, &fetch(10))).await;
            calls.cut_short("settle", store.settle(&owner, Fence::Table, &verdicts[round * 2..round * 2 + 2])).await;
            calls.cut_short("release", store.release(&other, &rows_at(&store, seqs).await.expect("reads"))).await;
            calls.cut_short("reclaim", store.reclaim(&owner, true)).await;
            calls.cut_short("renew", store.renew(&owner, LEASE, None, None)).await;
            calls.cut_short("leave", store.leave(&other)).await;
            calls.cut_short("check", store.check()).await;
            // Those that follow find a pool in order, whatever was cut short.
            store.counts().await.expect("counts");
        }
        calls.assert_some_of_each();
        // The server needs a moment to notice closed connections; nothing here tells it.
        eventually("no transaction is open", async || {
            let open = format!(
                "SELECT COUNT(*) FROM information_schema.INNODB_TRX t JOIN information_schema.PROCESSLIST p
                 ON p.ID = t.trx_mysql_thread_id WHERE p.DB = '{}'",
                db.name
            );
            db.text(&open).await.as_deref() == Some("0")
        })
        .await;
        // What was cut short either happened or did not; all of it can be completed.
        store.settle(&owner, Fence::Table, &verdicts).await.expect("settles");
        let counts = store.counts().await.expect("counts");
        assert_eq!((counts.new, counts.done), (0, 200));
    })
    .await;
}

/// A migration that is dropped while it waits for another one is not in the way of the next.
#[tokio::test]
async fn a_dropped_migration_holds_no_lock() {
    with_db(async |db| {
        let store = db.options().pool_size(1).connect().await.expect("connects");
        let mut holder = db.pool.get_conn().await.expect("a connection");
        let lock = format!("CONCAT('pillarbox:', SHA1('{}.outbox_event'))", db.name);
        holder.query_drop(format!("DO GET_LOCK({lock}, 10)")).await.expect("locks");
        let waits = async {
            let sql = format!(
                "SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE DB = '{}' AND STATE = 'User lock'",
                db.name
            );
            eventually("the migration waits", async || db.text(&sql).await.as_deref() != Some("0")).await;
        };
        tokio::select! {
            migrated = store.migrate() => panic!("it did not wait: {migrated:?}"),
            () = waits => {}
        }
        holder.query_drop(format!("DO RELEASE_LOCK({lock})")).await.expect("unlocks");
        store.migrate().await.expect("migrates");
        store.check().await.expect("is there");
    })
    .await;
}
