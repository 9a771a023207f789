//! Events of any state are listed and shown.

use serde_json::Value;

use crate::support::{Ended, execute, keys, run, sqlite};

const ROWS: &str = r#"
    INSERT INTO outbox_event (event_id, event_type, tenant_id, ordering_key, payload, status, attempts, last_error, created_at,
                              available_at, done_at) VALUES
        ('new', 'order.placed', 'acme', 'o-1', '{}', 0, 0, NULL, 1000000, NULL, NULL),
        ('done', 'order.placed', 'acme', NULL, '{}', 1, 0, NULL, 2000000, NULL, 2500000),
        ('retry', 'order.paid', 'acme', NULL, '{}', 2, 3, 'broker said no', 3000000, 32503680000000000, NULL),
        ('cancelled', 'order.paid', NULL, NULL, '{}', 1, 0, 'cancelled by an operator', 4000000, NULL, 4500000),
        ('dead', 'order.placed', 'acme', NULL, '{}', 3, 10, 'gave up', 5000000, NULL, 5500000);
"#;

fn events(store: &str, args: &[&str]) -> Ended {
    run(&[&["events"], args, &["--store", store]].concat())
}

fn ids(page: &Value) -> Vec<&str> {
    page["events"].as_array().unwrap().iter().map(|event| event["event_id"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn list_shows_events_of_any_state_newest_first_and_how_far_it_has_searched() {
    let (_folder, store) = sqlite();
    execute(&store, ROWS).await;
    let list = |args: &[&str]| events(&store, &[&["list", "--json"], args].concat()).json();
    let all = list(&[]);
    assert_eq!(ids(&all), ["dead", "cancelled", "retry", "done", "new"]);
    assert_eq!((&all["next"], &all["searched_back_to"]), (&Value::Null, &Value::Null));
    assert_eq!(
        keys(&all["events"][0]),
        [
            "aggregate_id",
            "aggregate_type",
            "attempts",
            "created_at",
            "done_at",
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
    assert_eq!((&all["events"][1]["state"], &all["events"][2]["state"]), (&"cancelled".into(), &"retrying".into()));
    assert_eq!(all["events"][2]["due_at"], "3000-01-01T00:00:00Z");
    assert_eq!(all["events"][0]["done_at"], "1970-01-01T00:00:05.5Z");

    assert_eq!(ids(&list(&["--state", "done"])), ["cancelled", "done"]);
    assert_eq!(ids(&list(&["--state", "cancelled"])), ["cancelled"]);
    assert_eq!(ids(&list(&["--state", "dead"])), ["dead"]);
    assert_eq!(ids(&list(&["--state", "retrying"])), ["retry"]);
    assert_eq!(ids(&list(&["--state", "pending"])), ["retry", "new"]);
    assert_eq!(ids(&list(&["--id", "retry"])), ["retry"]);
    assert_eq!(ids(&list(&["--event-type", "order.placed", "--tenant", "acme"])), ["dead", "done", "new"]);
    assert_eq!(ids(&list(&["--key", "o-1"])), ["new"]);
    assert_eq!(ids(&list(&["--error", "said"])), ["retry"]);
    assert_eq!(ids(&list(&["--since", "1970-01-01T00:00:02Z", "--before", "1970-01-01T00:00:04Z"])), ["retry", "done"]);

    let page = list(&["--limit", "2"]);
    assert_eq!((ids(&page), &page["next"]), (vec!["dead", "cancelled"], &4.into()));
    assert_eq!(ids(&list(&["--limit", "2", "--below", "4"])), ["retry", "done"]);
    let short = list(&["--key", "o-1", "--read-at-most", "3"]);
    assert_eq!((ids(&short).len(), &short["next"]), (0, &3.into()));
    assert_eq!(short["searched_back_to"], "1970-01-01T00:00:03Z");

    let text = events(&store, &["list"]).stdout;
    for part in ["STATE", "cancelled", "broker said no", "5 events; nothing is left to search"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let text = events(&store, &["list", "--key", "o-1", "--read-at-most", "3"]).stdout;
    assert!(text.contains("No event matches; searched back to 1970-01-01T00:00:03Z, go on with --below 3"), "{text}");
}

#[tokio::test]
async fn list_tells_delayed_events_from_new_ones_page_by_page() {
    let (_folder, store) = sqlite();
    // Every third of them is delayed.
    let rows = "
        WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 9)
        INSERT INTO outbox_event (event_id, event_type, payload, created_at, available_at)
            SELECT 'e' || i, 'order.placed', '{}', i * 1000000, CASE WHEN i % 3 = 0 THEN 32503680000000000 END FROM n";
    execute(&store, rows).await;
    let list = |args: &[&str]| events(&store, &[&["list", "--json"], args].concat()).json();
    let delayed = list(&["--state", "delayed"]);
    assert_eq!((ids(&delayed), &delayed["next"]), (vec!["e9", "e6", "e3"], &Value::Null));
    assert_eq!(delayed["events"][0]["state"], "delayed");
    let page = list(&["--state", "delayed", "--limit", "2"]);
    assert_eq!((ids(&page), &page["next"]), (vec!["e9", "e6"], &6.into()));
    assert_eq!(page["searched_back_to"], "1970-01-01T00:00:06Z");
    assert_eq!(ids(&list(&["--state", "delayed", "--limit", "2", "--below", "6"])), ["e3"]);
    assert_eq!(ids(&list(&["--state", "new"])), ["e8", "e7", "e5", "e4", "e2", "e1"]);
    let short = list(&["--state", "new", "--key", "none", "--read-at-most", "4"]);
    assert_eq!((ids(&short).len(), &short["next"]), (0, &6.into()), "it reads no more rows than it may");
    let refused = events(&store, &["list", "--status", "done"]);
    assert!(refused.code == Some(2) && refused.stderr.contains("--status"), "{refused:?}");
}

#[tokio::test]
async fn a_date_is_a_time_of_the_command_line_as_of_the_console() {
    let (_folder, store) = sqlite();
    execute(&store, ROWS).await;
    let list = |args: &[&str]| events(&store, &[&["list", "--json"], args].concat()).json();
    assert_eq!(ids(&list(&["--before", "1970-01-01 00:01"])).len(), 5);
    assert_eq!(ids(&list(&["--since", "1970-01-02"])).len(), 0);
}

#[tokio::test]
async fn show_prints_an_event_of_any_state() {
    let (_folder, store) = sqlite();
    execute(&store, ROWS).await;
    let shown = events(&store, &["show", "cancelled", "--json"]).json();
    assert_eq!((&shown["state"], &shown["status"], &shown["payload"]), (&"cancelled".into(), &1.into(), &"{}".into()));
    let missing = events(&store, &["show", "nobody"]);
    assert!(missing.code == Some(1) && missing.stderr.contains("`nobody`"), "{missing:?}");
}
