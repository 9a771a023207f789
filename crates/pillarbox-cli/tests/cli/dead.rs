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
async fn summary_counts_events_by_reason_most_first() {
    let (_folder, store) = outbox().await;
    execute(
        &store,
        "UPDATE outbox_event SET last_error = 'no order ' || (100000 + seq) || ': HTTP 404' WHERE status = 3",
    )
    .await;
    execute(&store, "UPDATE outbox_event SET last_error = NULL, done_at = NULL WHERE event_id = 'bytes'").await;
    let found = dead(&store, &["summary", "--json"]).json();
    let reasons = found["reasons"].as_array().unwrap();
    let of = |reason: &Value| (reason["events"].as_u64(), reason["event_type"].as_str().map(str::to_owned));
    assert_eq!(of(&reasons[0]), (Some(2), Some("order.placed".to_owned())));
    assert_eq!(reasons.len(), 3, "{found}");
    let first = &reasons[0];
    assert_eq!(
        keys(first),
        ["common_text", "error", "event_id", "event_type", "events", "first_dead_at", "handler", "last_dead_at", "seq"]
    );
    assert_eq!((&first["error"], &first["common_text"]), (&"no order *: HTTP 404".into(), &": HTTP 404".into()));
    assert_eq!((&first["event_id"], &first["last_dead_at"]), (&"b".into(), &"1970-01-01T00:00:02Z".into()));
    assert_eq!((&found["read"], &found["others"], &found["has_more"]), (&4.into(), &0.into(), &false.into()));

    let text = dead(&store, &["summary", "--limit", "2"]).stdout;
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 4, "{text}");
    assert!(lines[0].contains("EVENTS") && !lines[0].contains("HANDLER") && lines[1].contains("no order *"), "{text}");
    assert_eq!(lines[3], "2 events, 1 reason; newer events match too: read more with --limit");
    let one = dead(&store, &["summary", "--event-type", "photo.taken"]).stdout;
    assert!(one.contains("photo.taken") && one.ends_with("1 event, 1 reason\n"), "{one}");
    let none = dead(&store, &["summary", "--tenant", "nobody"]).stdout;
    assert_eq!(none, "No event that was given up matches.\n");
    let zero = dead(&store, &["summary", "--limit", "0"]);
    assert!(zero.code == Some(2) && zero.stderr.contains("--limit"), "{zero:?}");
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
            "handler",
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
    let long = format!("{} and nobody has seen its end", "a long story; ".repeat(9));
    execute(&store, &format!("UPDATE outbox_event SET last_error = '{long}' WHERE event_id = 'a'")).await;
    let text = dead(&store, &["list"]).stdout;
    assert!(
        text.contains("a long story; a long sto…") && text.contains("has seen its end") && !text.contains(&long),
        "{text}"
    );
    assert!(dead(&store, &["list", "--wide"]).stdout.contains(&long));
    let none = dead(&store, &["list", "--tenant", "nobody"]);
    assert_eq!((none.code, none.stdout.as_str()), (Some(0), "No event that was given up matches.\n"));
}

#[tokio::test]
async fn time_and_error_text_narrow_what_is_listed_and_taken() {
    let (_folder, store) = outbox().await;
    let now = "CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER)";
    let errors = format!(
        "UPDATE outbox_event SET done_at = {now}, last_error = '100% of a_b: timeout' WHERE event_id = 'b';
         UPDATE outbox_event SET done_at = {now} - 10800000000, last_error = 'Timeout' WHERE event_id = 'c';"
    );
    execute(&store, &errors).await;
    let list = |args: &[&str]| dead(&store, &[&["list", "--json"], args].concat()).json();
    assert_eq!(ids(&list(&["--since", "2h"])), ["b"]);
    assert_eq!(ids(&list(&["--since", "1d", "--before", "2h"])), ["c"]);
    assert_eq!(ids(&list(&["--before", "1970-01-01T00:00:03Z"])), ["a", "bytes"]);
    assert_eq!(ids(&list(&["--since", "2h", "--error", "timeout"])), ["b"]);
    assert_eq!(ids(&list(&["--error", "Timeout"])), ["c"]);
    assert_eq!(ids(&list(&["--error", "0%_of"])), [""; 0]);
    assert_eq!(list(&["--error", "a_b"])["matching"], 1);

    for (args, reason) in [
        (["--since", "yesterday"], "neither an age"),
        (["--before", "2"], "neither an age"),
        (["--error", ""], "a value is required for '--error <TEXT>'"),
    ] {
        let ended = dead(&store, &[&["list"], &args[..]].concat());
        assert_eq!(ended.code, Some(2), "{ended:?}");
        assert!(ended.stderr.contains(reason) && ended.stderr.contains(args[0]), "{ended:?}");
    }
    let ended = dead(&store, &["discard", "--all", "--since", "2h", "--error", "timeout", "--yes", "--json"]);
    assert_eq!((ended.code, ended.json()), (Some(0), json!({"discarded": 1, "refused": []})));
    assert_eq!(column(&store, STATES).await, ["a 3", "c 3", "done 1", "new 0", "bytes 3"]);
    for args in [["replay", "a", "--error", "x"], ["replay", "a", "--since", "2h"]] {
        assert_eq!(dead(&store, &args).code, Some(2), "ids need no filter");
    }
}

#[tokio::test]
async fn show_prints_everything_and_payloads_as_they_are() {
    let (_folder, store) = outbox().await;
    let shown = dead(&store, &["show", "a", "--json"]).json();
    assert_eq!((&shown["payload"], &shown["content_type"]), (&"{\"n\":  1}".into(), &Value::Null));
    assert_eq!((shown["key"].is_null(), shown.get("ordering_key")), (true, None), "named as in the list");
    assert_eq!((&shown["state"], &shown["last_error"]), (&"dead".into(), &"broker said no".into()));
    assert_eq!(shown["done_at"], "1970-01-01T00:00:02Z");
    let bytes = dead(&store, &["show", "bytes", "--json"]).json();
    assert_eq!((&bytes["payload_base64"], &bytes["content_type"]), (&"AP8B".into(), &"image/x".into()));
    assert!(bytes.get("payload").is_none(), "{bytes}");
    assert_eq!(dead(&store, &["show", "done", "--json"]).json()["state"], "done", "dead or not");
    let text = dead(&store, &["show", "bytes"]).stdout;
    assert!(text.contains("AP8B") && text.contains("image/x"), "{text}");

    let missing = dead(&store, &["show", "nobody", "--json"]);
    assert_eq!((missing.code, missing.stdout.as_str()), (Some(1), ""));
    assert!(missing.stderr.contains("there is no event `nobody`"), "{missing:?}");
}

#[tokio::test]
async fn show_lists_the_failed_attempts() {
    let (_folder, store) = outbox().await;
    let failed = r#"[{"attempts": 1, "at": 1000000, "node": "n-1", "error": "no answer"},
                     {"attempts": 2, "at": 2000000, "node": "n-2", "error": "broker said\tno"}]"#;
    execute(&store, &format!("UPDATE outbox_event SET failures = '{failed}' WHERE event_id = 'a'")).await;
    let shown = dead(&store, &["show", "a", "--json"]).json();
    let second = json!({"attempts": 2, "at": "1970-01-01T00:00:02Z", "node": "n-2", "error": "broker said\tno"});
    assert_eq!((shown["failures"].as_array().map(Vec::len), &shown["failures"][1]), (Some(2), &second));
    assert_eq!(dead(&store, &["show", "b", "--json"]).json()["failures"], json!([]));
    let text = dead(&store, &["show", "a"]).stdout;
    let lines: Vec<&str> = text.lines().filter(|line| line.starts_with("failure ")).collect();
    assert_eq!(lines.len(), 2, "{text}");
    assert_eq!(lines[0], "failure         1970-01-01T00:00:01.000000Z on n-1 (failed attempts by then: 1): no answer");
    assert!(!dead(&store, &["show", "b"]).stdout.contains("\nfailure "));
}

#[tokio::test]
async fn replay_and_discard_take_dead_events_and_refuse_others() {
    let (_folder, store) = outbox().await;
    let ended = dead(&store, &["replay", "a", "done", "nobody", "--json"]);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    let refused = json!([{"event_id": "done", "state": "done"}, {"event_id": "nobody", "state": null}]);
    assert_eq!(ended.json(), json!({"replayed": 1, "refused": refused}));
    assert!(ended.stderr.contains("event `done` is done, not DEAD"), "{ended:?}");
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

#[tokio::test]
async fn a_row_can_be_named_by_its_number_and_a_number_alone_says_how() {
    let (_folder, store) = outbox().await;
    let shown = dead(&store, &["show", "--seq", "3", "--json"]).json();
    assert_eq!((&shown["event_id"], &shown["state"]), (&"c".into(), &"dead".into()));
    let missing = dead(&store, &["show", "--seq", "99"]);
    assert!(missing.code == Some(1) && missing.stderr.contains("no row has the number 99"), "{missing:?}");
    for args in [&["show", "3"][..], &["replay", "3"], &["discard", "3"]] {
        let ended = dead(&store, args);
        assert_eq!(ended.code, Some(1), "{ended:?}");
        assert!(ended.stderr.contains("no event `3`") && ended.stderr.contains("`--seq 3`"), "{ended:?}");
    }
    assert_eq!(column(&store, STATES).await[..3], ["a 3", "b 3", "c 3"], "nothing was changed");

    let ended = dead(&store, &["replay", "--seq", "3,4", "--seq", "99", "--json"]);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    let refused = json!([{"seq": 4, "state": "done"}, {"seq": 99, "state": null}]);
    assert_eq!(ended.json(), json!({"replayed": 1, "refused": refused}));
    assert!(ended.stderr.contains("row 4 is done, not DEAD"), "{ended:?}");
    let ended = dead(&store, &["discard", "--seq", "1"]);
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(0), "1 row was discarded\n"));
    assert_eq!(column(&store, STATES).await, ["b 3", "c 0", "done 1", "new 0", "bytes 3"]);
    assert_eq!(dead(&store, &["replay", "a", "--seq", "3"]).code, Some(2), "one or the other");
}

/// Three events for two handlers, `mail` and `ledger`: given up by both, by one of them while it waits for the other, and by
/// none.
const FOR_HANDLERS: &str = "
    INSERT INTO outbox_event (event_id, event_type, ordering_key, handler, payload, status, attempts, done_at) VALUES
        ('both', 'order.placed', 'o-1', 'mail', '{}', 3, 10, 2000000),
        ('both', 'order.placed', 'o-1', 'ledger', '{}', 3, 10, 2000000),
        ('one', 'order.placed', 'o-2', 'mail', '{}', 3, 10, 2000000),
        ('one', 'order.placed', 'o-2', 'ledger', '{}', 0, 0, NULL),
        ('none', 'order.placed', 'o-3', 'mail', '{}', 1, 0, 2000000),
        ('none', 'order.placed', 'o-3', 'ledger', '{}', 1, 0, 2000000);
";

const STATES_FOR_HANDLERS: &str = "SELECT event_id || ' ' || handler || ' ' || status FROM outbox_event ORDER BY seq";

#[tokio::test]
async fn an_id_that_several_handlers_gave_up_asks_which_before_anything_is_changed() {
    for fate in ["replay", "discard"] {
        let (_folder, store) = sqlite();
        execute(&store, FOR_HANDLERS).await;
        let before = column(&store, STATES_FOR_HANDLERS).await;
        let ended = dead(&store, &[fate, "one", "both"]);
        assert_eq!((ended.code, ended.stdout.as_str()), (Some(1), ""), "{ended:?}");
        for part in ["event `both`", "`mail`, `ledger`", "`--handler NAME`", "`--every-handler`", "nothing was changed"]
        {
            assert!(ended.stderr.contains(part), "{part}: {ended:?}");
        }
        assert_eq!(column(&store, STATES_FOR_HANDLERS).await, before, "not even the one before it");

        let ended = dead(&store, &[fate, "one"]);
        assert_eq!(ended.stdout, format!("1 row was {fate}ed\n"), "one handler gave it up: {ended:?}");
        let ended = dead(&store, &[fate, "both", "none", "--handler", "ledger", "--json"]);
        assert_eq!(ended.code, Some(1), "{ended:?}");
        let refused = json!([{"event_id": "none", "handler": "ledger", "state": "done"}]);
        assert_eq!(ended.json(), json!({format!("{fate}ed"): 1, "refused": refused}));
        assert!(ended.stderr.contains("event `none` is done for handler `ledger`, not DEAD"), "{ended:?}");
        let after = column(&store, STATES_FOR_HANDLERS).await;
        let expected: &[&str] = match fate {
            "replay" => &["both mail 3", "both ledger 0", "one mail 0", "one ledger 0", "none mail 1", "none ledger 1"],
            _ => &["both mail 3", "one ledger 0", "none mail 1", "none ledger 1"],
        };
        assert_eq!(after, expected, "the other handlers' rows are left alone");
        let ended = dead(&store, &[fate, "both", "--handler", "nobody"]);
        assert!(ended.stderr.contains("there is no event `both` for handler `nobody`"), "{ended:?}");
    }
}

#[tokio::test]
async fn every_handler_is_taken_only_if_that_is_said() {
    let (_folder, store) = sqlite();
    execute(&store, FOR_HANDLERS).await;
    let ended = dead(&store, &["replay", "both", "one", "--every-handler", "--json"]);
    assert_eq!((ended.code, ended.json()), (Some(0), json!({"replayed": 3, "refused": []})), "rows are counted");
    let expected = ["both mail 0", "both ledger 0", "one mail 0", "one ledger 0", "none mail 1", "none ledger 1"];
    assert_eq!(column(&store, STATES_FOR_HANDLERS).await, expected);
    for other in [&["--handler", "mail"][..], &["--all"]] {
        let ended = dead("x.db", &[&["replay", "--every-handler"], other].concat());
        assert_eq!(ended.code, Some(2), "{ended:?}");
    }
}

#[tokio::test]
async fn rows_of_one_handler_are_listed_shown_and_taken_alone() {
    let (_folder, store) = sqlite();
    execute(&store, FOR_HANDLERS).await;
    let page = dead(&store, &["list", "--handler", "mail", "--json"]).json();
    assert_eq!((ids(&page), &page["matching"]), (vec!["both", "one"], &2.into()));
    let text = dead(&store, &["list", "--handler", "ledger"]).stdout;
    assert!(text.contains("ledger") && !text.contains("mail") && text.ends_with("1 of 1\n"), "{text}");
    let shown = dead(&store, &["show", "one", "--handler", "ledger", "--json"]).json();
    assert_eq!((&shown["handler"], &shown["state"]), (&"ledger".into(), &"new".into()));
    let missing = dead(&store, &["show", "one", "--handler", "nobody"]);
    assert_eq!(missing.code, Some(1));
    assert!(missing.stderr.contains("event `one` has no row for handler `nobody`"), "{missing:?}");
    let ended = dead(&store, &["discard", "--all", "--handler", "mail", "--yes"]);
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(0), "2 rows were discarded\n"));
    let expected = ["both ledger 3", "one ledger 0", "none mail 1", "none ledger 1"];
    assert_eq!(column(&store, STATES_FOR_HANDLERS).await, expected);
}

#[tokio::test]
async fn handlers_and_keys_are_columns_where_there_are_any() {
    let (_folder, store) = outbox().await;
    let heading = |args: &[&str]| {
        let text = dead(&store, &[&["list"], args].concat()).stdout;
        let heading = text.lines().next().unwrap().to_owned();
        (heading.contains(" KEY "), heading.contains(" HANDLER "))
    };
    assert_eq!(heading(&[]), (false, false));
    let rows = "
        INSERT INTO outbox_event (event_id, event_type, ordering_key, handler, payload, status, done_at) VALUES
            ('k', 'keyed', 'o-1', NULL, '{}', 3, 2000000),
            ('h', 'handled', NULL, 'mail', '{}', 3, 2000000);
    ";
    execute(&store, rows).await;
    assert_eq!(heading(&[]), (true, true));
    assert_eq!(heading(&["--limit", "4"]), (false, false), "the rows that are listed count");
    assert_eq!(heading(&["--event-type", "keyed"]), (true, false));
    assert_eq!(heading(&["--event-type", "handled"]), (false, true));
}

#[test]
fn a_change_without_ids_is_refused_and_says_how_to_take_all() {
    for fate in ["replay", "discard"] {
        for given in [&[][..], &["--tenant", "acme"]] {
            let ended = dead("x.db", &[&[fate], given].concat());
            assert_eq!(ended.code, Some(2), "{ended:?}");
            assert!(ended.stderr.contains("<EVENT_ID|--seq <SEQ>|--all>"), "{ended:?}");
        }
    }
}

#[tokio::test]
async fn all_that_match_are_taken_once_somebody_has_said_yes() {
    let (_folder, store) = outbox().await;
    let ended = dead(&store, &["replay", "--all", "--tenant", "acme"]);
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(1), ""), "nobody can be asked");
    assert!(ended.stderr.contains("deliver 2 rows again") && ended.stderr.contains("--yes"), "{ended:?}");

    let ended = dead(&store, &["replay", "--all", "--tenant", "acme", "--yes"]);
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(0), "2 rows were replayed\n"));
    assert_eq!(ended.stderr, "", "no progress bar where nobody watches");
    let ended = dead(&store, &["discard", "--all", "--event-type", "order.paid", "--yes", "--json"]);
    assert_eq!((ended.code, ended.json()), (Some(0), json!({"discarded": 1, "refused": []})));
    assert_eq!(column(&store, STATES).await, ["a 0", "b 0", "done 1", "new 0", "bytes 3"]);
    let ended = dead(&store, &["discard", "--all", "--tenant", "acme"]);
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(0), "0 rows were discarded\n"), "nothing to be asked about");
}
