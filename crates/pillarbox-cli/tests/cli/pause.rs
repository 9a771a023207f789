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
    assert!(ended.code == Some(0) && ended.stdout.contains("the handler `mailer` is paused"), "{ended:?}");

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
    let said = "the type `order.placed` was not paused; the handler `mailer` is\n";
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(0), said));
    assert_eq!(command("pauses", &store, &["--json"]).json()["pauses"].as_array().map(Vec::len), Some(1));
}

/// Whoever pauses what a colleague has paused sees what was said of it; and each change is in the audit table.
#[tokio::test]
async fn a_pause_tells_what_it_takes_the_place_of_and_is_recorded() {
    let (_folder, store) = outbox().await;
    command("pause", &store, &["type", "order.placed", "--reason", "the partner is down", "--by", "anna"]);
    let again = command("pause", &store, &["type", "order.placed"]).stdout;
    assert!(
        again.contains("was paused already, since 20") && again.contains("by anna (the partner is down)"),
        "{again}"
    );
    let list = command("pauses", &store, &["--json"]).json();
    assert_eq!(list["pauses"][0]["reason"], Value::Null);
    assert!(list["pauses"][0]["by"].as_str().is_some_and(|by| !by.is_empty()), "the user of this process: {list}");
    command("resume", &store, &["type", "order.placed", "--by", "bob"]);
    let audit = command("audit", &store, &["--json"]).json();
    let entry = |number: usize| {
        let entry = &audit["actions"][number];
        [&entry["who"], &entry["action"], &entry["subject"], &entry["outcome"]]
            .map(|text| text.as_str().unwrap_or_default())
    };
    let subject = "type order.placed";
    assert_eq!(entry(0), ["bob", "resume", subject, "done"]);
    assert_eq!(entry(2), ["anna", "pause", "type order.placed, reason the partner is down", "done"]);
}

/// A name is meant to the byte, and whoever mistypes one is told.
#[tokio::test]
async fn a_name_that_is_nearly_another_is_pointed_out() {
    let (_folder, store) = outbox().await;
    let ended = command("pause", &store, &["type", "order.placed "]);
    assert!(
        ended.code == Some(0) && ended.stderr.contains("`order.placed ` begins or ends in white space"),
        "{ended:?}"
    );
    assert!(ended.stderr.contains("no recent event is of the type `order.placed `"), "{ended:?}");
    assert_eq!(command("pauses", &store, &["--json"]).json()["due"], 0);
    let ended = command("pause", &store, &["handler", "mailer"]);
    assert_eq!(ended.stderr, "", "it has an event");
    let pending = run(&["pending", "list", "--store", &store, "--json"]).json();
    let paused: Vec<_> = pending["events"].as_array().unwrap().iter().map(|event| &event["paused"]).collect();
    assert_eq!(paused, [false, true]);
    assert!(run(&["pending", "list", "--store", &store]).stdout.contains("new, paused"));
    let ended = command("resume", &store, &["type", "Order.Placed"]);
    let expected = "the type `Order.Placed` was not paused; the type `order.placed ` is\n";
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(0), expected));
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
    execute(
        &store,
        "INSERT INTO outbox_event (event_id, event_type, ordering_key, payload) VALUES
            ('held', 'order.placed', 'k', '{}'), ('behind', 'order.paid', 'k', '{}'), ('beside', 'order.paid', 'l', '{}')",
    )
    .await;
    let row = |id: &str| show(id, &["--json"]).json()["seq"].clone();
    assert_eq!(show("behind", &["--json"]).json()["waits_behind"], row("held"));
    assert!(show("behind", &[]).stdout.contains("of its key, event held, which is paused"));
    for alone in ["held", "beside"] {
        assert_eq!(show(alone, &["--json"]).json()["waits_behind"], Value::Null, "{alone}");
    }
}

#[tokio::test]
async fn invalid_pauses_are_refused() {
    let (_folder, store) = outbox().await;
    for (args, code, part) in [
        (vec!["kind", "order.placed"], 2, "KIND"),
        (vec!["type"], 2, "NAME"),
        (vec!["type", "a", "--for", "soon"], 2, "--for"),
        (vec!["type", ""], 2, "is empty"),
        (vec!["type", "a", "--for", "0s"], 2, "set a time from 1ms to 3650 days"),
        (vec!["type", "a", "--for=-1s"], 2, "it is no time, such as `30m` or `2h`"),
        (vec!["type", "a", "--by", ""], 2, "--by"),
    ] {
        let ended = command("pause", &store, &args);
        assert!(ended.code == Some(code) && ended.stderr.contains(part), "{args:?}: {ended:?}");
    }
    assert_eq!(command("pauses", &store, &["--json"]).json()["pauses"], json!([]));
}
