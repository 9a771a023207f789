//! Events that still have to be delivered are listed, shown, tried now and cancelled.

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
            "paused",
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
    for part in ["STATE", "HELD BY", "node-1", "broker said no", "3000-01-01T00:00:00.000000Z", "4 of 4"] {
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
    assert_eq!((&shown["payload"], &shown["state"]), (&"{\"n\":  1}".into(), &"new".into()));
    assert_eq!(pending(&store, &["show", "--seq", "3", "--json"]).json()["event_id"], "retrying");
    assert_eq!(shown["unique_key"], Value::Null);
    execute(&store, "UPDATE outbox_event SET unique_key = 'report-7' WHERE event_id = 'new'").await;
    assert_eq!(pending(&store, &["show", "new", "--json"]).json()["unique_key"], "report-7");
    assert!(pending(&store, &["show", "new"]).stdout.contains("unique key      report-7\n"));
    let missing = pending(&store, &["show", "nobody"]);
    assert!(missing.code == Some(1) && missing.stderr.contains("there is no event `nobody`"), "{missing:?}");
}

#[tokio::test]
async fn retry_makes_due_what_waits_for_a_time() {
    let (_folder, store) = outbox().await;
    let one = pending(&store, &["retry", "delayed", "--json"]).json();
    assert_eq!((&one["due_now"], keys(&one)), (&1.into(), vec!["due_now", "refused"]));
    let refused = pending(&store, &["retry", "--seq", "1,3,99", "--json"]);
    assert_eq!(refused.code, Some(1), "{}", refused.stderr);
    assert_eq!(refused.json()["due_now"], 1);
    assert!(refused.stderr.contains("row 1 is new, and waits for no time"), "{}", refused.stderr);
    assert!(refused.stderr.contains("no row has the number 99"), "{}", refused.stderr);
    let list = pending(&store, &["list", "--state", "delayed", "--json"]).json();
    assert!(ids(&list).is_empty(), "{list}");
    let retrying = pending(&store, &["show", "retrying", "--json"]).json();
    assert_eq!((&retrying["state"], &retrying["attempts"]), (&"retrying".into(), &3.into()));
    assert_ne!(retrying["available_at"], "3000-01-01T00:00:00Z");

    let asks = pending(&store, &["retry", "--all", "--tenant", "acme"]);
    assert_eq!(asks.code, Some(1));
    assert!(asks.stderr.contains("pass --yes to try 1 row now"), "{}", asks.stderr);
    let all = pending(&store, &["retry", "--all", "--tenant", "acme", "--yes"]);
    assert!(all.stdout.contains("1 row was made due now"), "{}", all.stdout);
    assert!(pending(&store, &["retry", "--all", "--state", "new"]).stdout.contains("0 rows were made due now"));
}

#[tokio::test]
async fn show_tells_as_what_an_event_was_delivered() {
    let (_folder, store) = outbox().await;
    execute(&store, "UPDATE outbox_event SET delivered_as = 'ORDERS/1042' WHERE event_id = 'done'").await;
    let shown = pending(&store, &["show", "done", "--json"]).json();
    assert_eq!((&shown["state"], &shown["delivered_as"]), (&"done".into(), &"ORDERS/1042".into()));
    let text = pending(&store, &["show", "done"]).stdout;
    assert!(text.lines().any(|line| line == "delivered as    ORDERS/1042"), "{text}");
}

#[tokio::test]
async fn cancel_ends_events_that_are_not_delivered_then() {
    let (_folder, store) = outbox().await;
    let one = pending(&store, &["cancel", "held", "dead", "--json"]);
    assert_eq!((one.code, &one.json()["cancelled"]), (Some(1), &1.into()), "{}", one.stderr);
    assert!(one.stderr.contains("event `dead` is dead, not pending; it was left alone"), "{}", one.stderr);
    let shown = pending(&store, &["show", "held", "--json"]).json();
    assert_eq!((&shown["state"], &shown["last_error"]), (&"cancelled".into(), &"cancelled by an operator".into()));
    assert_eq!(shown["delivered_as"], Value::Null);
    assert_eq!(shown["locked_by"], Value::Null);
    let again = pending(&store, &["cancel", "held"]);
    assert!(again.stderr.contains("event `held` is cancelled, not pending"), "{}", again.stderr);

    let asks = pending(&store, &["cancel", "--all"]);
    assert!(asks.stderr.contains("pass --yes to cancel 3 rows: what is cancelled is not delivered"), "{}", asks.stderr);
    let all = pending(&store, &["cancel", "--all", "--event-type", "order.placed", "--yes", "--json"]).json();
    assert_eq!(all["cancelled"], 2);
    assert_eq!(ids(&pending(&store, &["list", "--json"]).json()), ["retrying"]);
    let status = run(&["status", "--exact", "--json", "--store", &store]).json();
    assert_eq!((&status["rows"]["cancelled"], &status["rows"]["done"]), (&3.into(), &1.into()));
}

#[tokio::test]
async fn an_event_of_several_handlers_is_changed_for_the_one_that_is_named() {
    let (_folder, store) = outbox().await;
    let rows = "INSERT INTO outbox_event (event_id, event_type, handler, payload) VALUES
        ('two', 'order.placed', 'mail', '{}'), ('two', 'order.placed', 'stock', '{}')";
    execute(&store, rows).await;
    let both = pending(&store, &["cancel", "two"]);
    assert_eq!(both.code, Some(1));
    assert!(both.stderr.contains("event `two` waits for more than one handler: `mail`, `stock`"), "{}", both.stderr);
    assert_eq!(pending(&store, &["cancel", "two", "--handler", "mail", "--json"]).json()["cancelled"], 1);
    assert_eq!(pending(&store, &["cancel", "two", "--every-handler", "--json"]).json()["cancelled"], 1);
}
