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
        &["purge", "--dead-after", "1d", "--yes"],
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
        json!(["ada", "retry-now", "event waits", 1, "done"]),
        json!(["ada", "cancel", "type order.placed", 2, "done"]),
        json!(["bob", "replay", "row 3", 1, "done"]),
        json!(["bob", "discard", "error gave up", 1, "done"]),
        json!(["bob", "replay", "event nobody", 0, "refused: there is no event `nobody` in this outbox"]),
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
    let outcome = entry["outcome"].as_str().unwrap();
    assert!(outcome.starts_with("refused: event `dead` was given up by more than one handler"), "{entry}");

    execute(&store, "CREATE TRIGGER refuse BEFORE INSERT ON outbox_audit BEGIN SELECT raise(ABORT, 'no audit'); END")
        .await;
    let refused = run(&["dead", "discard", "--all", "--yes", "--store", &store]);
    assert!(refused.code == Some(1) && refused.stderr.contains("record an action"), "{refused:?}");
    assert_eq!(run(&["dead", "list", "--store", &store, "--json"]).json()["matching"], 2);
}

#[tokio::test]
async fn a_change_that_is_refused_is_not_recorded_as_done() {
    let (_folder, store) = sqlite();
    execute(&store, ROWS).await;
    let table: [(&[&str], Value, &str); 5] = [
        (&["dead", "replay", "old"], json!(0), "refused: event `old` is done, not DEAD; it was left alone"),
        (
            &["dead", "discard", "old", "new", "nobody"],
            json!(0),
            "refused: event `old` is done, not DEAD; it was left alone; 2 more like it",
        ),
        (
            &["dead", "replay", "dead", "new"],
            json!(1),
            "done, and in part refused: event `new` is new, not DEAD; it was left alone",
        ),
        (&["pending", "cancel", "--seq", "5"], json!(0), "refused: row 5 is done, not pending; it was left alone"),
        (&["resume", "type", "order.placed"], Value::Null, "refused: it was not paused"),
    ];
    for (args, changed, expected) in table {
        run(&[args, &["--store", &store]].concat());
        let page = run(&["audit", "--store", &store, "--json"]).json();
        let entry = &page["actions"][0];
        assert_eq!((&entry["changed"], &entry["outcome"]), (&changed, &expected.into()), "{args:?}");
    }
}

/// So many DEAD rows, delayed ones, DONE ones of long ago and messages of the inbox; the last of each cannot be changed.
const MANY: &str = "
    WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 501)
        INSERT INTO outbox_event (event_id, event_type, payload, status, done_at, created_at) SELECT 'dead' || i, 'dead', '{}', 3, 2, 1 FROM n;
    WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 501)
        INSERT INTO outbox_event (event_id, event_type, payload, available_at) SELECT 'new' || i, 'new', '{}', 32503680000000000 FROM n;
    INSERT INTO outbox_inbox (consumer, message_id, received_at) VALUES ('billing', 'm1', 1), ('billing', 'm2', 2), ('billing', 'm3', 3);
    CREATE TRIGGER update_refused BEFORE UPDATE ON outbox_event WHEN old.event_id LIKE '%501' BEGIN SELECT raise(ABORT, 'no room'); END;
    CREATE TRIGGER delete_refused BEFORE DELETE ON outbox_event WHEN old.event_id LIKE '%501' BEGIN SELECT raise(ABORT, 'no room'); END;
    CREATE TRIGGER inbox_refused BEFORE DELETE ON outbox_inbox WHEN old.message_id = 'm3' BEGIN SELECT raise(ABORT, 'no room'); END;
";

#[tokio::test]
async fn a_change_that_fails_half_way_says_how_many_rows_were_changed_before() {
    let table: [(&[&str], &str, i64); 8] = [
        (&["dead", "replay", "--all", "--yes"], "500 rows were replayed before: ", 500),
        (&["dead", "discard", "--all", "--yes"], "500 rows were discarded before: ", 500),
        (&["pending", "retry", "--all", "--yes"], "500 rows were made due now before: ", 500),
        (&["pending", "cancel", "--all", "--yes"], "500 rows were cancelled before: ", 500),
        (&["dead", "replay", "dead7", "dead501"], "1 row was replayed before: ", 1),
        (&["purge", "--dead-after", "1d", "--batch", "400", "--yes"], "400 events were deleted before: ", 400),
        (&["inbox", "purge", "--older-than", "1d", "--batch", "2"], "2 messages were deleted before: ", 2),
        (&["dead", "replay", "--seq", "501"], "could not replay DEAD events", 0),
    ];
    for (args, expected, rows) in table {
        let (_folder, store) = sqlite();
        execute(&store, MANY).await;
        let ended = run(&[args, &["--store", &store]].concat());
        assert_eq!((ended.code, ended.stdout.as_str()), (Some(1), ""), "{args:?}: {ended:?}");
        assert!(ended.stderr.contains(expected), "{args:?}: {ended:?}");
        assert!(ended.stderr.contains("no room"), "{args:?}: {ended:?}");
        assert_eq!(ended.stderr.matches("could not ").count(), 1, "once: {args:?}: {ended:?}");
        let page = run(&["audit", "--store", &store, "--json"]).json();
        let entry = &page["actions"][0];
        let recorded = if rows > 0 { json!(rows) } else { Value::Null };
        assert_eq!(entry["changed"], recorded, "{args:?}: {entry}");
        let outcome = entry["outcome"].as_str().unwrap();
        assert!(outcome.contains("no room") && !outcome.contains("before"), "{args:?}: {entry}");
    }
}
