//! Old events are deleted, and only those.

use serde_json::json;

use crate::support::{
    Ended, column, connect, count, end_of, execute, pillarbox, run, run_async, send, sqlite, wait_until, with_postgres,
};

/// Ended long ago, and just now.
const ROWS: &str = "
    INSERT INTO outbox_event (event_id, event_type, payload, status, created_at, done_at) VALUES
        ('old done', 't', '{}', 1, 1000000, 2000000),
        ('old dead', 't', '{}', 3, 1000000, 2000000),
        ('old new', 't', '{}', 0, 1000000, NULL);
    INSERT INTO outbox_event (event_id, event_type, payload, status, done_at)
        SELECT name, 't', '{}', status, now FROM
        (SELECT 'done' AS name, 1 AS status UNION ALL SELECT 'dead', 3),
        (SELECT CAST((julianday('now') - 2440587.5) * 86400000000.0 AS INTEGER) AS now);
";
const LEFT: &str = "SELECT event_id FROM outbox_event ORDER BY seq";

fn purge(store: &str, args: &[&str]) -> Ended {
    run(&[&["purge", "--store", store], args].concat())
}

#[tokio::test]
async fn each_kind_is_purged_by_its_own_age() {
    let (_folder, store) = sqlite();
    execute(&store, ROWS).await;
    let ended = purge(&store, &["--done-after", "1h", "--json"]);
    assert_eq!((ended.code, ended.json()), (Some(0), json!({"done": 1})));
    let ended = purge(&store, &["--done-after", "7d", "--dead-after", "1h 30m", "--batch", "1", "--yes"]);
    let text = "0 events delivered were deleted\n1 event given up was deleted\n";
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(0), text));
    assert_eq!(ended.stderr, "", "no progress where nobody watches");
    assert_eq!(column(&store, LEFT).await, ["old new", "done", "dead"]);
}

#[tokio::test]
async fn events_of_one_key_are_purged_alone() {
    let (_folder, store) = sqlite();
    execute(&store, ROWS).await;
    execute(
        &store,
        "UPDATE outbox_event SET ordering_key = 'customer-17' WHERE event_id IN ('done', 'dead', 'old new')",
    )
    .await;
    let ended = purge(&store, &["--done-after", "0s", "--dead-after", "0s", "--key", "customer-17", "--json", "--yes"]);
    assert_eq!((ended.code, ended.json()), (Some(0), json!({"done": 1, "dead": 1})));
    assert_eq!(column(&store, LEFT).await, ["old done", "old dead", "old new"]);
}

#[tokio::test]
async fn events_that_were_never_delivered_are_deleted_only_when_somebody_has_said_yes() {
    let (_folder, store) = sqlite();
    execute(&store, ROWS).await;
    let ended = purge(&store, &["--dead-after", "1h"]);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(
        ended.stderr.contains("--yes") && ended.stderr.contains("(DEAD, of any age and key: 2 events)"),
        "{ended:?}"
    );
    let ended = purge(&store, &["--all-after", "1h"]);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(ended.stderr.contains("--yes") && ended.stderr.contains("1h ago"), "{ended:?}");
    assert!(ended.stderr.contains("(not delivered yet, of any age: 1 event)"), "{ended:?}");
    let ended = purge(&store, &["--all-after", "1h", "--yes", "--json"]);
    assert_eq!((ended.code, ended.json()), (Some(0), json!({"all": 3})));
    assert_eq!(column(&store, LEFT).await, ["done", "dead"]);
}

#[tokio::test]
async fn purging_everything_is_refused_while_a_node_is_running() {
    with_postgres(|url| async move {
        assert_eq!(run_async(&["migrate", "--store", &url]).await.code, Some(0));
        let (client, _connection) = connect(&url).await;
        // It delivers nothing, for the event is not due.
        let insert = "INSERT INTO outbox_event (event_id, event_type, payload, created_at, available_at)
                      VALUES ('a', 't', '{}', now() - interval '1 year', now() + interval '1 year')";
        client.batch_execute(insert).await.unwrap();
        let relay = pillarbox(&["relay", "--store", &url]).spawn().unwrap();
        wait_until(&client, "SELECT count(*) = 1 FROM outbox_node").await;
        let purge = ["purge", "--store", &url, "--all-after", "1h", "--yes"];
        let ended = run_async(&purge).await;
        assert_eq!(ended.code, Some(1), "{ended:?}");
        assert_eq!(count(&client, "SELECT count(*) FROM outbox_event").await, 1);
        send("-TERM", &relay);
        let relay = end_of(relay).await;
        assert_eq!(relay.code, Some(0), "{relay:?}");
        let ended = run_async(&purge).await;
        assert_eq!(ended.code, Some(0), "{ended:?} after {relay:?}");
        assert_eq!(count(&client, "SELECT count(*) FROM outbox_event").await, 0);
    })
    .await;
}
