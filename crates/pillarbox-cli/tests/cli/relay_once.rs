//! A relay that delivers what is due and ends: its exit code says whether anything due is left.

use std::time::Duration;

use serde_json::json;
use tokio::time::Instant;

use crate::support::{column, execute, run, sqlite};

const NODES: &str = "SELECT CAST(count(*) AS TEXT) FROM outbox_node";
const DONE: &str = "SELECT event_id FROM outbox_event WHERE status = 1 ORDER BY seq";

/// Three events that are due, and one that is due tomorrow.
const ROWS: &str = "INSERT INTO outbox_event (event_id, event_type, payload)
        VALUES ('a', 't', '1'), ('b', 't', '2'), ('c', 't', '3');
    INSERT INTO outbox_event (event_id, event_type, payload, available_at)
        VALUES ('later', 't', '4', (strftime('%s', 'now') + 86400) * 1000000);";

#[tokio::test]
async fn it_ends_with_0_when_nothing_due_is_left() {
    for mode in ["single_node", "multi_node", "partitioned", "ordered"] {
        let (_folder, store) = sqlite();
        execute(&store, ROWS).await;
        let ended = run(&["relay", "--store", &store, "--mode", mode, "--once", "--deadline", "60s"]);
        assert_eq!((ended.code, ended.stdout.lines().count()), (Some(0), 3), "{mode}: {ended:?}");
        assert!(
            ended.stderr.contains("left: nothing due; 0 blocked behind a failing or paused event, 1 delayed"),
            "{ended:?}"
        );
        assert_eq!(column(&store, DONE).await, ["a", "b", "c"], "{mode}");
        assert_eq!(column(&store, NODES).await, ["0"], "{mode}: it has left");
    }
}

#[tokio::test]
async fn it_ends_with_3_at_the_deadline_if_something_due_is_left() {
    let (folder, store) = sqlite();
    execute(&store, ROWS).await;
    let to = format!("file:{}", folder.path().join("events.jsonl").display());
    let args = ["relay", "--store", &store, "--mode", "ordered", "--to", &to, "--json", "--delay", "1h"];
    let began = Instant::now();
    let ended = run(&[&args[..], &["--once", "--deadline", "500ms"]].concat());
    assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
    assert_eq!(ended.code, Some(3), "{ended:?}");
    let left = json!({"due": 3, "blocked": 0, "delayed": 1, "dead": 0, "paused": 0, "other_nodes": 0});
    assert_eq!(ended.json(), json!({"lines": 1, "left": left}));
    assert!(column(&store, DONE).await.is_empty());
    assert_eq!(column(&store, NODES).await, ["0"], "it has left");
    let touched = "SELECT event_id FROM outbox_event WHERE attempts <> 0 OR locked_by IS NOT NULL";
    assert!(column(&store, touched).await.is_empty(), "the events are as they were");
}

/// A cast makes text in SQLite that is none. Such rows end as others that cannot be read do, and hold their key back.
#[tokio::test]
async fn a_row_whose_id_or_handler_is_no_text_is_given_up() {
    const BROKEN: &str = "
        INSERT INTO outbox_event (event_id, event_type, payload, ordering_key) VALUES
            (CAST(x'61ff62' AS TEXT), 't', '{}', 'k'), ('b', 't', '{}', 'k'), (CAST(x'61fe62' AS TEXT), 't', '{}', 'x');
        INSERT INTO outbox_event (event_id, event_type, payload, handler) VALUES
            ('c', 't', '{}', CAST(x'ff' AS TEXT)), ('d', 't', NULL, CAST(x'fe' AS TEXT));
        INSERT INTO outbox_event (event_id, event_type, payload) VALUES (CAST(x'65ff' AS TEXT), '', '{}');
    ";
    for mode in ["single_node", "multi_node", "partitioned", "ordered"] {
        let (folder, store) = sqlite();
        execute(&store, BROKEN).await;
        let to = format!("file:{}", folder.path().join("events.jsonl").display());
        let ended = run(&["relay", "--store", &store, "--mode", mode, "--to", &to, "--once", "--deadline", "20s"]);
        assert_eq!(ended.code, Some(0), "{mode}: {ended:?}");
        let dead = "SELECT event_id || ' ' || last_error FROM outbox_event WHERE status = 3 AND locked_by IS NULL ORDER BY seq";
        let dead = column(&store, dead).await;
        assert_eq!(dead.len(), 5, "{mode}: {dead:?}");
        assert!(dead[0].starts_with("a\u{fffd}b the row is not an event: event_id cannot be read"), "{mode}: {dead:?}");
        assert!(
            dead[1].starts_with("unreadable-3 the row is not an event: event_id cannot be read"),
            "{mode}: {dead:?}"
        );
        assert!(dead[2].starts_with("c the row is not an event: handler cannot be read"), "{mode}: {dead:?}");
        // Another defect of theirs is found first.
        assert!(dead[3].starts_with("d the row is not an event: payload"), "{mode}: {dead:?}");
        assert!(dead[4].starts_with("e\u{fffd} the row is not an event: event_type is empty"), "{mode}: {dead:?}");
        let delivered = column(&store, DONE).await;
        let waits = mode == "partitioned";
        assert_eq!(delivered, if waits { vec![] } else { vec!["b".to_owned()] }, "{mode}");
    }
}

/// Wherever in its start the deadline finds it.
#[tokio::test]
async fn a_deadline_during_the_start_leaves_no_lease_behind() {
    let (folder, store) = sqlite();
    let to = format!("file:{}", folder.path().join("events.jsonl").display());
    for mode in ["ordered", "partitioned"] {
        for deadline in (0..40).step_by(2) {
            let deadline = format!("{deadline}ms");
            let args = ["relay", "--store", &store, "--mode", mode, "--to", &to, "--once", "--deadline", &deadline];
            let ended = run(&args);
            assert!(matches!(ended.code, Some(0 | 1 | 3)), "{deadline}: {ended:?}");
            assert_eq!(column(&store, NODES).await, ["0"], "{mode} {deadline}: {ended:?}");
            let owned = "SELECT CAST(count(*) AS TEXT) FROM outbox_partition WHERE node_id IS NOT NULL";
            assert_eq!(column(&store, owned).await, ["0"], "{mode} {deadline}: {ended:?}");
        }
    }
}

#[test]
fn a_deadline_is_for_once_alone_and_once_has_no_limit() {
    let (_folder, store) = sqlite();
    for (args, word) in [
        (&["--deadline", "1s"][..], "--once"),
        (&["--once", "--limit", "3"], "--limit"),
        (&["--deadline", "1s", "--limit", "3"], "--limit"),
        (&["--once", "--deadline", "soon"], "--deadline"),
    ] {
        let ended = run(&[&["relay", "--store", &store], args].concat());
        assert_eq!(ended.code, Some(2), "{args:?}: {ended:?}");
        assert!(ended.stderr.contains(word), "{args:?}: {ended:?}");
    }
}
