//! A node is stopped in order with much left to do: the next goes on at once, and nothing is done twice.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep};

use crate::database::{self, Database};
use crate::fleet::Files;

const EVENTS: u32 = 500;
/// Renewed every third of it, so that whoever waited for its end would wait for at least 40 s.
const LEASE: &str = "60s";
/// Some milliseconds on a quiet machine. A busy one needs seconds.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// All events take the first node 25 s, so that much is left whenever the second has started.
const SLOWLY: [&str; 4] = ["--workers", "1", "--delay", "50ms"];

#[tokio::test]
async fn on_postgres_another_node_goes_on_without_waiting_for_the_lease() {
    database::postgres(another_node_goes_on_without_waiting_for_the_lease).await;
}

#[tokio::test]
async fn on_mariadb_another_node_goes_on_without_waiting_for_the_lease() {
    database::mariadb(another_node_goes_on_without_waiting_for_the_lease).await;
}

async fn another_node_goes_on_without_waiting_for_the_lease(database: Arc<dyn Database>) {
    for mode in ["multi_node", "single_node", "ordered"] {
        let files = Files::new();
        let args = ["--mode", mode, "--lease", LEASE];
        let first = files.launch(&*database, "first", "first", &[args.as_slice(), &SLOWLY].concat());
        database.wait_for("SELECT count(*) FROM outbox_node", 1).await;
        // All of it is in the memory of the first node before there is a second.
        database.insert(0..EVENTS).await;
        while files.written_to("first").lines.len() < 2 {
            sleep(Duration::from_millis(5)).await;
        }
        let second = files.launch(&*database, "second", "second", &args);
        database.wait_for("SELECT count(*) FROM outbox_node", 2).await;
        assert!(files.written_to("second").lines.is_empty(), "{mode}: the second node has nothing to do yet");

        let left = database.count("SELECT count(*) FROM outbox_event WHERE status <> 1").await;
        assert!(left > 0, "{mode}: the first node has left nothing to do");
        let told = Instant::now();
        first.terminate();
        while files.written_to("second").lines.is_empty() {
            assert!(told.elapsed() < LONGEST_PAUSE, "{mode}: nobody goes on");
            sleep(Duration::from_millis(5)).await;
        }
        println!("{mode}: the next node went on after {:?}", told.elapsed());
        first.ended().await;
        let done = "SELECT count(*) FROM outbox_event WHERE status = 1 AND attempts = 0";
        database.wait_for(done, EVENTS.into()).await;
        second.terminate();
        second.ended().await;
        files.written().assert_each_once(EVENTS);
        database.execute("DELETE FROM outbox_event").await;
    }
}
