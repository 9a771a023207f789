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
        ["dead", "delayed", "due", "nodes", "oldest_due_seconds", "store", "table"],
        "the history is not read unless asked for"
    );
    assert_eq!((&status["due"], &status["delayed"], &status["dead"]), (&2.into(), &1.into(), &1.into()));
    assert!(status["oldest_due_seconds"].as_f64().unwrap() > 1e9, "due since 1970: {status}");
    assert_eq!(status["nodes"], serde_json::json!([]));

    let exact = run(&["status", "--store", &file, "--exact", "--json"]).json();
    assert_eq!(exact["rows"], serde_json::json!({"new": 2, "retry": 1, "done": 1, "dead": 1}));

    let text = run(&["status", "--store", &file]).stdout;
    assert!(text.contains("outbox_event in SQLite") && text.contains("No node is running"), "{text}");
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
            assert_eq!(keys(node), ["id", "lease_left_seconds", "mode", "owner", "since"]);
            assert!(node["id"].as_str().unwrap().starts_with(name), "{node}");
            assert_eq!((&node["owner"], &node["mode"]), (&owner.into(), &"single_node".into()));
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
