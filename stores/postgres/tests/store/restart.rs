//! What takes a server of its own. It goes down under load and comes back: nothing is lost, nothing is handled twice, no attempt is
//! burned. And it lets transactions be prepared, which servers do not by default.

#![allow(clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use crate::support::{self, server::Server};
use deadpool_postgres::{Manager, Pool, RecyclingMethod};
use pillarbox_core::store::{Admin as _, Store as _};
use pillarbox_engine::run::Outbox;
use pillarbox_postgres::PostgresOptions;
use pillarbox_testkit::Recorder;
use tokio_postgres::NoTls;

/// Writes one event in a transaction after the other until told to stop; returns the ids whose commit was confirmed.
async fn write_until(stop: &AtomicBool, outbox: &Outbox, pool: &Pool, failures: &AtomicUsize) -> Vec<String> {
    let mut confirmed = Vec::new();
    while !stop.load(Ordering::Relaxed) {
        let attempt = async {
            let mut client = pool.get().await?;
            let mut tx = outbox.begin(&mut client).await?;
            let written = outbox.write(&mut tx, support::event()).await?;
            tx.commit().await?;
            Ok::<_, pillarbox_core::error::BoxError>(written.id().map(ToString::to_string))
        };
        match attempt.await {
            Ok(id) => confirmed.extend(id),
            Err(_) => {
                failures.fetch_add(1, Ordering::Relaxed);
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        }
    }
    confirmed
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_that_crashes_under_load_loses_and_doubles_nothing() {
    let server = Server::start().await;
    let options = PostgresOptions::parse(&server.url()).expect("a URL").durable_settles(true);
    let store = options.connect().await.expect("connects");
    store.migrate().await.expect("migrates");
    let recorder = Recorder::new();
    let outbox = Outbox::single_node(store.clone()).handle_all(recorder.clone()).start().await.expect("starts");
    let config = deadpool_postgres::ManagerConfig { recycling_method: RecyclingMethod::Fast };
    let manager = Manager::from_config(server.url().parse().expect("a URL"), NoTls, config);
    let pool = Pool::builder(manager).max_size(4).build().expect("a pool");

    let (stop, failures) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
    let writers: Vec<_> = (0..4)
        .map(|_| {
            let (stop, failures) = (Arc::clone(&stop), Arc::clone(&failures));
            let (outbox, pool) = (outbox.clone(), pool.clone());
            #[expect(clippy::disallowed_methods, reason = "the writers are the test's, not the outbox's")]
            tokio::spawn(async move { write_until(&stop, &outbox, &pool, &failures).await })
        })
        .collect();
    for crashes in 0..2 {
        recorder.wait_for_calls(recorder.calls().len() + 300).await;
        server.crash_and_restart().await;
        assert!(failures.load(Ordering::Relaxed) > crashes, "writers see the driver's errors");
    }
    recorder.wait_for_calls(recorder.calls().len() + 300).await;
    stop.store(true, Ordering::Relaxed);
    let mut confirmed = Vec::new();
    for writer in writers {
        confirmed.extend(writer.await.expect("a writer does not panic"));
    }
    support::eventually("all events are delivered", async || {
        store.counts().await.is_ok_and(|counts| counts.pending() == 0)
    })
    .await;
    outbox.shutdown().await;

    let counts = store.counts().await.expect("counts");
    assert_eq!((counts.pending(), counts.dead), (0, 0));
    let mut calls: HashMap<String, usize> = HashMap::new();
    for call in recorder.calls() {
        *calls.entry(call.id.to_string()).or_default() += 1;
    }
    let client = pool.get().await.expect("a connection");
    let rows = client.query("SELECT event_id, attempts FROM outbox_event", &[]).await.expect("reads");
    assert!(rows.len() >= confirmed.len(), "a commit whose answer was lost may add some");
    for row in &rows {
        let (id, attempts): (String, i32) = (row.get(0), row.get(1));
        assert_eq!((calls.remove(&id), attempts), (Some(1), 0), "{id} is handled once and no attempt is counted");
        confirmed.retain(|other| *other != id);
    }
    assert!(confirmed.is_empty(), "every confirmed event is in the table: {confirmed:?}");
    assert!(calls.is_empty(), "and none was handled that is not: {calls:?}");
}

/// A writer that is still in a trigger before its first row has no id. Prepared, it goes by other names, and is known to be prepared.
#[tokio::test]
async fn a_writer_that_is_prepared_before_it_had_an_id_is_told_apart() {
    let server = Server::start().await;
    let store = PostgresOptions::parse(&server.url()).expect("a URL").connect().await.expect("connects");
    store.migrate().await.expect("migrates");
    let mut connections = tokio::task::JoinSet::new();
    let mut clients = Vec::new();
    for _ in 0..3 {
        let (client, connection) = tokio_postgres::connect(&server.url(), NoTls).await.expect("connects");
        connections.spawn(connection);
        clients.push(client);
    }
    let [guard, writer, other] = &clients[..] else { panic!("three connections") };
    let slow = "CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS
            'BEGIN IF NEW.event_type = ''slow'' THEN PERFORM pg_advisory_xact_lock(42); END IF; RETURN NEW; END';
        CREATE TRIGGER slow BEFORE INSERT ON outbox_event FOR EACH ROW EXECUTE FUNCTION slow();
        SELECT pg_advisory_lock(42)";
    guard.batch_execute(slow).await.expect("makes the trigger");

    let insert = |event_type: &str| {
        format!(
            "INSERT INTO outbox_event (event_id, event_type, payload) VALUES (gen_random_uuid(), '{event_type}', '{{}}')"
        )
    };
    // Of the values of a sequence, only one in many makes the server give the transaction an id.
    other.batch_execute(&insert("quick")).await.expect("inserts");
    let prepares = format!("BEGIN; {}; PREPARE TRANSACTION 'slow'", insert("slow"));
    let waiting = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted";
    let meanwhile = async {
        while other.query_one(waiting, &[]).await.expect("asks").get::<_, i64>(0) == 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        other.batch_execute(&insert("quick")).await.expect("inserts");
        let before = store.writers().await.expect("asks");
        guard.batch_execute("SELECT pg_advisory_unlock(42)").await.expect("lets it go on");
        before
    };
    let (prepared, before) = tokio::join!(writer.batch_execute(&prepares), meanwhile);
    prepared.expect("prepares");
    let named = before.open.expect("PostgreSQL tells");
    assert_eq!((before.highest, named.len(), before.prepared.len()), (3, 1, 0), "by its virtual name alone: {named:?}");

    let prepared = store.writers().await.expect("asks").prepared;
    assert!(!prepared.is_empty());
    // From now on it goes by another name. Releases before 14.1, 13.5 and 12.9 did that at once.
    server.crash_and_restart().await;
    let mut after = store.writers().await;
    while after.is_err() {
        after = store.writers().await;
    }
    let after = after.expect("asks");
    let open = after.open.expect("PostgreSQL tells");
    assert!(!open.contains(&named[0]) && !open.is_empty(), "{open:?} after {named:?}");
    assert_eq!(after.prepared.len(), open.len(), "{:?}", after.prepared);
    let (client, connection) = tokio_postgres::connect(&server.url(), NoTls).await.expect("connects");
    connections.spawn(connection);
    client.batch_execute("COMMIT PREPARED 'slow'").await.expect("commits");
    let ended = store.writers().await.expect("asks");
    assert_eq!((ended.open, ended.prepared), (Some(Vec::new()), Vec::new()));
    store.close().await;
}
