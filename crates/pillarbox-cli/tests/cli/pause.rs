//! Event types and handlers are paused, listed and resumed.

use serde_json::{Value, json};

use crate::support::{Ended, execute, keys, run, sqlite};

const ROWS: &str = "
    INSERT INTO outbox_event (event_id, event_type, handler, payload, status) VALUES
        ('one', 'order.placed', NULL, '{}', 0), ('two', 'order.paid', 'mailer', '{}', 0), ('done', 'order.placed', NULL, '{}', 1);
";

async fn outbox() -> (tempfile::TempDir, String) {
    let (folder, file) = sqlite();
    execute(&file, ROWS).await;
    (folder, file)
}

fn command(name: &str, store: &str, args: &[&str]) -> Ended {
    run(&[&[name, "--store", store], args].concat())
}

#[tokio::test]
async fn a_type_and_a_handler_are_paused_and_resumed() {
    let (_folder, store) = outbox().await;
    let ended = command("pauses", &store, &[]);
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(0), "Nothing is paused.\n"));
    let why = ["type", "order.placed", "--reason", "the partner is down", "--by", "anna", "--json"];
    let paused = command("pause", &store, &why).json();
    assert_eq!(paused, json!({"kind": "type", "name": "order.placed", "change": "paused"}));
    let ended = command("pause", &store, &["handler", "mailer", "--for", "2h"]);
    assert!(ended.code == Some(0) && ended.stdout.contains("the handler mailer is paused"), "{ended:?}");

    let list = command("pauses", &store, &["--json"]).json();
    let (of_type, of_handler) = (&list["pauses"][0], &list["pauses"][1]);
    assert_eq!((keys(&list), &list["due"]), (vec!["due", "pauses"], &2.into()));
    assert_eq!(keys(of_type), ["by", "kind", "name", "reason", "since", "until"]);
    assert_eq!((&of_type["by"], &of_type["reason"]), (&json!("anna"), &json!("the partner is down")));
    assert_eq!((&of_type["until"], &of_handler["kind"]), (&Value::Null, &json!("handler")));
    assert!(of_handler["until"].is_string(), "{list}");
    let text = command("pauses", &store, &[]).stdout;
    for part in ["PAUSED", "the partner is down", "it is resumed", "They hold 2 rows that are due."] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let status = command("status", &store, &["--json"]).json();
    assert_eq!(status["pauses"], list["pauses"]);
    assert!(command("status", &store, &[]).stdout.contains("the partner is down"));

    let again = command("pause", &store, &["type", "order.placed", "--json"]).json();
    assert_eq!(again["change"], "updated");
    let resumed = command("resume", &store, &["type", "order.placed", "--json"]).json();
    assert_eq!(resumed, json!({"kind": "type", "name": "order.placed", "change": "resumed"}));
    let ended = command("resume", &store, &["type", "order.placed"]);
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(0), "the type order.placed was not paused\n"));
    assert_eq!(command("pauses", &store, &["--json"]).json()["pauses"].as_array().map(Vec::len), Some(1));
}

#[tokio::test]
async fn a_pending_event_tells_what_it_waits_for() {
    let (_folder, store) = outbox().await;
    command("pause", &store, &["type", "order.placed", "--reason", "a migration"]);
    let show = |id: &str, args: &[&str]| run(&[&["pending", "show", id, "--store", &store], args].concat());
    let paused = show("one", &["--json"]).json()["paused"].as_str().map(str::to_owned);
    assert!(paused.is_some_and(|paused| paused.contains("the type is paused since") && paused.contains("a migration")));
    assert!(show("one", &[]).stdout.contains("waits for       the type is paused since"));
    for other in ["two", "done"] {
        assert_eq!(show(other, &["--json"]).json()["paused"], Value::Null, "{other}");
    }
}

#[tokio::test]
async fn what_cannot_be_is_refused() {
    let (_folder, store) = outbox().await;
    for (args, code, part) in [
        (vec!["kind", "order.placed"], 2, "KIND"),
        (vec!["type"], 2, "NAME"),
        (vec!["type", "a", "--for", "soon"], 2, "--for"),
        (vec!["type", ""], 1, "is empty"),
        (vec!["type", "a", "--for", "0s"], 1, "pause.for"),
    ] {
        let ended = command("pause", &store, &args);
        assert!(ended.code == Some(code) && ended.stderr.contains(part), "{args:?}: {ended:?}");
    }
    assert_eq!(command("pauses", &store, &["--json"]).json()["pauses"], json!([]));
}
