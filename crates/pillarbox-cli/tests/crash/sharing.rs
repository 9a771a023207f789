//! How the partitions are shared among relays that start, are killed and leave: seen in the table, every 10 milliseconds.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep};

use crate::database::{self, Database};
use crate::fleet::Files;

const LEASE: Duration = Duration::from_secs(2);
const ARGS: [&str; 4] = ["--mode", "partitioned", "--lease", "2s"];
const EVERY: Duration = Duration::from_millis(10);
/// What a machine that is busy with all other tests may take longer.
const BUSY: Duration = Duration::from_secs(4);

/// How many partitions each node owns; free ones are not listed. One statement, and so one moment: a node that owns some
/// and is not registered would be named `orphan`.
const SHARES: &str = "SELECT concat(CASE WHEN n.node_id IS NULL THEN 'orphan' ELSE 'node' END, ' ', count(*))
                      FROM outbox_partition p LEFT JOIN outbox_node n ON n.node_id = p.node_id
                      WHERE p.node_id IS NOT NULL AND p.node_id <> '?' GROUP BY p.node_id, n.node_id";

#[tokio::test]
async fn on_postgres_partitions_are_shared_evenly_and_soon() {
    database::postgres(partitions_are_shared_evenly_and_soon).await;
}

#[tokio::test]
async fn on_mariadb_partitions_are_shared_evenly_and_soon() {
    database::mariadb(partitions_are_shared_evenly_and_soon).await;
}

async fn partitions_are_shared_evenly_and_soon(database: Arc<dyn Database>) {
    let files = Files::new();
    let launch = |name| files.launch(&*database, name, name, &ARGS);
    let [first, second] = ["first", "second"].map(launch);
    let took = until_shared(&*database, &[128, 128]).await;
    println!("two that start at once have their shares after {took:?}");
    assert!(took < Duration::from_secs(5), "{took:?}");

    let third = launch("third");
    let took = until_shared(&*database, &[86, 85, 85]).await;
    println!("with a third after {took:?}");
    assert!(took < Duration::from_secs(5), "{took:?}");

    second.kill();
    let took = until_shared(&*database, &[128, 128]).await;
    println!("one that was killed is replaced after {took:?}; the lease is {LEASE:?}");
    assert!(took < LEASE + Duration::from_secs(1) + BUSY, "{took:?}");

    first.terminate();
    let took = until_shared(&*database, &[256]).await;
    println!("one that leaves is replaced after {took:?}");
    assert!(took < Duration::from_secs(1) + BUSY, "{took:?}");
    first.ended().await;
    third.terminate();
    third.ended().await;
    assert_eq!(until_shared(&*database, &[]).await.as_secs(), 0, "all are free");
}

/// Looks until the partitions are shared like this, the largest share first. Returns how long it took.
async fn until_shared(database: &dyn Database, wanted: &[u32]) -> Duration {
    let began = Instant::now();
    loop {
        let mut shares: Vec<u32> = Vec::new();
        for text in database.texts(SHARES).await {
            let (owner, share) = text.split_once(' ').unwrap();
            assert_eq!(owner, "node", "every owner is a node that is registered");
            shares.push(share.parse().unwrap());
        }
        shares.sort_unstable_by(|a, b| b.cmp(a));
        if shares == wanted {
            return began.elapsed();
        }
        assert!(began.elapsed() < Duration::from_secs(60), "{shares:?} and never {wanted:?}");
        sleep(EVERY).await;
    }
}
