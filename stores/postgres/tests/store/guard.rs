//! The guard around the transactions of each driver for PostgreSQL: what they did to an event decides, whatever the driver
//! says of it. The conformance suite tries it with sqlx.

#![allow(clippy::expect_used, reason = "a test's helpers fail as the test does")]

use std::time::Duration;

use crate::support::{self, Db, with_db};
use pillarbox_core::event::Envelope;
use pillarbox_core::store::Admin as _;
use pillarbox_core::write::WriteError;
use pillarbox_engine::run::Outbox;
use pillarbox_postgres::PostgresStore;
use pillarbox_sqlx as _;
use pillarbox_testkit::{Recorder, wait_until_idle};
use sqlx::{Connection as _, Executor as _};

const HOUR: Duration = Duration::from_secs(3600);

async fn start(db: &Db, recorder: &Recorder) -> (PostgresStore, Outbox) {
    let store = db.store().await;
    let builder = Outbox::single_node(store.clone()).poll_interval(HOUR, HOUR).handle_all(recorder.clone());
    (store, builder.start().await.expect("starts"))
}

fn event(number: usize) -> Envelope {
    Envelope::builder("order.placed").id(format!("e-{number}")).payload_json("{}").build().expect("valid")
}

/// Delivered once: these and no other, some of them from memory.
async fn delivered(store: &PostgresStore, outbox: &Outbox, recorder: &Recorder, kept: &[usize]) {
    wait_until_idle(outbox, Duration::from_secs(30)).await.expect("all is delivered");
    let (hot, done) = (outbox.stats().hot, store.counts().await.expect("counts").done);
    outbox.shutdown().await;
    let mut ids: Vec<String> = recorder.calls().iter().map(|call| call.id.to_string()).collect();
    ids.sort();
    assert_eq!(ids, kept.iter().map(|number| format!("e-{number}")).collect::<Vec<_>>());
    assert!(hot > 0, "none came from memory");
    assert_eq!(done, kept.len() as u64);
}

/// Writes two events, of which the second is rolled back to a savepoint.
macro_rules! write_around_a_savepoint {
    ($outbox:expr, $transaction:expr, $first:expr) => {{
        $outbox.write(&mut $transaction, event($first)).await.expect("writes");
        $transaction.batch_execute("SAVEPOINT undone").await.expect("sets it");
        $outbox.write(&mut $transaction, event($first + 1)).await.expect("writes");
        $transaction.batch_execute("SELECT 1 / 0").await.expect_err("division by zero");
        $transaction.batch_execute("ROLLBACK TO SAVEPOINT undone").await.expect("rolls back");
    }};
}

/// Writes two events, of which the first is rolled back with a nested transaction of the driver's, and commits.
macro_rules! write_in_nested_transactions {
    ($outbox:expr, $transaction:expr, $first:expr) => {{
        let mut nested = $transaction.transaction().await.expect("begins");
        $outbox.write(&mut nested, event($first)).await.expect("writes");
        nested.rollback().await.expect("rolls back");
        let mut nested = $transaction.transaction().await.expect("begins");
        $outbox.write(&mut nested, event($first + 1)).await.expect("writes");
        nested.commit().await.expect("commits");
        $transaction.commit().await.expect("commits");
    }};
}

#[tokio::test]
async fn events_rolled_back_to_a_tokio_postgres_or_deadpool_savepoint_are_not_delivered() {
    with_db(async |db| {
        let recorder = Recorder::new();
        let (store, outbox) = start(db, &recorder).await;
        let mut pooled = outbox.begin(&db.pool).await.expect("begins");
        write_around_a_savepoint!(outbox, pooled, 10);
        pooled.commit().await.expect("commits");
        let mut client = db.pool.get().await.expect("connects");
        let mut guarded = outbox.begin(&mut client).await.expect("begins");
        write_around_a_savepoint!(outbox, guarded, 20);
        write_in_nested_transactions!(outbox, guarded, 22);
        let bare: &mut tokio_postgres::Client = &mut client;
        let mut guarded = outbox.begin(bare).await.expect("begins");
        write_around_a_savepoint!(outbox, guarded, 30);
        write_in_nested_transactions!(outbox, guarded, 32);
        delivered(&store, &outbox, &recorder, &[10, 20, 23, 30, 33]).await;
    })
    .await;
}

/// A statement failed, its error was ignored, and PostgreSQL would answer the commit by rolling back. Both the guard and
/// `Outbox::commit` fail; where the driver commits and reports success, the receipt is not believed.
#[tokio::test]
async fn an_event_of_a_failed_transaction_is_never_delivered() {
    with_db(async |db| {
        let recorder = Recorder::new();
        let (store, outbox) = start(db, &recorder).await;
        let pool = sqlx::PgPool::connect(&support::url()).await.expect("connects");
        for round in 0..5 {
            let number = 10 * (round + 1);
            let mut guarded = outbox.begin(&pool).await.expect("begins");
            outbox.write(&mut guarded, event(number + 1)).await.expect("writes");
            guarded.execute("SELECT 1 / 0").await.expect_err("division by zero");
            guarded.commit().await.expect_err("there is nothing to commit");

            let mut own = pool.begin().await.expect("begins");
            let receipt = outbox.write(&mut own, event(number + 2)).await.expect("writes");
            own.execute("SELECT 1 / 0").await.expect_err("division by zero");
            outbox.commit(own, receipt).await.expect_err("there is nothing to commit");

            let mut own = pool.begin().await.expect("begins");
            let receipt = outbox.write(&mut own, event(number + 3)).await.expect("writes");
            own.execute("SELECT 1 / 0").await.expect_err("division by zero");
            own.commit().await.expect("sqlx takes it for a success");
            outbox.notify_committed(receipt);

            let mut guarded = outbox.begin(&pool).await.expect("begins");
            outbox.write(&mut *guarded, event(number)).await.expect("writes");
            guarded.commit().await.expect("commits");
            recorder.wait_for_calls(round + 1).await;
        }
        delivered(&store, &outbox, &recorder, &[10, 20, 30, 40, 50]).await;
    })
    .await;
}

/// By the type it cannot be told from one in a transaction.
#[tokio::test]
async fn a_bare_connection_of_sqlx_is_refused() {
    with_db(async |db| {
        let recorder = Recorder::new();
        let (store, outbox) = start(db, &recorder).await;
        let mut connection = sqlx::PgConnection::connect(&support::url()).await.expect("connects");
        let refused = outbox.write(&mut connection, event(1)).await;
        assert!(matches!(refused, Err(WriteError::NoTransaction)), "{refused:?}");
        let mut pooled = sqlx::PgPool::connect_lazy(&support::url()).expect("valid").acquire().await.expect("connects");
        let refused = outbox.write(&mut *pooled, event(1)).await;
        assert!(matches!(refused, Err(WriteError::NoTransaction)), "{refused:?}");
        assert_eq!(store.counts().await.expect("counts").pending(), 0);
        outbox.shutdown().await;
    })
    .await;
}
