//! The demo keeps its promises on real databases, and says so in numbers that come from them.

use std::process::Command;

use crate::support::{Ended, connect, count, keys, pillarbox, run, run_async, wait_until, with_postgres};
use serde_json::Value;

const KEYS: [&str; 11] = [
    "cold",
    "commit_to_handler_us",
    "delivered",
    "duplicates",
    "events_committed",
    "hot",
    "lost",
    "orders",
    "rolled_back",
    "seconds",
    "store",
];

/// A run of 300 orders in which everything went well.
fn assert_clean(ended: &Ended, store: &str) -> Value {
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let report = ended.json();
    assert_eq!(keys(&report), KEYS);
    assert_eq!(keys(&report["commit_to_handler_us"]), ["max", "p50", "p95", "p99"]);
    assert_eq!(report["orders"], 300);
    assert_eq!(report["rolled_back"], 15);
    assert_eq!(report["events_committed"], 285);
    assert_eq!(report["delivered"], 285);
    assert_eq!((&report["duplicates"], &report["lost"]), (&0.into(), &0.into()));
    let (hot, cold) = (report["hot"].as_u64().unwrap(), report["cold"].as_u64().unwrap());
    assert!(hot > 0 && cold > 0, "both paths are shown: {report}");
    assert_eq!(hot + cold, 285);
    assert!(report["store"].as_str().unwrap().contains(store), "{report}");
    report
}

#[test]
fn sqlite_delivers_everything_once_and_can_run_again() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("shop.db");
    let url = format!("sqlite://{}", file.display());
    for _ in 0..2 {
        let ended = run(&["demo", "--store", &url, "--orders", "300", "--json"]);
        assert_clean(&ended, "shop.db");
        assert_eq!(ended.stderr, "", "nothing to tell in between");
    }
}

#[test]
fn the_default_store_is_a_file_in_the_current_directory() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = pillarbox(&["demo", "--orders", "40"]);
    let ended: Ended = command.current_dir(folder.path()).output().unwrap().into();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(ended.stderr.contains("pillarbox-demo.db"), "it says where: {ended:?}");
    assert!(ended.stdout.contains("every committed event was handled once"), "{ended:?}");
    assert!(folder.path().join("pillarbox-demo.db").exists());
}

#[tokio::test]
async fn postgres_delivers_everything_once() {
    with_postgres(|url| async move {
        for _ in 0..2 {
            let ended = run_async(&["demo", "--store", &url, "--orders", "300", "--json"]).await;
            assert_clean(&ended, "PostgreSQL");
        }
        let (client, _connection) = connect(&url).await;
        assert_eq!(count(&client, "SELECT count(*) FROM demo_order").await, 570);
        assert_eq!(count(&client, "SELECT count(*) FROM demo_receipt").await, 570);
        assert_eq!(count(&client, PHANTOMS).await, 0);
    })
    .await;
}

const WITHOUT_RECEIPT: &str =
    "SELECT count(*) FROM demo_order o WHERE NOT EXISTS (SELECT FROM demo_receipt r WHERE r.order_id = o.order_id)";
const PHANTOMS: &str =
    "SELECT count(*) FROM demo_receipt r WHERE NOT EXISTS (SELECT FROM demo_order o WHERE o.order_id = r.order_id)";
const PENDING: &str = "SELECT count(*) FROM pillarbox_demo_event WHERE status IN (0, 2)";
/// A run is in full swing: it has delivered some events and has others to deliver.
const IN_FULL_SWING: &str = "SELECT (SELECT count(*) >= 50 FROM demo_receipt)
                                AND EXISTS (SELECT FROM pillarbox_demo_event WHERE status IN (0, 2))";
/// The server has noticed that the process is gone, and ended what it had begun.
const NOBODY_ELSE: &str = "SELECT count(*) = 1 FROM pg_stat_activity
                           WHERE datname = current_database() AND backend_type = 'client backend'";

#[tokio::test]
async fn a_run_killed_half_way_is_finished_by_the_next() {
    with_postgres(|url| async move {
        let (client, _connection) = connect(&url).await;
        let mut demo = pillarbox(&["demo", "--store", &url, "--orders", "1000000", "--json"]).spawn().unwrap();
        wait_until(&client, IN_FULL_SWING).await;
        demo.kill().unwrap();
        assert_eq!(demo.wait().unwrap().code(), None, "it was killed, it did not end");
        wait_until(&client, NOBODY_ELSE).await;
        let pending = count(&client, PENDING).await;
        assert!(pending > 0, "the killed run has left events");

        let ended = run_async(&["demo", "--store", &url, "--orders", "0", "--json"]).await;
        assert_eq!(ended.code, Some(0), "{ended:?}");
        assert!(ended.stderr.contains("waiting for the lease of "), "{ended:?}");
        let report = ended.json();
        assert_eq!((&report["orders"], &report["events_committed"]), (&0.into(), &0.into()));
        assert_eq!((&report["duplicates"], &report["lost"]), (&0.into(), &0.into()));
        assert_eq!(report["delivered"], pending, "all that was left, and nothing else");
        assert_eq!(count(&client, PENDING).await, 0);
        assert_eq!(count(&client, WITHOUT_RECEIPT).await, 0, "every committed order has a receipt");
        assert_eq!(count(&client, PHANTOMS).await, 0, "no order that was rolled back has one");
    })
    .await;
}

#[tokio::test]
async fn an_interrupted_run_ends_in_order_and_hands_over_at_once() {
    with_postgres(|url| async move {
        let (client, _connection) = connect(&url).await;
        let demo = pillarbox(&["demo", "--store", &url, "--orders", "1000000", "--json"]).spawn().unwrap();
        wait_until(&client, IN_FULL_SWING).await;
        let sent = Command::new("kill").args(["-INT", &demo.id().to_string()]).status().unwrap();
        assert!(sent.success());
        let ended = tokio::task::spawn_blocking(|| demo.wait_with_output()).await.unwrap().unwrap();
        let ended = Ended::from(ended);
        assert_eq!(ended.code, Some(130), "{ended:?}");
        let report = ended.json();
        assert!(report["orders"].as_u64().unwrap() < 1_000_000);
        assert_eq!((&report["duplicates"], &report["lost"]), (&0.into(), &0.into()));

        let ended = run_async(&["demo", "--store", &url, "--orders", "0", "--json"]).await;
        assert_eq!(ended.code, Some(0), "{ended:?}");
        assert!(!ended.stderr.contains("waiting for the lease"), "{ended:?}");
        assert_eq!(count(&client, WITHOUT_RECEIPT).await, 0);
        assert_eq!(count(&client, "SELECT count(*) FROM demo_receipt").await, count(&client, ORDERS).await);
    })
    .await;
}

const ORDERS: &str = "SELECT count(*) FROM demo_order";
