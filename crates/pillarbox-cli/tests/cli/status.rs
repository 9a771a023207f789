//! What an operator sees of an outbox.

use crate::support::{connect, execute, keys, pillarbox, run, run_async, send, sqlite, wait_until, with_postgres};

const ROWS: &str = "
    INSERT INTO outbox_event (event_id, event_type, payload, status, attempts, available_at, done_at) VALUES
        ('due', 't', '{}', 0, 0, NULL, NULL),
        ('waited', 't', '{}', 2, 1, 1000000, NULL),
        ('delayed', 't', '{}', 0, 0, 9000000000000000, NULL),
        ('done', 't', '{}', 1, 0, NULL, 2000000),
        ('dead', 't', '{}', 3, 10, NULL, 2000000);
";

#[tokio::test]
async fn status_counts_the_backlog_and_every_row_if_asked() {
    let (_folder, file) = sqlite();
    execute(&file, ROWS).await;
    let status = run(&["status", "--store", &file, "--json"]).json();
    assert_eq!(
        keys(&status),
        ["dead", "delayed", "due", "nodes", "oldest_due_seconds", "partitions", "pauses", "store", "table"],
        "the history is not read unless asked for"
    );
    assert_eq!((&status["due"], &status["delayed"], &status["dead"]), (&2.into(), &1.into(), &1.into()));
    assert!(status["oldest_due_seconds"].as_f64().unwrap() > 1e9, "due since 1970: {status}");
    assert_eq!(status["nodes"], serde_json::json!([]));
    assert_eq!((&status["partitions"]["unowned"], &status["partitions"]["pending"]), (&256.into(), &3.into()));

    let exact = run(&["status", "--store", &file, "--exact", "--json"]).json();
    assert_eq!(
        exact["rows"],
        serde_json::json!({"new": 2, "retry": 1, "done": 1, "dead": 1, "cancelled": 0, "unknown": 0})
    );

    let text = run(&["status", "--store", &file]).stdout;
    assert!(text.contains("outbox_event in SQLite") && text.contains("No node is running"), "{text}");
    assert!(text.contains(&format!("`pillarbox dead summary --store {file}` counts why")), "{text}");
    assert!(!text.contains("blocked"), "nobody delivers by key: {text}");
}

#[tokio::test]
async fn status_lists_the_nodes_and_says_who_delivers() {
    with_postgres(|url| async move {
        assert_eq!(run_async(&["migrate", "--store", &url]).await.code, Some(0));
        let (client, _connection) = connect(&url).await;
        let relay = ["relay", "--store", &url, "--node-name", "first", "--mode", "single_node"];
        let first = pillarbox(&relay).spawn().unwrap();
        wait_until(&client, "SELECT count(*) > 0 FROM outbox_partition WHERE node_id LIKE 'first-%'").await;
        let second = pillarbox(&["relay", "--store", &url, "--node-name", "second"]).spawn().unwrap();
        wait_until(&client, "SELECT count(*) = 2 FROM outbox_node").await;

        let status = run_async(&["status", "--store", &url, "--json"]).await.json();
        let nodes = status["nodes"].as_array().unwrap();
        assert_eq!(nodes.len(), 2, "{status}");
        for (node, (name, owner)) in nodes.iter().zip([("first-", true), ("second-", false)]) {
            assert_eq!(keys(node), ["figures", "id", "lease_left_seconds", "mode", "owner", "partitions", "since"]);
            assert!(node["id"].as_str().unwrap().starts_with(name), "{node}");
            assert_eq!((&node["owner"], &node["mode"]), (&owner.into(), &"single_node".into()));
            assert_eq!(node["partitions"], if owner { 256 } else { 0 });
            assert!(node["lease_left_seconds"].as_f64().unwrap() > 5.0, "{node}");
        }
        let text = run_async(&["status", "--store", &url]).await.stdout;
        assert!(text.contains("delivers") && text.contains("stands by"), "{text}");
        for mut relay in [second, first] {
            send("-TERM", &relay);
            assert!(relay.wait().unwrap().success());
        }
    })
    .await;
}

#[tokio::test]
async fn status_says_how_the_partitions_are_shared() {
    with_postgres(|url| async move {
        assert_eq!(run_async(&["migrate", "--store", &url]).await.code, Some(0));
        let (client, _connection) = connect(&url).await;
        // Delayed, so that they stay: one in each of two partitions, and two in a third.
        let rows = "INSERT INTO outbox_event (event_id, event_type, payload, partition, ordering_key, available_at)
                    SELECT n, 't', '{}', n / 2, n / 2, now() + interval '1 day' FROM generate_series(1, 4) n";
        client.batch_execute(rows).await.unwrap();
        let relays = ["first", "second"].map(|name| {
            pillarbox(&["relay", "--store", &url, "--node-name", name, "--mode", "partitioned"]).spawn().unwrap()
        });
        let shared = "SELECT count(*) = 2 FROM (SELECT node_id FROM outbox_partition WHERE node_id IS NOT NULL
                                                GROUP BY 1 HAVING count(*) = 128) n";
        wait_until(&client, shared).await;

        let status = run_async(&["status", "--store", &url, "--json"]).await.json();
        assert_eq!(status["partitions"], serde_json::json!({"unowned": 0, "pending": 4, "most_pending": 2}));
        for node in status["nodes"].as_array().unwrap() {
            assert_eq!((&node["mode"], &node["partitions"]), (&"partitioned".into(), &128.into()), "{status}");
            assert_eq!(node["owner"], true);
        }
        let text = run_async(&["status", "--store", &url]).await.stdout;
        assert!(text.contains("delivers its partitions") && text.contains("most pending"), "{text}");
        assert!(!text.contains("blocked"), "nothing was given up: {text}");
        client.batch_execute("UPDATE outbox_event SET status = 3 WHERE event_id = '1'").await.unwrap();
        let text = run_async(&["status", "--store", &url]).await.stdout;
        let blocked = text.lines().find(|line| line.contains("blocked")).unwrap_or_else(|| panic!("{text}"));
        assert!(blocked.contains(&format!("see `pillarbox keys blocked --store {url}`")), "{text}");
        for mut relay in relays {
            send("-TERM", &relay);
            assert!(relay.wait().unwrap().success());
        }
    })
    .await;
}
