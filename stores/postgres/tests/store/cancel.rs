//! Every call may be dropped at any await: nothing may be left behind in the database or in the pool.

use std::time::Duration;

use crate::support::{self, LEASE, done, events, eventually, fetch, node, unique, with_db};
use pillarbox_core::ownership::{Fence, NodeMode};
use pillarbox_core::store::{Admin as _, Store as _};
use pillarbox_testkit::CutShort;

#[tokio::test]
async fn dropped_calls_leave_nothing_behind() {
    with_db(async |db| {
        let name = unique("cancel");
        let url = db.url_with("", &format!("&application_name={name}"));
        let store = db.options_at(&url).pool_size(3).connect().await.expect("connects");
        store.migrate().await.expect("migrates");
        let owner = support::owner(&store).await;
        let written = db.write(&store, events(300)).await;
        let verdicts = done(&store, &written).await;
        let mut calls = CutShort::default();
        for round in 0..150 {
            let other = node("other");
            calls.cut_short("join", store.join(&other, NodeMode::SingleNode, LEASE)).await;
            calls.cut_short("acquire", store.acquire(&other)).await;
            calls.cut_short("fetch", store.fetch(&fetch(100))).await;
            calls.cut_short("settle", store.settle(&owner, Fence::Table, &verdicts[round * 2..round * 2 + 2])).await;
            calls.cut_short("renew", store.renew(&owner, LEASE, None, None)).await;
            calls.cut_short("leave", store.leave(&other)).await;
            calls.cut_short("migrate", store.migrate()).await;
            calls.cut_short("check", store.check()).await;
            // Those that follow find a pool in order, whatever was cut short.
            store.counts().await.expect("counts");
        }
        calls.assert_some_of_each();
        // The server needs a moment to notice closed connections; nothing here tells it.
        eventually("no transaction is open", async || {
            let open =
                format!("SELECT count(*) FROM pg_stat_activity WHERE application_name = '{name}' AND state <> 'idle'");
            db.text(&open).await.as_deref() == Some("0")
        })
        .await;
        let locks = format!(
            "SELECT count(*) FROM pg_locks JOIN pg_stat_activity USING (pid) WHERE application_name = '{name}'"
        );
        assert_eq!(db.text(&locks).await.as_deref(), Some("0"));
        // What was cut short either happened or did not; all of it can be completed.
        store.settle(&owner, Fence::Table, &verdicts).await.expect("settles");
        let counts = store.counts().await.expect("counts");
        assert_eq!((counts.new, counts.done), (0, 300));
    })
    .await;
}

/// A migration that is dropped while it waits for another one is not in the way of the next.
#[tokio::test]
async fn a_dropped_migration_holds_no_lock() {
    with_db(async |db| {
        let store = db.options().pool_size(1).connect().await.expect("connects");
        let mut client = db.pool.get().await.expect("a connection");
        let holder = client.transaction().await.expect("begins");
        let lock = format!("pillarbox migration of {}.outbox_event", db.schema);
        holder.execute("SELECT pg_advisory_xact_lock(hashtextextended($1, 0))", &[&lock]).await.expect("locks");
        // It asks for the lock again and again, so only time tells that it waits.
        let waited = tokio::time::timeout(Duration::from_millis(500), store.migrate()).await;
        assert!(waited.is_err(), "it did not wait: {waited:?}");
        holder.rollback().await.expect("rolls back");
        store.migrate().await.expect("migrates");
        store.check().await.expect("is there");
    })
    .await;
}
