//! What the relay delivers: every event as one line, to stdout and to files, alone and beside others.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::sync::mpsc;
use std::time::Duration;

use serde_json::{Value, json};

use crate::support::{
    column, connect, count, end_of, execute, pillarbox, run, run_async, send, sqlite, wait_until, with_postgres,
};

const ROWS: &str = r#"
    INSERT INTO outbox_event (event_id, event_type, aggregate_type, aggregate_id, tenant_id, payload, headers) VALUES
        ('full', 'order.placed', 'order', 'o-1', 'acme', '{"b":1,  "a":"é\n"}', '{"source":"checkout"}');
    INSERT INTO outbox_event (event_id, event_type, payload) VALUES ('plain', 'ping', ' 1e400');
    INSERT INTO outbox_event (event_id, event_type, payload_bytes, content_type) VALUES
        ('bytes', 'photo.taken', x'00ff01', 'image/x');
"#;
const STATES: &str = "SELECT event_id || ' ' || status || ' ' || attempts FROM outbox_event ORDER BY seq";

fn lines(text: &str) -> Vec<Value> {
    assert!(text.is_empty() || text.ends_with('\n'), "the last line is whole: {text}");
    text.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"))).collect()
}

fn lines_of(file: &Path) -> Vec<Value> {
    lines(&std::fs::read_to_string(file).unwrap())
}

fn ids(lines: &[Value]) -> Vec<&str> {
    lines.iter().map(|line| line["event_id"].as_str().unwrap()).collect()
}

/// How often each event was written.
fn calls(lines: &[Value]) -> BTreeMap<&str, u32> {
    let mut calls = BTreeMap::new();
    ids(lines).into_iter().for_each(|id| *calls.entry(id).or_default() += 1);
    calls
}

/// Inserts events `1` to `events`, with the least that another program has to say.
fn insert(events: u32) -> String {
    format!(
        "INSERT INTO outbox_event (event_id, event_type, payload) SELECT n, 't', '{{}}' FROM generate_series(1, {events}) n"
    )
}

/// It ends as it was asked to, with events left that it had taken into memory.
#[tokio::test]
async fn a_limit_that_is_reached_is_no_timeout() {
    let (_folder, store) = sqlite();
    execute(&store, ROWS).await;
    let ended = run(&["relay", "--store", &store, "--limit", "1"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(!ended.stderr.contains("timeout") && !ended.stderr.contains("WARN"), "{ended:?}");
    assert!(ended.stderr.contains("the outbox has stopped"), "{ended:?}");
}

#[tokio::test]
async fn each_event_is_one_line_with_exactly_the_documented_fields() {
    let (_folder, store) = sqlite();
    execute(&store, ROWS).await;
    let ended = run(&["relay", "--store", &store, "--mode", "ordered", "--node-name", "here", "--limit", "3"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let mut lines = lines(&ended.stdout);
    for line in &mut lines {
        let node = line["node"].take();
        assert!(node.as_str().unwrap().starts_with("here-"), "{line}");
    }
    let rest = json!({"aggregate_type": "__GLOBAL__", "aggregate_id": null, "tenant_id": null, "key": null, "headers": {},
                      "attempt": 1, "node": null});
    let with = |own: Value| {
        let mut line = rest.clone();
        line.as_object_mut().unwrap().extend(own.as_object().unwrap().clone());
        line
    };
    let expected = [
        with(json!({"event_id": "full", "seq": 1, "event_type": "order.placed", "aggregate_type": "order",
                    "aggregate_id": "o-1", "tenant_id": "acme", "key": "o-1", "headers": {"source": "checkout"},
                    "payload": "{\"b\":1,  \"a\":\"é\\n\"}"})),
        with(json!({"event_id": "plain", "seq": 2, "event_type": "ping", "payload": " 1e400"})),
        with(json!({"event_id": "bytes", "seq": 3, "event_type": "photo.taken", "payload_base64": "AP8B",
                    "content_type": "image/x"})),
    ];
    assert_eq!(lines, expected);
    assert_eq!(column(&store, STATES).await, ["full 1 0", "plain 1 0", "bytes 1 0"]);
    let nodes = column(&store, "SELECT CAST(count(*) AS TEXT) FROM outbox_node").await;
    assert_eq!(nodes, ["0"], "it has left");
}

/// Services with named handlers and relays share the contract: a row for a handler is a line like any other, and says so.
#[tokio::test]
async fn rows_for_handlers_are_lines_that_name_them() {
    let (_folder, store) = sqlite();
    let rows = "INSERT INTO outbox_event (event_id, event_type, handler, payload)
                VALUES ('e', 't', 'mailer', '1'), ('e', 't', 'ledger', '2')";
    execute(&store, rows).await;
    let ended = run(&["relay", "--store", &store, "--mode", "ordered", "--limit", "2"]);
    let lines = lines(&ended.stdout);
    let handlers: Vec<_> = lines.iter().map(|line| (&line["event_id"], &line["handler"], &line["payload"])).collect();
    assert_eq!(handlers, [(&json!("e"), &json!("mailer"), &json!("1")), (&json!("e"), &json!("ledger"), &json!("2"))]);
    assert_eq!(column(&store, STATES).await, ["e 1 0", "e 1 0"]);
}

#[tokio::test]
async fn a_file_is_appended_to_and_the_limit_is_exact() {
    let (folder, store) = sqlite();
    let numbers = "WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < 500)
                   INSERT INTO outbox_event (event_id, event_type, payload) SELECT n, 't', '{}' FROM numbers";
    execute(&store, numbers).await;
    let file = folder.path().join("events.jsonl");
    let to = format!("file:{}", file.display());
    for (mode, limit, written) in
        [("single_node", 7, 7), ("multi_node", 100, 107), ("ordered", 1, 108), ("partitioned", 40, 148)]
    {
        let text = limit.to_string();
        let args = ["relay", "--store", &store, "--to", &to, "--mode", mode, "--limit", &text, "--fsync", "--json"];
        let ended = run(&args);
        assert_eq!((ended.code, ended.json()), (Some(0), json!({"lines": limit})), "{ended:?}");
        let lines = lines_of(&file);
        assert_eq!((lines.len(), calls(&lines).len()), (written, written), "{mode}: none twice");
        let done = column(&store, "SELECT event_id FROM outbox_event WHERE status = 1").await;
        assert_eq!(done.len(), written, "{mode}: what was written is settled, and nothing else");
        let touched = "SELECT event_id FROM outbox_event WHERE status <> 1 AND (status <> 0 OR attempts <> 0
                       OR available_at IS NOT NULL OR locked_by IS NOT NULL)";
        assert!(column(&store, touched).await.is_empty(), "{mode}: the others are as they were");
    }
}

#[test]
fn invalid_options_are_refused_before_anything_is_delivered() {
    let (folder, store) = sqlite();
    let here = folder.path().display();
    let missing = format!("file:{here}/missing/events.jsonl");
    let table: [(&[&str], i32, &str); 6] = [
        (&["--to", &missing], 1, "could not open"),
        (&["--mode", "ordered", "--workers", "4"], 2, "`--workers`"),
        (&["--mode", "multi_node", "--failing-key", "continue"], 2, "`--failing-key`"),
        (&["--node-name", "a b"], 2, "`--node-name`"),
        (&["--lease", "1ms"], 2, "`--lease`"),
        (&["--wake-up"], 2, "`--wake-up`"),
    ];
    for (args, code, word) in table {
        let ended = run(&[&["relay", "--store", &store], args].concat());
        assert_eq!(ended.code, Some(code), "{args:?}: {ended:?}");
        assert_eq!(ended.stderr.lines().count(), 1, "one sentence: {ended:?}");
        assert!(ended.stderr.contains(word) && ended.stdout.is_empty(), "{args:?}: {ended:?}");
    }
}

/// A relay says on stderr what it does, whether `RUST_LOG` is not set or empty.
#[tokio::test]
async fn a_relay_says_whether_it_delivers_or_stands_by() {
    let (folder, store) = sqlite();
    let launch = |name: &str| {
        let to = format!("file:{}", folder.path().join("events.jsonl").display());
        let mut relay = pillarbox(&["relay", "--store", &store, "--node-name", name, "--to", &to]);
        let mut relay = relay.env("RUST_LOG", "").spawn().unwrap();
        let (told, lines) = mpsc::channel();
        let said = BufReader::new(relay.stderr.take().unwrap()).lines();
        std::thread::spawn(move || said.map_while(Result::ok).try_for_each(|line| told.send(line)));
        let until = move |part: &str| loop {
            let line = lines.recv_timeout(Duration::from_secs(60)).unwrap_or_else(|_| panic!("{part} is not said"));
            if line.contains(part) {
                return line;
            }
        };
        (relay, until)
    };
    let (first, first_says) = launch("first");
    first_says("this node delivers");
    let (second, second_says) = launch("second");
    assert!(second_says("standing by").contains("first-"), "it says for whom");
    send("-TERM", &first);
    first_says("the outbox has stopped");
    assert_eq!(end_of(first).await.code, Some(0));
    second_says("this node delivers");
    assert_eq!(run(&["pause", "--store", &store, "type", "ping"]).code, Some(0));
    execute(&store, "INSERT INTO outbox_event (event_id, event_type, payload) VALUES ('p', 'ping', '{}')").await;
    second_says("an operator has paused a type");
    assert_eq!(run(&["resume", "--store", &store, "type", "ping"]).code, Some(0));
    second_says("is resumed");
    send("-TERM", &second);
    assert_eq!(end_of(second).await.code, Some(0));
}

#[tokio::test]
async fn three_nodes_share_the_events_of_one_table() {
    with_postgres(|url| async move {
        assert_eq!(run_async(&["migrate", "--store", &url]).await.code, Some(0));
        let (client, _connection) = connect(&url).await;
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("events.jsonl");
        let to = format!("file:{}", file.display());
        let relays = ["a", "b", "c"].map(|name| {
            let args = ["relay", "--store", &url, "--to", &to, "--mode", "multi_node", "--node-name", name];
            pillarbox(&[args.as_slice(), &["--delay", "2ms", "--workers", "8"]].concat()).spawn().unwrap()
        });
        wait_until(&client, "SELECT count(*) = 3 FROM outbox_node").await;
        // A node that gets no processor for a while leaves one backlog to the others, but not each.
        let (mut written, mut nodes) = (0, BTreeSet::new());
        while nodes.len() < 3 {
            assert!(written < 30_000, "each node delivers: {nodes:?}");
            let insert = format!(
                "INSERT INTO outbox_event (event_id, event_type, payload)
                 SELECT n, 't', '{{}}' FROM generate_series({written} + 1, {written} + 3000) n"
            );
            client.batch_execute(&insert).await.unwrap();
            written += 3_000;
            wait_until(&client, &format!("SELECT count(*) = {written} FROM outbox_event WHERE status = 1")).await;
            nodes = lines_of(&file).iter().map(|line| line["node"].as_str().unwrap().to_owned()).collect();
        }
        for relay in relays {
            send("-INT", &relay);
            let ended = end_of(relay).await;
            assert_eq!(ended.code, Some(0), "{ended:?}");
        }
        let lines = lines_of(&file);
        assert_eq!((lines.len(), calls(&lines).len()), (written, written), "each once");
        assert_eq!(count(&client, "SELECT count(*) FROM outbox_node").await, 0);
    })
    .await;
}

#[tokio::test]
async fn ordered_keeps_the_order_of_the_table() {
    with_postgres(|url| async move {
        assert_eq!(run_async(&["migrate", "--store", &url]).await.code, Some(0));
        let (client, _connection) = connect(&url).await;
        client.batch_execute(&insert(2_000)).await.unwrap();
        let ended = run_async(&["relay", "--store", &url, "--mode", "ordered", "--limit", "2000"]).await;
        assert_eq!(ended.code, Some(0), "{ended:?}");
        let seqs: Vec<_> = lines(&ended.stdout).iter().map(|line| line["seq"].as_i64().unwrap()).collect();
        assert_eq!(seqs.len(), 2_000);
        assert!(seqs.is_sorted(), "{seqs:?}");
    })
    .await;
}

#[tokio::test]
async fn partitioned_keeps_the_order_of_each_key_across_nodes() {
    with_postgres(|url| async move {
        assert_eq!(run_async(&["migrate", "--store", &url]).await.code, Some(0));
        let (client, _connection) = connect(&url).await;
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("events.jsonl");
        let to = format!("file:{}", file.display());
        let launch = |name| {
            let args = ["relay", "--store", &url, "--to", &to, "--mode", "partitioned", "--node-name", name];
            pillarbox(&[args.as_slice(), &["--delay", "2ms", "--delete-done"]].concat()).spawn().unwrap()
        };
        let keyed = "INSERT INTO outbox_event (event_id, event_type, payload, ordering_key)
                     SELECT n, 't', '{}', n % 50 FROM generate_series(1, 6000) n";
        client.batch_execute(keyed).await.unwrap();
        let first = launch("first");
        wait_until(&client, "SELECT count(*) < 5900 FROM outbox_event").await;
        let second = launch("second");
        wait_until(&client, "SELECT count(*) = 0 FROM outbox_event").await;
        for relay in [first, second] {
            send("-TERM", &relay);
            let ended = end_of(relay).await;
            assert_eq!(ended.code, Some(0), "{ended:?}");
        }
        let lines = lines_of(&file);
        assert_eq!((lines.len(), calls(&lines).len()), (6_000, 6_000), "each once");
        let mut last = BTreeMap::new();
        for line in &lines {
            let seq = line["seq"].as_i64().unwrap();
            let before = last.insert(line["key"].as_str().unwrap(), seq);
            assert!(before.is_none_or(|before| before < seq), "{line}");
        }
        let mut nodes: Vec<_> = lines.iter().map(|line| line["node"].as_str().unwrap()).collect();
        nodes.sort_unstable();
        nodes.dedup();
        assert_eq!(nodes.len(), 2, "each node has delivered: {nodes:?}");
    })
    .await;
}

#[tokio::test]
async fn lines_that_take_long_are_waited_for_when_partitions_change_hands() {
    with_postgres(|url| async move {
        assert_eq!(run_async(&["migrate", "--store", &url]).await.code, Some(0));
        let (client, _connection) = connect(&url).await;
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("events.jsonl");
        let to = format!("file:{}", file.display());
        let launch = |name, delay| {
            let args = ["relay", "--store", &url, "--to", &to, "--mode", "partitioned", "--node-name", name];
            pillarbox(&[args.as_slice(), &["--delay", delay]].concat()).spawn().unwrap()
        };
        client.batch_execute(&insert(32)).await.unwrap();
        let first = launch("first", "2s");
        wait_until(&client, "SELECT count(*) = 1 FROM outbox_node").await;
        while std::fs::read_to_string(&file).unwrap_or_default().lines().count() < 32 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        // All are under way when the second asks for its half.
        let second = launch("second", "0s");
        let shared =
            "SELECT count(*) = 2 FROM (SELECT node_id FROM outbox_partition GROUP BY 1 HAVING count(*) = 128) n";
        wait_until(&client, shared).await;
        wait_until(&client, "SELECT count(*) = 32 FROM outbox_event WHERE status = 1").await;
        for relay in [first, second] {
            send("-TERM", &relay);
            assert_eq!(end_of(relay).await.code, Some(0));
        }
        assert_eq!(lines_of(&file).len(), 32, "none was delivered again");
    })
    .await;
}

#[tokio::test]
async fn modes_that_cannot_coexist_refuse_to_start_together() {
    with_postgres(|url| async move {
        assert_eq!(run_async(&["migrate", "--store", &url]).await.code, Some(0));
        let (client, _connection) = connect(&url).await;
        let relay = pillarbox(&["relay", "--store", &url, "--mode", "multi_node"]).spawn().unwrap();
        wait_until(&client, "SELECT count(*) = 1 FROM outbox_node").await;
        let ended = run_async(&["relay", "--store", &url, "--mode", "ordered"]).await;
        assert_eq!(ended.code, Some(1), "{ended:?}");
        assert!(ended.stderr.contains("multi_node"), "it says which: {ended:?}");
        send("-TERM", &relay);
        assert_eq!(end_of(relay).await.code, Some(0));
    })
    .await;
}
