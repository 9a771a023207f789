//! The guard around transactions of sqlx. The conformance suite tries it with mysql_async.

#![allow(clippy::expect_used, reason = "a test's helpers fail as the test does")]

use std::time::Duration;

use crate::support::{Db, with_db};
use pillarbox_core::event::Envelope;
use pillarbox_core::store::Admin as _;
use pillarbox_core::write::WriteError;
use pillarbox_engine::run::Outbox;
use pillarbox_mysql::MysqlStore;
use pillarbox_sqlx as _;
use pillarbox_testkit::{Recorder, wait_until_idle};
use sqlx::{Connection as _, Executor as _, MySqlConnection, MySqlPool};

const HOUR: Duration = Duration::from_secs(3600);

async fn start(db: &Db, recorder: &Recorder) -> (MysqlStore, Outbox) {
    let store = db.store().await;
    let builder = Outbox::single_node(store.clone()).poll_interval(HOUR, HOUR).handle_all(recorder.clone());
    (store, builder.start().await.expect("starts"))
}

fn event(number: usize) -> Envelope {
    Envelope::builder("order.placed").id(format!("e-{number}")).payload_json("{}").build().expect("valid")
}

#[tokio::test]
async fn events_rolled_back_to_a_savepoint_of_sqlx_are_never_delivered() {
    with_db(async |db| {
        let recorder = Recorder::new();
        let (store, outbox) = start(db, &recorder).await;
        let pool = MySqlPool::connect(&db.url_with("", "")).await.expect("connects");
        for number in [10, 20, 30] {
            let mut guarded = outbox.begin(&pool).await.expect("begins");
            outbox.write(&mut guarded, event(number)).await.expect("writes");
            guarded.execute("SAVEPOINT undone").await.expect("sets it");
            outbox.write(&mut *guarded, event(number + 1)).await.expect("writes");
            guarded.execute("ROLLBACK TO SAVEPOINT undone").await.expect("rolls back");
            let mut nested = guarded.begin().await.expect("begins");
            outbox.write(&mut nested, event(number + 2)).await.expect("writes");
            nested.rollback().await.expect("rolls back");
            let mut nested = guarded.begin().await.expect("begins");
            outbox.write(&mut *nested, event(number + 3)).await.expect("writes");
            nested.commit().await.expect("commits");
            guarded.commit().await.expect("commits");
        }
        wait_until_idle(&outbox, Duration::from_secs(30)).await.expect("all is delivered");
        assert!(outbox.stats().hot > 0, "none came from memory");
        assert_eq!(store.counts().await.expect("counts").done, 6);
        outbox.shutdown().await;
        let mut ids: Vec<String> = recorder.calls().iter().map(|call| call.id.to_string()).collect();
        ids.sort();
        assert_eq!(ids, ["e-10", "e-13", "e-20", "e-23", "e-30", "e-33"]);
    })
    .await;
}

/// By the type it cannot be told from one in a transaction.
#[tokio::test]
async fn a_bare_connection_of_sqlx_is_refused() {
    with_db(async |db| {
        let recorder = Recorder::new();
        let (store, outbox) = start(db, &recorder).await;
        let mut connection = MySqlConnection::connect(&db.url_with("", "")).await.expect("connects");
        let refused = outbox.write(&mut connection, event(1)).await;
        assert!(matches!(refused, Err(WriteError::NoTransaction)), "{refused:?}");
        assert_eq!(store.counts().await.expect("counts").pending(), 0);
        outbox.shutdown().await;
    })
    .await;
}
