//! The database goes back: a replica that lags is promoted, or a backup is restored under running nodes.

#![allow(clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use crate::support::eventually;
use crate::support::server::Server;
use mysql_async::prelude::Queryable as _;
use mysql_async::{Pool, TxOpts};
use pillarbox_core::error::BoxError;
use pillarbox_core::event::Envelope;
use pillarbox_core::store::Store;
use pillarbox_core::write::insert;
use pillarbox_mysql::MysqlOptions;
use pillarbox_testkit::FailoverDrill;
use pillarbox_testkit::publishers::Proxy;

async fn start(port: u16, lease: Duration) -> FailoverDrill {
    let mut stores: Vec<Arc<dyn Store>> = Vec::new();
    for table in FailoverDrill::TABLES {
        let options = MysqlOptions::parse(&format!("mysql://root@127.0.0.1:{port}/test")).expect("a URL");
        stores.push(Arc::new(options.table(table).pool_size(2).connect().await.expect("connects")));
    }
    let stores: [Arc<dyn Store>; 4] = stores.try_into().expect("four");
    FailoverDrill::start(stores, lease).await.expect("starts")
}

async fn write(pool: &Pool, store: &dyn Store, events: Vec<Envelope>) -> Result<(), BoxError> {
    for batch in events.chunks(100) {
        let mut transaction = pool.start_transaction(TxOpts::default()).await?;
        insert(store, &mut transaction, batch.to_vec()).await?;
        transaction.commit().await?;
    }
    Ok(())
}

async fn text(pool: &Pool, sql: &str) -> Option<String> {
    let mut connection = pool.get_conn().await.expect("a connection");
    connection.query_first::<Option<String>, _>(sql).await.expect("answers").flatten()
}

async fn execute(pool: &Pool, sql: &str) {
    pool.get_conn().await.expect("a connection").query_drop(sql).await.unwrap_or_else(|error| panic!("{error}: {sql}"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_promoted_replica_that_lags_loses_no_new_event() {
    let (mut primary, replica) = (Server::start(1).await, Server::start(2).await);
    let (old, new) = (primary.pool(), replica.pool());
    let follow = format!(
        "CHANGE MASTER TO MASTER_HOST = '127.0.0.1', MASTER_PORT = {}, MASTER_USER = 'root', MASTER_USE_GTID = slave_pos",
        primary.port()
    );
    execute(&new, &follow).await;
    execute(&new, "START SLAVE").await;
    let at = |port| SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let proxy = Proxy::to(at(primary.port())).await.expect("a proxy");
    let drill = start(proxy.port(), Duration::from_secs(15)).await;

    drill.deliver(100, async |store: &dyn Store, events| write(&old, store, events).await).await.expect("delivers");
    let written = text(&old, "SELECT @@gtid_binlog_pos").await.expect("a place");
    let followed = text(&new, &format!("SELECT CAST(MASTER_GTID_WAIT('{written}', 60) AS CHAR)")).await;
    assert_eq!(followed.as_deref(), Some("0"), "the replica has followed");
    execute(&new, "STOP SLAVE").await;

    drill.deliver(1200, async |store: &dyn Store, events| write(&old, store, events).await).await.expect("delivers");
    drill.hold(200, async |store: &dyn Store, events| write(&old, store, events).await).await.expect("holds");
    primary.kill();
    execute(&new, "RESET SLAVE ALL").await;
    proxy.lead_to(at(replica.port()));
    drill.finish(2500, async |store: &dyn Store, events| write(&new, store, events).await).await.expect("delivers");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_backup_restored_under_running_nodes_loses_no_new_event() {
    let server = Server::start(1).await;
    let users = server.pool();
    let write = async |store: &dyn Store, events| write(&users, store, events).await;
    let drill = start(server.port(), Duration::from_secs(6)).await;

    drill.deliver(100, &write).await.expect("delivers");
    server.dump("backup.sql");
    drill.deliver(1200, &write).await.expect("delivers what is lost");
    drill.hold(200, &write).await.expect("holds what is lost");
    // A backup is older than the last renewal: one that is not is of the moment before.
    let leases = "SELECT GROUP_CONCAT(expires_at) FROM (
        SELECT expires_at FROM single_node UNION ALL SELECT expires_at FROM multi_node
        UNION ALL SELECT expires_at FROM partitioned_node UNION ALL SELECT expires_at FROM ordered_node) AS nodes";
    let ends = || async { text(&users, leases).await.expect("four nodes") };
    let before = ends().await;
    let before: Vec<&str> = before.split(',').collect();
    eventually("all leases are renewed", async || ends().await.split(',').all(|end| !before.contains(&end))).await;
    server.restore("backup.sql");
    for store in drill.stores() {
        // A connection may still tell that a table was not there for a moment: the restore drops each and makes it anew.
        let lost = async || store.counts().await.is_ok_and(|counts| counts.done == 100);
        eventually("what came after the backup is lost", lost).await;
    }
    drill.finish(2500, &write).await.expect("delivers");
}
