//! Notifications through the server: between processes, however they name the table, and what becomes of a lost connection.

#![allow(clippy::expect_used, clippy::panic, reason = "a test's helpers fail as the test does")]

use crate::support::{Db, eventually, url, with_db};
use pillarbox_core::error::StoreErrorKind;
use pillarbox_core::store::{Listener, Store, WakeUps};
use sqlx::postgres::PgListener;

/// The channel of one of this schema's tables.
async fn channel(db: &Db, table: &str) -> String {
    let oid = db.text(&format!("SELECT '{}.{table}'::regclass::oid", db.schema)).await.expect("is there");
    format!("pillarbox_{oid}")
}

/// The connections that listen on a channel, and on no other.
fn listeners(channel: &str) -> String {
    format!("FROM pg_stat_activity WHERE query = 'LISTEN \"{channel}\"'")
}

fn wake_ups(store: &dyn Store) -> &dyn WakeUps {
    store.wake_ups().expect("the server has NOTIFY")
}

async fn open(store: &dyn Store) -> Box<dyn Listener> {
    wake_ups(store).listen().await.expect("listens")
}

#[tokio::test]
async fn a_notification_reaches_whoever_means_the_same_table() {
    with_db(async |db| {
        let qualified = db.store().await;
        let found_by_path = format!("&options=-c%20search_path%3D{}", db.schema);
        let path = db.options_at(&db.url_with("", &found_by_path)).table("outbox_event");
        let by_path = path.connect().await.expect("connects");
        let elsewhere = db.options().table(format!("{}.other_event", db.schema)).connect().await.expect("connects");
        elsewhere.migrate().await.expect("migrates");

        let mut ears = [open(&qualified).await, open(&by_path).await];
        let mut deaf = open(&elsewhere).await;
        let (ours, theirs) = (channel(db, "outbox_event").await, channel(db, "other_event").await);
        let mut all = PgListener::connect(&url()).await.expect("connects");
        all.listen_all([&*ours, &*theirs]).await.expect("listens");
        for store in [&qualified, &by_path] {
            wake_ups(store).notify().await.expect("notifies");
            for ear in &mut ears {
                ear.notified().await.expect("hears");
            }
        }
        wake_ups(&elsewhere).notify().await.expect("notifies");
        deaf.notified().await.expect("hears");
        // They come in the order of their commits.
        for channel in [&ours, &ours, &theirs] {
            assert_eq!(all.recv().await.expect("hears").channel(), channel);
        }
        let deaf_only = db.text(&format!("SELECT count(*) {}", listeners(&theirs))).await;
        assert_eq!(deaf_only.as_deref(), Some("1"), "it does not hear of the other table");
    })
    .await;
}

#[tokio::test]
async fn a_lost_connection_is_an_error_and_can_be_replaced() {
    with_db(async |db| {
        let store = db.store().await;
        let mut ear = open(&store).await;
        let listeners = listeners(&channel(db, "outbox_event").await);
        db.execute(&format!("SELECT pg_terminate_backend(pid) {listeners}")).await;
        let error = ear.notified().await.expect_err("it is lost");
        assert_eq!(error.kind(), StoreErrorKind::Unavailable, "{error}");
        ear.notified().await.expect_err("it stays lost");

        let mut ear = open(&store).await;
        wake_ups(&store).notify().await.expect("notifies");
        ear.notified().await.expect("hears");
        drop(ear);
        let none = async || db.text(&format!("SELECT count(*) {listeners}")).await.as_deref() == Some("0");
        eventually("dropping a listener closes its connection", none).await;
    })
    .await;
}

#[tokio::test]
async fn nobody_listens_through_a_pooler_or_a_closed_store() {
    with_db(async |db| {
        let store = db.store().await;
        let pooled = db.options().pooler(true).connect().await.expect("connects");
        assert!(pooled.wake_ups().is_none());
        store.close().await;
        let error = wake_ups(&store).listen().await.expect_err("it is closed");
        assert!(error.to_string().contains("closed"), "{error}");
        let error = wake_ups(&store).notify().await.expect_err("it is closed");
        assert!(error.to_string().contains("closed"), "{error}");
    })
    .await;
}
