//! Events that were given up are listed, shown, delivered again and thrown away; others are left alone.

use serde_json::{Value, json};

use crate::support::{Ended, column, execute, keys, run, sqlite};

const ROWS: &str = r#"
    INSERT INTO outbox_event (event_id, event_type, aggregate_type, aggregate_id, tenant_id, payload, status, attempts,
                              last_error, done_at) VALUES
        ('a', 'order.placed', 'order', 'o-1', 'acme', '{"n":  1}', 3, 10, 'broker said no', 2000000),
        ('b', 'order.placed', 'order', 'o-2', 'acme', '{}', 3, 10, 'broker said no', 2000000),
        ('c', 'order.paid', 'order', 'o-2', 'globex', '{}', 3, 1, NULL, 2000000),
        ('done', 'order.placed', 'order', 'o-3', 'acme', '{}', 1, 0, NULL, 2000000),
        ('new', 'order.placed', 'order', 'o-4', 'acme', '{}', 0, 0, NULL, NULL);
    INSERT INTO outbox_event (event_id, event_type, payload_bytes, content_type, status, done_at) VALUES
        ('bytes', 'photo.taken', x'00ff01', 'image/x', 3, 2000000);
"#;

const STATES: &str = "SELECT event_id || ' ' || status FROM outbox_event ORDER BY seq";

async fn outbox() -> (tempfile::TempDir, String) {
    let (folder, file) = sqlite();
    execute(&file, ROWS).await;
    (folder, file)
}

fn dead(store: &str, args: &[&str]) -> Ended {
    run(&[&["dead"], args, &["--store", store]].concat())
}

fn ids(page: &Value) -> Vec<&str> {
    page["events"].as_array().unwrap().iter().map(|event| event["event_id"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn list_shows_matching_events_page_by_page() {
    let (_folder, store) = outbox().await;
    let list = |args: &[&str]| dead(&store, &[&["list", "--json"], args].concat()).json();
    let all = list(&[]);
    assert_eq!((ids(&all), &all["matching"], &all["next"]), (vec!["a", "b", "c", "bytes"], &4.into(), &Value::Null));
    let first = &all["events"][0];
    assert_eq!(
        keys(first),
        [
            "aggregate_id",
            "aggregate_type",
            "attempts",
            "created_at",
            "dead_at",
            "event_id",
            "event_type",
            "key",
            "last_error",
            "seq",
            "tenant_id"
        ]
    );
    assert_eq!((&first["last_error"], &first["attempts"]), (&"broker said no".into(), &10.into()));

    assert_eq!(ids(&list(&["--event-type", "order.paid"])), ["c"]);
    assert_eq!(ids(&list(&["--tenant", "acme"])), ["a", "b"]);
    assert_eq!(ids(&list(&["--aggregate-type", "__GLOBAL__"])), ["bytes"]);
    assert_eq!(ids(&list(&["--tenant", "acme", "--event-type", "order.paid"])), [""; 0]);
    let page = list(&["--limit", "3"]);
    assert_eq!((ids(&page).len(), &page["matching"]), (3, &4.into()));
    let next = page["next"].as_i64().unwrap().to_string();
    assert_eq!(ids(&list(&["--limit", "3", "--after", &next])), ["bytes"]);

    let full = list(&["--limit", "4"]);
    assert_eq!((ids(&full).len(), &full["next"]), (4, &Value::Null), "a full page is not followed by an empty one");
    let text = dead(&store, &["list", "--limit", "1", "--event-type", "order.paid"]).stdout;
    assert!(text.ends_with("1 of 1\n"), "{text}");
    let text = dead(&store, &["list", "--limit", "3"]).stdout;
    assert!(text.contains("3 of 4; more with --after 3") && text.contains("order/o-1"), "{text}");
    let none = dead(&store, &["list", "--tenant", "nobody"]);
    assert_eq!((none.code, none.stdout.as_str()), (Some(0), "No event that was given up matches.\n"));
}

#[tokio::test]
async fn show_prints_everything_and_payloads_as_they_are() {
    let (_folder, store) = outbox().await;
    let shown = dead(&store, &["show", "a", "--json"]).json();
    assert_eq!((&shown["payload"], &shown["content_type"]), (&"{\"n\":  1}".into(), &Value::Null));
    assert_eq!((shown["key"].is_null(), shown.get("ordering_key")), (true, None), "named as in the list");
    assert_eq!((&shown["status"], &shown["last_error"]), (&"DEAD".into(), &"broker said no".into()));
    assert_eq!(shown["done_at"], "1970-01-01T00:00:02Z");
    let bytes = dead(&store, &["show", "bytes", "--json"]).json();
    assert_eq!((&bytes["payload_base64"], &bytes["content_type"]), (&"AP8B".into(), &"image/x".into()));
    assert!(bytes.get("payload").is_none(), "{bytes}");
    assert_eq!(dead(&store, &["show", "done", "--json"]).json()["status"], "DONE", "dead or not");
    let text = dead(&store, &["show", "bytes"]).stdout;
    assert!(text.contains("AP8B") && text.contains("image/x"), "{text}");

    let missing = dead(&store, &["show", "nobody", "--json"]);
    assert_eq!((missing.code, missing.stdout.as_str()), (Some(1), ""));
    assert!(missing.stderr.contains("there is no event `nobody`"), "{missing:?}");
}

#[tokio::test]
async fn replay_and_discard_take_dead_events_and_refuse_others() {
    let (_folder, store) = outbox().await;
    let ended = dead(&store, &["replay", "a", "done", "nobody", "--json"]);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    let refused = json!([{"event_id": "done", "status": "DONE"}, {"event_id": "nobody", "status": null}]);
    assert_eq!(ended.json(), json!({"replayed": 1, "refused": refused}));
    assert!(ended.stderr.contains("event `done` is DONE, not DEAD"), "{ended:?}");
    assert!(ended.stderr.contains("there is no event `nobody`"), "{ended:?}");

    let ended = dead(&store, &["discard", "b", "--json"]);
    assert_eq!((ended.code, ended.json()), (Some(0), json!({"discarded": 1, "refused": []})));
    let ended = dead(&store, &["discard", "new"]);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert_eq!(column(&store, STATES).await, ["a 0", "c 3", "done 1", "new 0", "bytes 3"]);
    let replayed = dead(&store, &["show", "a", "--json"]).json();
    assert_eq!(
        (&replayed["attempts"], &replayed["last_error"], &replayed["done_at"]),
        (&0.into(), &Value::Null, &Value::Null)
    );
}

#[test]
fn a_change_without_ids_is_refused_and_says_how_to_take_all() {
    for fate in ["replay", "discard"] {
        for given in [&[][..], &["--tenant", "acme"]] {
            let ended = dead("x.db", &[&[fate], given].concat());
            assert_eq!(ended.code, Some(2), "{ended:?}");
            assert!(ended.stderr.contains("<EVENT_ID|--all>"), "{ended:?}");
        }
    }
}

#[tokio::test]
async fn all_that_match_are_taken_once_somebody_has_said_yes() {
    let (_folder, store) = outbox().await;
    let ended = dead(&store, &["replay", "--all", "--tenant", "acme"]);
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(1), ""), "nobody can be asked");
    assert!(ended.stderr.contains("deliver 2 events again") && ended.stderr.contains("--yes"), "{ended:?}");

    let ended = dead(&store, &["replay", "--all", "--tenant", "acme", "--yes"]);
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(0), "2 events were replayed\n"));
    assert_eq!(ended.stderr, "", "no progress bar where nobody watches");
    let ended = dead(&store, &["discard", "--all", "--event-type", "order.paid", "--yes", "--json"]);
    assert_eq!((ended.code, ended.json()), (Some(0), json!({"discarded": 1, "refused": []})));
    assert_eq!(column(&store, STATES).await, ["a 0", "b 0", "done 1", "new 0", "bytes 3"]);
    let ended = dead(&store, &["discard", "--all", "--tenant", "acme"]);
    assert_eq!(
        (ended.code, ended.stdout.as_str()),
        (Some(0), "0 events were discarded\n"),
        "nothing to be asked about"
    );
}
