//! The keys that wait for an event that failed are listed, with what to do about it.

use serde_json::{Value, json};

use crate::support::{column, execute, keys, run, sqlite};

/// Two events each of five keys, the first of which failed: given up, or to be tried again. Of `alone` nothing else is there,
/// and `fine` has not failed.
const ROWS: &str = "
    INSERT INTO outbox_event (event_id, event_type, ordering_key, payload, status, attempts, last_error, available_at, done_at)
    VALUES ('d1', 'order.placed', 'dead', '{}', 3, 10, 'broker said no', NULL, 2000000),
           ('r1', 'order.placed', 'retry', '{}', 2, 3, 'timed out', 9000000000000000, NULL),
           ('n1', 'order.placed', 'now', '{}', 2, 1, 'timed out', 1000000, NULL),
           ('a1', 'order.placed', 'alone', '{}', 3, 10, 'broker said no', NULL, 2000000),
           ('f1', 'order.placed', 'fine', '{}', 0, 0, NULL, 9000000000000000, NULL);
    INSERT INTO outbox_event (event_id, event_type, ordering_key, payload)
    VALUES ('d2', 'order.paid', 'dead', '{}'), ('d3', 'order.sent', 'dead', '{}'), ('r2', 'order.paid', 'retry', '{}'),
           ('n2', 'order.paid', 'now', '{}'), ('f2', 'order.paid', 'fine', '{}');
";

fn names(page: &Value) -> Vec<&str> {
    page["keys"].as_array().unwrap().iter().map(|key| key["key"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn blocked_keys_are_listed_page_by_page() {
    let (_folder, store) = sqlite();
    let blocked = |args: &[&str]| run(&[&["keys", "blocked", "--store", &store], args].concat());
    let none = blocked(&[]);
    assert_eq!((none.code, none.stdout.as_str()), (Some(0), "No key waits for an event that failed.\n"));
    execute(&store, ROWS).await;

    let all = blocked(&["--json"]).json();
    assert_eq!((names(&all), &all["next"]), (vec!["dead", "retry", "now"], &Value::Null));
    let [dead, retry, now] = [0, 1, 2].map(|index| &all["keys"][index]);
    assert_eq!(
        keys(dead),
        [
            "attempts",
            "due_in_seconds",
            "event_id",
            "event_type",
            "handler",
            "key",
            "last_error",
            "seq",
            "state",
            "waiting"
        ]
    );
    let expected = json!({"key": "dead", "handler": null, "event_id": "d1", "event_type": "order.placed", "seq": 1,
                          "state": "dead", "attempts": 10, "due_in_seconds": null, "waiting": 2,
                          "last_error": "broker said no"});
    assert_eq!(*dead, expected);
    assert_eq!((&retry["state"], &retry["attempts"], &retry["waiting"]), (&"retrying".into(), &3.into(), &1.into()));
    assert!(retry["due_in_seconds"].as_f64().unwrap() > 1e6, "{retry}");
    assert_eq!((&now["state"], &now["due_in_seconds"]), (&"retrying".into(), &Value::Null));

    let page = blocked(&["--limit", "2", "--json"]).json();
    assert_eq!((names(&page), &page["next"]), (vec!["dead", "retry"], &2.into()));
    let page = blocked(&["--limit", "2", "--after", "2", "--json"]).json();
    assert_eq!((names(&page), &page["next"]), (vec!["now"], &Value::Null));
    let long = format!("{} and nobody has seen its end", "a long story; ".repeat(9));
    execute(&store, &format!("UPDATE outbox_event SET last_error = '{long}' WHERE event_id = 'd1'")).await;
    let text = blocked(&[]).stdout;
    assert!(
        text.contains("a long story; a long sto…") && text.contains("has seen its end") && !text.contains(&long),
        "{text}"
    );
    assert!(blocked(&["--wide"]).stdout.contains(&long));
    let text = blocked(&["--after", "9"]).stdout;
    assert_eq!(text, "No key waits for an event that failed behind --after.\n");
}

#[tokio::test]
async fn events_that_block_a_key_are_named_with_a_remedy_that_works() {
    let (_folder, store) = sqlite();
    execute(&store, ROWS).await;
    let text = run(&["keys", "blocked", "--store", &store, "--limit", "2"]).stdout;
    for part in
        ["broker said no", "2 keys; more with --after 2", "pillarbox dead replay d1", "pillarbox dead discard d1"]
    {
        assert!(text.contains(part), "{part}: {text}");
    }
    for verb in ["show", "replay", "discard"] {
        assert!(text.contains(&format!("\n  pillarbox dead {verb} d1 --store {store}\n")), "{verb}: {text}");
    }
    let show = |seq: &str, more: &[&str]| run(&[&["pending", "show", "--seq", seq, "--store", &store], more].concat());
    let text = show("6", &[]).stdout;
    assert!(text.contains("waits for       in mode partitioned, row 1 of its key, event d1, which is dead"), "{text}");
    assert_eq!(show("6", &["--json"]).json()["waits_behind"], 1);
    for alone in ["1", "2", "10"] {
        assert_eq!(show(alone, &["--json"]).json()["waits_behind"], Value::Null, "{alone}");
    }
    let text = run(&["keys", "blocked", "--store", &store, "--after", "2"]).stdout;
    assert!(text.contains("now") && text.contains("goes on by itself"), "{text}");

    let relay = |limit| {
        let args = ["relay", "--store", &store, "--mode", "partitioned", "--limit", limit];
        let ended = run(&args);
        assert_eq!(ended.code, Some(0), "{ended:?}");
    };
    // Of `now`, the first is due and succeeds, and the second follows. An event that is delayed blocks nobody.
    relay("3");
    let done = "SELECT event_id FROM outbox_event WHERE status = 1 ORDER BY seq";
    assert_eq!(column(&store, done).await, ["n1", "n2", "f2"], "the others wait, or are delayed");
    assert_eq!(run(&["dead", "discard", "d1", "--store", &store]).code, Some(0));
    assert_eq!(names(&run(&["keys", "blocked", "--store", &store, "--json"]).json()), ["retry"]);
    relay("2");
    assert_eq!(column(&store, done).await, ["n1", "d2", "d3", "n2", "f2"], "what waited behind it has followed");
}

#[tokio::test]
async fn the_remedy_is_for_the_table_and_the_handler_that_are_meant() {
    let (_folder, store) = sqlite();
    assert_eq!(run(&["migrate", "--store", &store, "--table", "events"]).code, Some(0));
    let rows = "
        INSERT INTO events (event_id, event_type, ordering_key, handler, payload, status, done_at)
        VALUES ('it''s', 't', 'k', 'mail', '{}', 3, 2000000), ('it''s', 't', 'k', 'ledger', '{}', 3, 2000000);
        INSERT INTO events (event_id, event_type, ordering_key, handler, payload) VALUES ('next', 't', 'k', 'mail', '{}');
    ";
    execute(&store, rows).await;
    let text = run(&["keys", "blocked", "--store", &store, "--table", "events"]).stdout;
    let line = text.lines().find(|line| line.contains("dead discard")).unwrap_or_else(|| panic!("{text}"));
    // The shell has a word in it: the hint is pasted.
    let pasted = line.trim().replacen("pillarbox", env!("CARGO_BIN_EXE_pillarbox"), 1);
    let ended = std::process::Command::new("sh").args(["-c", &pasted]).output().unwrap();
    assert!(ended.status.success(), "{pasted}: {ended:?}");
    assert_eq!(
        column(&store, "SELECT event_id || ' ' || handler FROM events ORDER BY seq").await,
        ["it's ledger", "next mail"]
    );
}
