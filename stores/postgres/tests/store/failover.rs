//! The database goes back: a replica that lags is promoted, or a backup is restored under running nodes.

#![allow(clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

use std::sync::Arc;
use std::time::Duration;

use crate::support::eventually;
use crate::support::server::Server;
use deadpool_postgres::{Manager, Pool, RecyclingMethod};
use pillarbox_core::error::BoxError;
use pillarbox_core::event::Envelope;
use pillarbox_core::store::Store;
use pillarbox_core::write::insert;
use pillarbox_postgres::PostgresOptions;
use pillarbox_testkit::FailoverDrill;
use tokio_postgres::NoTls;

fn pool(url: &str) -> Pool {
    let config = deadpool_postgres::ManagerConfig { recycling_method: RecyclingMethod::Verified };
    let manager = Manager::from_config(url.parse().expect("a URL"), NoTls, config);
    Pool::builder(manager).max_size(4).build().expect("a pool")
}

async fn start(url: &str, lease: Duration) -> FailoverDrill {
    let mut stores: Vec<Arc<dyn Store>> = Vec::new();
    for table in FailoverDrill::TABLES {
        let options = PostgresOptions::parse(url).expect("a URL").table(table).pool_size(2);
        stores.push(Arc::new(options.connect().await.expect("connects")));
    }
    let stores: [Arc<dyn Store>; 4] = stores.try_into().expect("four");
    FailoverDrill::start(stores, lease).await.expect("starts")
}

async fn write(pool: &Pool, store: &dyn Store, events: Vec<Envelope>) -> Result<(), BoxError> {
    for batch in events.chunks(100) {
        let mut client = pool.get().await?;
        let mut transaction = client.transaction().await?;
        insert(store, &mut transaction, batch.to_vec()).await?;
        transaction.commit().await?;
    }
    Ok(())
}

async fn text(pool: &Pool, sql: &str) -> Option<String> {
    let client = pool.get().await.expect("a connection");
    client.query_one(&format!("SELECT ({sql})::text"), &[]).await.expect("answers").get(0)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_promoted_replica_that_lags_loses_no_new_event() {
    let primary = Server::start().await;
    let replica = primary.replica().await;
    let hosts = format!("127.0.0.1:{},127.0.0.1:{}", primary.port(), replica.port());
    let url = format!("postgres://postgres@{hosts}/postgres?target_session_attrs=read-write");
    let (users, old, new) = (pool(&url), pool(&primary.url()), pool(&replica.url()));
    let drill = start(&url, Duration::from_secs(15)).await;
    let write = async |store: &dyn Store, events| write(&users, store, events).await;

    drill.deliver(100, &write).await.expect("delivers");
    let written = text(&old, "pg_current_wal_flush_lsn()").await.expect("a place");
    eventually("the replica has followed", async || {
        text(&new, &format!("pg_last_wal_replay_lsn() >= '{written}'")).await.as_deref() == Some("true")
    })
    .await;
    let client = new.get().await.expect("a connection");
    client.batch_execute("ALTER SYSTEM SET primary_conninfo = ''").await.expect("sets");
    client.batch_execute("SELECT pg_reload_conf()").await.expect("reloads");
    eventually("the replica follows no more", async || {
        text(&new, "SELECT count(*) FROM pg_stat_wal_receiver").await.as_deref() == Some("0")
    })
    .await;

    drill.deliver(1200, &write).await.expect("delivers what is lost");
    drill.hold(200, &write).await.expect("holds what is lost");
    primary.crash().await;
    replica.promote().await;
    drill.finish(2500, &write).await.expect("delivers");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_backup_restored_under_running_nodes_loses_no_new_event() {
    let server = Server::start().await;
    let users = pool(&server.url());
    let drill = start(&server.url(), Duration::from_secs(6)).await;
    let write = async |store: &dyn Store, events| write(&users, store, events).await;

    drill.deliver(100, &write).await.expect("delivers");
    server.dump("backup.sql").await;
    drill.deliver(1200, &write).await.expect("delivers what is lost");
    drill.hold(200, &write).await.expect("holds what is lost");
    // A backup is older than the last renewal: one that is not is of the moment before.
    let leases = "SELECT string_agg(extract(epoch FROM expires_at)::text, ' ') FROM (
        SELECT expires_at FROM single_node UNION ALL SELECT expires_at FROM multi_node
        UNION ALL SELECT expires_at FROM partitioned_node UNION ALL SELECT expires_at FROM ordered_node) AS nodes";
    let ends = || async { text(&users, leases).await.expect("four nodes") };
    let before = ends().await;
    let before: Vec<&str> = before.split(' ').collect();
    eventually("all leases are renewed", async || ends().await.split(' ').all(|end| !before.contains(&end))).await;
    server.restore("backup.sql").await;
    for store in drill.stores() {
        assert_eq!(store.counts().await.expect("counts").done, 100, "what came after the backup is lost");
    }
    drill.finish(2500, &write).await.expect("delivers");
}
