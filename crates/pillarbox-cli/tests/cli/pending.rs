//! Events that still have to be delivered are listed and shown; nothing is changed.

use serde_json::Value;

use crate::support::{Ended, execute, keys, run, sqlite};

const ROWS: &str = r#"
    INSERT INTO outbox_event (event_id, event_type, tenant_id, ordering_key, handler, payload, status, attempts, last_error,
                              available_at, locked_by) VALUES
        ('new', 'order.placed', 'acme', 'o-1', NULL, '{"n":  1}', 0, 0, NULL, NULL, NULL),
        ('delayed', 'order.placed', 'globex', NULL, NULL, '{}', 0, 0, NULL, 32503680000000000, NULL),
        ('retrying', 'order.paid', 'acme', NULL, 'mail', '{}', 2, 3, 'broker said no', 32503680000000000, NULL),
        ('held', 'order.paid', NULL, NULL, NULL, '{}', 0, 0, NULL, NULL, 'node-1'),
        ('done', 'order.placed', 'acme', NULL, NULL, '{}', 1, 0, NULL, NULL, NULL),
        ('dead', 'order.placed', 'acme', NULL, NULL, '{}', 3, 10, 'gave up', NULL, NULL);
"#;

async fn outbox() -> (tempfile::TempDir, String) {
    let (folder, file) = sqlite();
    execute(&file, ROWS).await;
    (folder, file)
}

fn pending(store: &str, args: &[&str]) -> Ended {
    run(&[&["pending"], args, &["--store", store]].concat())
}

fn ids(page: &Value) -> Vec<&str> {
    page["events"].as_array().unwrap().iter().map(|event| event["event_id"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn list_shows_matching_events_page_by_page() {
    let (_folder, store) = outbox().await;
    let list = |args: &[&str]| pending(&store, &[&["list", "--json"], args].concat()).json();
    let all = list(&[]);
    assert_eq!(ids(&all), ["new", "delayed", "retrying", "held"]);
    assert_eq!((&all["matching"], &all["next"]), (&4.into(), &Value::Null));
    let retrying = &all["events"][2];
    assert_eq!(
        keys(retrying),
        [
            "aggregate_id",
            "aggregate_type",
            "attempts",
            "created_at",
            "due_at",
            "event_id",
            "event_type",
            "handler",
            "held_by",
            "key",
            "last_error",
            "seq",
            "state",
            "tenant_id"
        ]
    );
    assert_eq!((&retrying["state"], &retrying["attempts"]), (&"retrying".into(), &3.into()));
    assert_eq!((&retrying["last_error"], &retrying["handler"]), (&"broker said no".into(), &"mail".into()));
    assert_eq!(retrying["due_at"], "3000-01-01T00:00:00Z");
    assert_eq!((&all["events"][0]["due_at"], &all["events"][3]["held_by"]), (&Value::Null, &"node-1".into()));

    assert_eq!(ids(&list(&["--state", "new"])), ["new", "held"]);
    assert_eq!(ids(&list(&["--state", "delayed"])), ["delayed"]);
    assert_eq!(ids(&list(&["--state", "retrying"])), ["retrying"]);
    assert_eq!(ids(&list(&["--event-type", "order.placed", "--tenant", "acme"])), ["new"]);
    assert_eq!(ids(&list(&["--key", "o-1"])), ["new"]);
    assert_eq!(ids(&list(&["--handler", "mail"])), ["retrying"]);
    let page = list(&["--limit", "3"]);
    assert_eq!((ids(&page).len(), &page["next"]), (3, &3.into()));
    assert_eq!(ids(&list(&["--limit", "3", "--after", "3"])), ["held"]);

    let text = pending(&store, &["list"]).stdout;
    for part in ["STATE", "HELD BY", "node-1", "broker said no", "3000-01-01T00:00:00Z", "4 of 4"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let text = pending(&store, &["list", "--state", "delayed"]).stdout;
    assert!(!text.contains("HELD BY") && !text.contains("HANDLER"), "{text}");
    let none = pending(&store, &["list", "--tenant", "nobody"]);
    assert_eq!((none.code, none.stdout.as_str()), (Some(0), "No pending event matches.\n"));
    let ended = pending(&store, &["list", "--state", "dead"]);
    assert!(ended.code == Some(2) && ended.stderr.contains("--state"), "{ended:?}");
}

#[tokio::test]
async fn show_prints_the_payload_too() {
    let (_folder, store) = outbox().await;
    let shown = pending(&store, &["show", "new", "--json"]).json();
    assert_eq!((&shown["payload"], &shown["status"]), (&"{\"n\":  1}".into(), &"NEW".into()));
    assert_eq!(pending(&store, &["show", "--seq", "3", "--json"]).json()["event_id"], "retrying");
    assert_eq!(shown["unique_key"], Value::Null);
    execute(&store, "UPDATE outbox_event SET unique_key = 'report-7' WHERE event_id = 'new'").await;
    assert_eq!(pending(&store, &["show", "new", "--json"]).json()["unique_key"], "report-7");
    assert!(pending(&store, &["show", "new"]).stdout.contains("unique key      report-7\n"));
    let missing = pending(&store, &["show", "nobody"]);
    assert!(missing.code == Some(1) && missing.stderr.contains("there is no event `nobody`"), "{missing:?}");
}
