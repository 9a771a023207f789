use std::process::Command;

use pillarbox_programtest::{Ended, connect, count, wait_until, with_postgres};

use crate::{DEMO, assert_clean};

#[tokio::test]
async fn postgres_delivers_everything_once() {
    with_postgres(|url| async move {
        for _ in 0..2 {
            let ended = DEMO.run_async(&["--store", &url, "--orders", "300", "--json"]).await;
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
        let mut demo = DEMO.command(&["--store", &url, "--orders", "1000000", "--json"]).spawn().unwrap();
        wait_until(&client, IN_FULL_SWING).await;
        demo.kill().unwrap();
        assert_eq!(demo.wait().unwrap().code(), None, "it was killed, it did not end");
        wait_until(&client, NOBODY_ELSE).await;
        let pending = count(&client, PENDING).await;
        assert!(pending > 0, "the killed run has left events");

        let ended = DEMO.run_async(&["--store", &url, "--orders", "0", "--json"]).await;
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
        let demo = DEMO.command(&["--store", &url, "--orders", "1000000", "--json"]).spawn().unwrap();
        wait_until(&client, IN_FULL_SWING).await;
        let sent = Command::new("kill").args(["-INT", &demo.id().to_string()]).status().unwrap();
        assert!(sent.success());
        let ended = tokio::task::spawn_blocking(|| demo.wait_with_output()).await.unwrap().unwrap();
        let ended = Ended::from(ended);
        assert_eq!(ended.code, Some(130), "{ended:?}");
        let report = ended.json();
        assert!(report["orders"].as_u64().unwrap() < 1_000_000);
        assert_eq!((&report["duplicates"], &report["lost"]), (&0.into(), &0.into()));

        let ended = DEMO.run_async(&["--store", &url, "--orders", "0", "--json"]).await;
        assert_eq!(ended.code, Some(0), "{ended:?}");
        assert!(!ended.stderr.contains("waiting for the lease"), "{ended:?}");
        assert_eq!(count(&client, WITHOUT_RECEIPT).await, 0);
        assert_eq!(count(&client, "SELECT count(*) FROM demo_receipt").await, count(&client, ORDERS).await);
    })
    .await;
}

const ORDERS: &str = "SELECT count(*) FROM demo_order";
