//! An outbox is examined: the exit code says whether anything was found, and each finding has its cause, its evidence and its remedy.

use serde_json::Value;

use crate::support::{connect, execute, keys, run, run_async, send, sqlite, with_postgres};

fn codes(report: &Value) -> Vec<&str> {
    report["findings"].as_array().unwrap().iter().map(|finding| finding["code"].as_str().unwrap()).collect()
}

/// A node of mode `partitioned` whose lease ends in years, and which owns all partitions.
const NODE: &str = r#"
    INSERT INTO outbox_node (node_id, mode, started_at, expires_at, figures)
    VALUES ('shop-1', 'partitioned', 1000000, (unixepoch() + 3600) * 1000000, '{"delivered":0,"failed":0,"dead":0,"busy":0,"queued":0}');
    UPDATE outbox_partition SET node_id = 'shop-1';
"#;

#[tokio::test]
async fn the_exit_code_says_whether_anything_was_found() {
    let (_folder, store) = sqlite();
    let doctor = |args: &[&str]| run(&[&["doctor", "--store", &store], args].concat());
    let ended = doctor(&["--json"]);
    let report = ended.json();
    assert_eq!(
        (ended.code, codes(&report), &report["healthy"]),
        (Some(1), vec!["no-node"], &Value::Bool(false)),
        "{report}"
    );
    let finding = &report["findings"][0];
    assert_eq!(
        keys(finding),
        ["cause", "code", "command", "evidence", "more", "remedy", "severity", "subject"],
        "the form is a contract"
    );
    assert_eq!(keys(&report), ["findings", "healthy", "ignored", "not_checked", "passed", "seconds"]);
    assert_eq!((&finding["evidence"], &finding["severity"]), (&"no node is registered".into(), &"critical".into()));
    let text = doctor(&[]).stdout;
    for part in ["CRITICAL  no-node", "evidence  no node is registered", "remedy    Start", "docs/doctor.md#no-node"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(!text.contains("a node is alive") && !text.contains("the database answers"), "{text}");
    assert!(doctor(&["--verbose"]).stdout.contains("the database answers"));

    let ended = doctor(&["--ignore", "no-node"]);
    assert!(ended.code == Some(0) && ended.stdout.contains("1 ignored"), "{ended:?}");
    execute(&store, NODE).await;
    let ended = doctor(&[]);
    assert!(ended.code == Some(0) && ended.stdout.starts_with("0 findings"), "{ended:?}");
}

#[tokio::test]
async fn findings_common_to_all_stores_are_reported() {
    let (_folder, store) = sqlite();
    execute(&store, NODE).await;
    let doctor = |args: &[&str]| run(&[&["doctor", "--store", &store, "--json"], args].concat()).json();
    assert_eq!(codes(&doctor(&[])), Vec::<&str>::new());
    execute(
        &store,
        "INSERT INTO outbox_event (event_id, event_type, ordering_key, payload, status, attempts, last_error, done_at, created_at)
         VALUES ('d1', 'order.placed', 'k', '{}', 3, 10, 'secret', 2000000, 1000000);
         INSERT INTO outbox_event (event_id, event_type, ordering_key, payload, created_at, locked_by)
         VALUES ('d2', 'order.paid', 'k', '{}', 1000000, 'shop-1');",
    )
    .await;
    let report = doctor(&[]);
    let mut found = codes(&report);
    found.sort_unstable();
    assert_eq!(found, ["dead-events", "event-held", "events-late", "keys-blocked"], "{report}");
    assert!(!report.to_string().contains("secret"), "errors may quote a payload");
    assert!(!codes(&doctor(&["--dead", "2"])).contains(&"dead-events"), "thresholds are options");
    assert!(!codes(&doctor(&["--lag-after", "36500d"])).contains(&"events-late"));
    assert!(!codes(&doctor(&["--held-after", "36500d"])).contains(&"event-held"));
    execute(
        &store,
        "DELETE FROM outbox_event; UPDATE outbox_partition SET node_id = NULL WHERE partition < 56;
         INSERT INTO outbox_node (node_id, mode, started_at, expires_at) VALUES ('shop-2', 'partitioned', 1000000, 2000000);",
    )
    .await;
    let report = doctor(&[]);
    assert_eq!(codes(&report), ["partitions-unowned", "lease-ended"], "{report}");
    assert!(report["findings"][1]["evidence"].as_str().unwrap().starts_with("shop-2 until"), "{report}");
    execute(&store, "DELETE FROM outbox_migration").await;
    assert!(codes(&doctor(&[])).contains(&"schema-version"));
}

/// An index that a newer release has taken away is not to be put back.
#[tokio::test]
async fn beside_tables_of_another_version_no_index_of_this_release_is_offered() {
    for (version, index) in [("99, 99", true), ("99, 99", false), ("5, 4", false)] {
        let (_folder, store) = sqlite();
        let versions = if version.starts_with('5') { "DELETE FROM outbox_migration;" } else { "" };
        let drop = if index { "DROP INDEX outbox_event_dead;" } else { "" };
        execute(
            &store,
            &format!(
                "{NODE} {versions} {drop} INSERT OR REPLACE INTO outbox_migration (version, applied_at, compatible_from)
                 SELECT column1, 0, column2 FROM (VALUES ({version}))"
            ),
        )
        .await;
        let report = run(&["doctor", "--store", &store, "--json"]).json();
        assert_eq!(codes(&report), ["schema-version"], "{report}");
        let not_checked = report["not_checked"].as_array().unwrap();
        assert!(not_checked.iter().any(|check| check["code"] == "sqlite-index-missing"), "{report}");
    }
}

#[tokio::test]
async fn events_that_nobody_takes_are_found_with_their_types() {
    let (_folder, store) = sqlite();
    execute(&store, NODE).await;
    // 20 of seven types that were met, and one of another error.
    execute(
        &store,
        "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20)
         INSERT INTO outbox_event (event_id, event_type, payload, status, last_error, available_at, created_at)
         SELECT 'u' || i, 'type.' || (i % 7), '{}', 2, 'no route takes event type `type.' || (i % 7) || '`', (unixepoch() + 3600) * 1000000, 1000000 FROM n;
         INSERT INTO outbox_event (event_id, event_type, payload, status, last_error, available_at, created_at)
         VALUES ('other', 'mail', '{}', 2, 'no route to host', (unixepoch() + 3600) * 1000000, 1000000);",
    )
    .await;
    let report = run(&["doctor", "--store", &store, "--json"]).json();
    assert_eq!(codes(&report), ["events-unrouted"], "{report}");
    let told = "events: 20, of type `type.0`, `type.1`, `type.2`, `type.3`, `type.4` and 2 others; the first is row 1: no route takes";
    assert!(report["findings"][0]["evidence"].as_str().unwrap().starts_with(told), "{report}");
    execute(&store, "DELETE FROM outbox_event WHERE event_type <> 'mail'").await;
    assert_eq!(codes(&run(&["doctor", "--store", &store, "--json"]).json()), [""; 0]);
}

/// A writer that takes nanoseconds for microseconds puts its events off for fifty thousand years.
#[tokio::test]
async fn events_that_wait_for_a_time_far_away_are_found() {
    let (_folder, store) = sqlite();
    execute(&store, NODE).await;
    execute(
        &store,
        "INSERT INTO outbox_event (event_id, event_type, payload, available_at, created_at) VALUES
            ('soon', 'order.placed', '{}', (unixepoch() + 30 * 86400) * 1000000, 1000000),
            ('never', 'order.paid', '{}', unixepoch() * 1000000000, 1000000);",
    )
    .await;
    let report = run(&["doctor", "--store", &store, "--json"]).json();
    assert_eq!(codes(&report), ["event-far-ahead"], "{report}");
    let evidence = report["findings"][0]["evidence"].as_str().unwrap();
    assert!(
        evidence.starts_with("of the 2 oldest pending events: 1; row 2, of type `order.paid`, is due at "),
        "{evidence}"
    );
}

#[tokio::test]
async fn pauses_and_missed_renewals_are_found_with_their_figures() {
    let (_folder, store) = sqlite();
    execute(&store, NODE).await;
    let doctor = || run(&["doctor", "--store", &store, "--json"]).json();
    let evidence = |report: &Value, code: &str| {
        let finding = report["findings"].as_array().unwrap().iter().find(|finding| finding["code"] == code);
        finding.unwrap_or_else(|| panic!("no {code}: {report}"))["evidence"].as_str().unwrap().to_owned()
    };
    assert_eq!(run(&["pause", "--store", &store, "type", "order.paid"]).code, Some(0));
    assert_eq!(codes(&doctor()), Vec::<&str>::new(), "it holds nothing");
    execute(
        &store,
        "INSERT INTO outbox_event (event_id, event_type, payload, created_at) VALUES ('d1', 'order.paid', '{}', 1000000);
         UPDATE outbox_node SET figures = '{\"delivered\":9,\"failed\":0,\"dead\":0,\"busy\":3,\"queued\":70}';",
    )
    .await;
    let report = doctor();
    assert!(evidence(&report, "paused").starts_with(
        "due events that are held: 1, and what waits behind them in their keys; the type order.paid is paused since 20"
    ));
    let late = evidence(&report, "events-late");
    assert!(late.ends_with("living nodes: 1; calls that run: 3; events in the memory of nodes: 70"), "{late}");
    run(&["resume", "--store", &store, "type", "order.paid"]);
    // A node of a release that records no figures, and so knows no pauses.
    execute(&store, "DELETE FROM outbox_event; UPDATE outbox_node SET figures = NULL").await;
    let report = doctor();
    assert_eq!(codes(&report), ["node-of-an-earlier-release"], "{report}");
    let paused = run(&["pause", "--store", &store, "type", "order.paid"]);
    assert!(paused.stderr.contains("knows no pauses go on until they are replaced: shop-1"), "{paused:?}");
    execute(&store, "INSERT INTO outbox_event (event_id, event_type, payload) VALUES ('held', 'order.paid', '{}')")
        .await;
    let cancelled = run(&["pending", "cancel", "--store", &store, "held"]);
    assert!(cancelled.stderr.contains("may still deliver what they have in memory"), "{cancelled:?}");
    execute(&store, "DELETE FROM outbox_pause; UPDATE outbox_node SET figures = '{\"delivered\":9,\"failed\":0,\"dead\":0,\"busy\":3,\"queued\":70}'").await;
    let soon = "UPDATE outbox_node SET lease = 3600000000, expires_at = CAST(strftime('%s', 'now') AS INTEGER) * 1000000 + 1500000000";
    execute(&store, &format!("DELETE FROM outbox_event; {soon};")).await;
    let report = doctor();
    assert_eq!(codes(&report), ["renewal-overdue"], "{report}");
    assert!(evidence(&report, "renewal-overdue").starts_with("shop-1 until 20"));
}

#[tokio::test]
async fn a_database_that_is_away_is_a_finding_and_a_wrong_address_is_not() {
    // Nobody listens on port 1.
    let ended = run(&["doctor", "--store", "postgres://app:s3cret@127.0.0.1:1/shop", "--json"]);
    let report = ended.json();
    assert_eq!((ended.code, codes(&report)), (Some(1), vec!["database-unreachable"]), "{report}");
    assert!(!ended.stdout.contains("s3cret"), "{ended:?}");
    let ended = run(&["doctor", "--store", "oracle://shop"]);
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(2), ""), "{ended:?}");
}

#[tokio::test]
async fn a_watch_tells_of_changes_and_ends_with_the_last_result() {
    let (_folder, store) = sqlite();
    let mut command = crate::support::pillarbox(&["doctor", "--store", &store, "--watch", "50ms"]);
    let mut process = command.spawn().unwrap();
    let mut lines = std::io::BufRead::lines(std::io::BufReader::new(process.stdout.take().unwrap()));
    let mut until = |part: &str| {
        lines.find(|line| line.as_ref().unwrap().contains(part)).unwrap_or_else(|| panic!("{part} never came")).unwrap()
    };
    until("CRITICAL  no-node");
    execute(&store, NODE).await;
    let gone = until("GONE");
    assert!(gone.contains("no-node"), "{gone}");
    send("-TERM", &process);
    assert_eq!(process.wait().unwrap().code(), Some(0));
}

/// A server for tests may have it switched off.
const AUTOVACUUM: [&str; 2] = ["--ignore", "postgres-autovacuum-off"];

#[tokio::test]
async fn a_server_that_tells_of_no_locks_is_found() {
    with_postgres(|url| async move {
        assert_eq!(run_async(&["migrate", "--store", &url]).await.code, Some(0));
        let (client, _connection) = connect(&url).await;
        let hide = "CREATE VIEW public.pg_locks AS SELECT * FROM pg_catalog.pg_locks WHERE false";
        client.batch_execute(hide).await.unwrap();
        let separator = if url.contains('?') { '&' } else { '?' };
        let disguised = format!("{url}{separator}options=-c%20search_path%3Dpublic%2Cpg_catalog");
        let ended =
            run_async(&[&["doctor", "--store", &disguised, "--json", "--ignore", "no-node"][..], &AUTOVACUUM].concat())
                .await;
        let report = ended.json();
        assert_eq!((ended.code, codes(&report)), (Some(1), vec!["server-unsuitable"]), "{report}");
        assert!(report["findings"][0]["evidence"].as_str().unwrap().contains("`PostgreSQL"), "{report}");
    })
    .await;
}

#[tokio::test]
async fn a_snapshot_that_is_held_on_postgresql_is_found_with_its_session() {
    with_postgres(|url| async move {
        assert_eq!(run_async(&["migrate", "--store", &url]).await.code, Some(0));
        let (client, _connection) = connect(&url).await;
        client.batch_execute("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 'secret'").await.unwrap();
        let doctor = async |args: &[&str]| {
            let ended = run_async(
                &[&["doctor", "--store", &url, "--json", "--ignore", "no-node"][..], &AUTOVACUUM, args].concat(),
            )
            .await;
            (ended.code, ended.json())
        };
        let (code, report) = doctor(&["--pinned-after", "0s"]).await;
        assert_eq!((code, codes(&report)), (Some(1), vec!["postgres-snapshot-pinned"]), "{report}");
        let evidence = report["findings"][0]["evidence"].as_str().unwrap();
        assert!(evidence.starts_with("pid ") && !evidence.contains("secret"), "{evidence}");
        let (code, report) = doctor(&[]).await;
        assert_eq!(code, Some(0), "it is not old: {report}");
    })
    .await;
}
