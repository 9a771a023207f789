//! A node stands still, or is slow: who may deliver is decided by the lease, and by nothing else.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{sleep, timeout};

use crate::database::{self, Database};
use crate::fleet::Files;

const DONE: &str = "SELECT count(*) FROM outbox_event WHERE status = 1";
const ROW: &str = "SELECT concat(status, ' ', attempts, ' ', done_at) FROM outbox_event";

#[tokio::test]
async fn on_postgres_the_verdict_of_an_owner_that_stood_still_is_refused() {
    database::postgres(the_verdict_of_an_owner_that_stood_still_is_refused).await;
}

#[tokio::test]
async fn on_mariadb_the_verdict_of_an_owner_that_stood_still_is_refused() {
    database::mariadb(the_verdict_of_an_owner_that_stood_still_is_refused).await;
}

#[tokio::test]
async fn on_postgres_a_delivery_of_three_leases_runs_once() {
    database::postgres(a_delivery_of_three_leases_runs_once).await;
}

#[tokio::test]
async fn on_mariadb_a_delivery_of_three_leases_runs_once() {
    database::mariadb(a_delivery_of_three_leases_runs_once).await;
}

async fn the_verdict_of_an_owner_that_stood_still_is_refused(database: Arc<dyn Database>) {
    for mode in ["multi_node", "single_node"] {
        let files = Files::new();
        let args = ["--mode", mode, "--lease", "1s"];
        let frozen = files.launch(&*database, "frozen", "frozen", &[args.as_slice(), &["--delay", "500ms"]].concat());
        database.wait_for("SELECT count(*) FROM outbox_node", 1).await;
        database.insert(0..1).await;
        wait_for_line(&files, "frozen").await;
        // It has written the line and has not settled the event.
        frozen.freeze();
        let other = files.launch(&*database, "other", "other", &args);
        database.wait_for(DONE, 1).await;
        assert_eq!(files.written_to("other").lines["0"], 1, "another node has delivered it");
        let row = database.texts(ROW).await;
        assert!(row[0].starts_with("1 0 "), "DONE at the first attempt: {row:?}");

        frozen.thaw();
        // Back as a new incarnation, it is a node like any other.
        database.wait_for("SELECT count(*) FROM outbox_node WHERE node_id LIKE 'frozen-%'", 1).await;
        other.terminate();
        other.ended().await;
        database.insert(1..2).await;
        database.wait_for(DONE, 2).await;
        let same = database.texts(&format!("{ROW} WHERE event_id = '0'")).await;
        assert_eq!(same, row, "the late verdict has changed nothing");
        frozen.terminate();
        let ended = frozen.ended().await;
        assert!(ended.stderr.contains("verdicts were refused"), "it was told so: {ended:?}");
        let written = files.written();
        assert_eq!((written.lines["0"], written.lines["1"]), (2, 1), "each node wrote the first, one the second");
        database.execute("DELETE FROM outbox_event").await;
    }
}

async fn a_delivery_of_three_leases_runs_once(database: Arc<dyn Database>) {
    const EVENTS: u32 = 20;
    let files = Files::new();
    let args = ["--mode", "multi_node", "--lease", "1s", "--delay", "3s"];
    let fleet = ["a", "b"].map(|name| files.launch(&*database, name, name, &args));
    database.wait_for("SELECT count(*) FROM outbox_node", 2).await;
    database.insert(0..EVENTS).await;
    database.wait_for(DONE, EVENTS.into()).await;
    assert_eq!(database.count("SELECT count(*) FROM outbox_event WHERE attempts <> 0").await, 0);
    for relay in &fleet {
        relay.terminate();
    }
    for relay in fleet {
        relay.ended().await;
    }
    files.written().assert_each_once(EVENTS);
}

async fn wait_for_line(files: &Files, file: &str) {
    let written = async {
        while files.written_to(file).lines.is_empty() {
            sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(Duration::from_secs(30), written).await.unwrap_or_else(|_| panic!("{file} has written nothing"));
}
