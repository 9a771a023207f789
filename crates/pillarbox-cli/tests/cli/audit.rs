//! The changes of operators leave a trace.

use serde_json::{Value, json};

use crate::support::{execute, run, sqlite};

const ROWS: &str = r#"
    INSERT INTO outbox_event (event_id, event_type, payload, status, attempts, last_error, created_at, available_at, done_at) VALUES
        ('new', 'order.placed', '{}', 0, 0, NULL, 1, NULL, NULL),
        ('waits', 'order.placed', '{}', 2, 1, 'no', 1, 32503680000000000, NULL),
        ('dead', 'order.placed', '{}', 3, 10, 'gave up', 1, NULL, 2),
        ('late', 'order.paid', '{}', 3, 10, 'gave up', 1, NULL, 2),
        ('old', 'order.paid', '{}', 1, 0, NULL, 1, NULL, 2);
    INSERT INTO outbox_inbox (consumer, message_id, received_at) VALUES ('billing', 'm', 1);
"#;

#[tokio::test]
async fn every_change_is_recorded_with_its_author_subject_and_number_of_rows() {
    let (_folder, store) = sqlite();
    execute(&store, ROWS).await;
    let audit = |args: &[&str]| run(&[&["audit", "--store", &store], args].concat());
    assert_eq!(audit(&[]).stdout.trim(), "No action is recorded.");
    let changes: [&[&str]; 8] = [
        &["pending", "retry", "waits", "--as", "ada"],
        &["pending", "cancel", "--all", "--event-type", "order.placed", "--yes", "--as", "ada"],
        &["dead", "replay", "--seq", "3", "--as", "bob"],
        &["dead", "discard", "--all", "--error", "gave up", "--yes", "--as", "bob"],
        &["dead", "replay", "nobody", "--as", "bob"],
        &["purge", "--done-after", "1d", "--as", "cron"],
        &["inbox", "purge", "--older-than", "30d", "--as", "cron"],
        &["purge", "--dead-after", "1d"],
    ];
    for change in changes {
        let ended = run(&[change, &["--store", &store]].concat());
        assert_eq!(ended.code, Some(if change.contains(&"nobody") { 1 } else { 0 }), "{change:?}: {ended:?}");
    }
    let page = audit(&["--json"]).json();
    let fields =
        |entry: &Value| json!([entry["who"], entry["action"], entry["subject"], entry["changed"], entry["outcome"]]);
    let entries: Vec<Value> = page["actions"].as_array().unwrap().iter().rev().map(fields).collect();
    let user = entries[7][0].as_str().unwrap().to_owned();
    assert!(!user.is_empty() && user != "cron", "the operating system's: {user}");
    let expected = [
        json!(["ada", "retry", "event waits", 1, "done"]),
        json!(["ada", "cancel", "type order.placed", 2, "done"]),
        json!(["bob", "replay", "row 3", 1, "done"]),
        json!(["bob", "discard", "error gave up", 1, "done"]),
        json!(["bob", "replay", "event nobody", 0, "done"]),
        json!(["cron", "purge", "DONE after 1day", 1, "done"]),
        json!(["cron", "purge inbox", "older than 30days", 1, "done"]),
        json!([user, "purge", "DEAD after 1day", 0, "done"]),
    ];
    assert_eq!(entries, expected);

    let first = audit(&["--json", "--limit", "3"]).json();
    assert_eq!((first["actions"].as_array().unwrap().len(), &first["next"]), (3, &6.into()));
    let last = audit(&["--json", "--limit", "9", "--below", "6"]).json();
    assert_eq!((last["actions"].as_array().unwrap().len(), &last["next"]), (5, &Value::Null));
    let text = audit(&["--limit", "2"]).stdout;
    for part in ["WHO", "cron", "purge inbox", "2 actions; more with --below 7"] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[tokio::test]
async fn a_change_that_fails_says_so_and_one_without_a_trace_is_not_made() {
    let (_folder, store) = sqlite();
    execute(&store, ROWS).await;
    execute(&store, "UPDATE outbox_event SET event_id = 'dead', handler = 'mailer' WHERE event_id = 'late'").await;
    let several = run(&["dead", "replay", "dead", "--store", &store, "--as", "ada"]);
    assert_eq!(several.code, Some(1), "{several:?}");
    let page = run(&["audit", "--store", &store, "--json"]).json();
    let entry = &page["actions"][0];
    assert_eq!((&entry["who"], &entry["changed"]), (&"ada".into(), &Value::Null));
    assert!(entry["outcome"].as_str().unwrap().contains("more than one handler"), "{entry}");

    execute(&store, "CREATE TRIGGER refuse BEFORE INSERT ON outbox_audit BEGIN SELECT raise(ABORT, 'no audit'); END")
        .await;
    let refused = run(&["dead", "discard", "--all", "--yes", "--store", &store]);
    assert!(refused.code == Some(1) && refused.stderr.contains("record an action"), "{refused:?}");
    assert_eq!(run(&["dead", "list", "--store", &store, "--json"]).json()["matching"], 2);
}
