//! The benches run on real databases and report every figure they promise. How fast they are is not tested here.

use crate::support::{column, connect, count, keys, mysql, run, run_async, with_mysql, with_postgres};
use mysql_async::prelude::Queryable as _;
use serde_json::Value;

const COMMON: [&str; 15] = [
    "bench",
    "client_cpu_us_per_event",
    "dead_tuples",
    "duplicates",
    "events",
    "events_per_s",
    "lost",
    "payload_bytes",
    "ratio",
    "seconds",
    "statements_per_event",
    "store",
    "verdicts",
    "wal_bytes_per_event",
    "yardstick_per_s",
];
const HOT: [&str; 6] =
    ["commit_to_handler_us", "done_within_1s", "write_only_per_s", "write_ratio", "writers", "written_per_s"];
const DRAIN: [&str; 6] = ["delete_done", "mode", "nodes", "rows_dead", "rows_delayed", "rows_done"];
const KEYS: [&str; 9] =
    ["delete_done", "keys", "mode", "nodes", "out_of_order", "rows_blocked", "rows_dead", "rows_delayed", "rows_done"];
const WRITE: [&str; 3] = ["business_only_per_s", "business_with_event_per_s", "write_ratio"];

fn assert_figures(bench: &str, report: &Value, own: &[&str]) {
    let mut expected: Vec<_> = COMMON.iter().chain(own).copied().collect();
    expected.sort_unstable();
    assert_eq!(keys(report), expected);
    assert_eq!(report["bench"], bench);
    assert_eq!(report["events"], 2_000);
    assert_eq!(report["payload_bytes"], 300);
    assert_eq!((&report["duplicates"], &report["lost"]), (&0.into(), &0.into()), "{report}");
    for key in expected {
        if let Some(figure) = report[key].as_f64() {
            assert!(figure.is_finite() && figure >= 0.0, "{key}: {report}");
        }
    }
}

const BENCHES: [(&str, &[&str]); 3] = [("write", &WRITE), ("hot", &HOT), ("drain", &DRAIN)];

#[test]
fn every_bench_reports_on_sqlite() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("bench.db");
    for (bench, own) in BENCHES {
        let store = file.to_str().unwrap();
        let ended = run(&["bench", bench, "--store", store, "--events", "2000", "--payload", "300", "--json"]);
        assert_eq!(ended.code, Some(0), "{ended:?}");
        assert_figures(bench, &ended.json(), own);
    }
}

#[tokio::test]
async fn every_bench_reports_on_postgres() {
    with_postgres(|url| async move {
        for (bench, own) in BENCHES {
            let args = ["bench", bench, "--store", &url, "--events", "2000", "--payload", "300", "--json"];
            let ended = run_async(&args).await;
            assert_eq!(ended.code, Some(0), "{ended:?}");
            assert_figures(bench, &ended.json(), own);
        }
        let ended = run_async(&["bench", "drain", "--store", &url, "--events", "100"]).await;
        assert_eq!(ended.code, Some(0), "{ended:?}");
        assert!(ended.stdout.contains("counted in the database"), "{ended:?}");
    })
    .await;
}

#[tokio::test]
async fn every_bench_reports_on_mysql() {
    with_mysql(|url| async move {
        for (bench, own) in BENCHES {
            let args = ["bench", bench, "--store", &url, "--events", "2000", "--payload", "300", "--json"];
            let ended = run_async(&args).await;
            assert_eq!(ended.code, Some(0), "{ended:?}");
            let report = ended.json();
            assert_figures(bench, &report, own);
            assert!(report["statements_per_event"].as_f64() > Some(0.0), "{report}");
        }
        let args = ["bench", "drain", "--store", &url, "--events", "100", "--mode", "multi_node", "--nodes", "2"];
        let ended = run_async(&[args.as_slice(), &["--done", "50", "--dead", "60", "--delayed", "70"]].concat()).await;
        assert_eq!(ended.code, Some(0), "{ended:?}");
        let rows: Vec<(i8, i64)> = mysql(&url)
            .await
            .query("SELECT status, COUNT(*) FROM pillarbox_bench_event GROUP BY status ORDER BY status")
            .await
            .unwrap();
        assert_eq!(rows, [(0, 70), (1, 150), (3, 60)]);
    })
    .await;
}

#[test]
fn how_a_run_went_is_told_on_request() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("bench.db");
    let store = file.to_str().unwrap();
    for (bench, done) in [("write", 0), ("hot", 2_000), ("drain", 2_000)] {
        let ended = run(&["bench", bench, "--store", store, "--events", "2000", "--json", "--samples"]);
        assert_eq!(ended.code, Some(0), "{ended:?}");
        let report = ended.json();
        let last = report["samples"].as_array().and_then(|samples| samples.last()).unwrap();
        assert_eq!(keys(last), ["backlog", "dead_tuples", "done", "seconds", "wal_bytes", "written"]);
        assert_eq!(
            (&last["written"], &last["done"], &last["backlog"]),
            (&2_000.into(), &done.into(), &(2_000 - done).into())
        );
    }
    let ended = run(&["bench", "write", "--store", store, "--samples"]);
    assert_eq!(ended.code, Some(2), "they would drown the text: {ended:?}");
}

#[tokio::test]
async fn a_drain_by_several_nodes_leaves_bystanders_alone() {
    let args = ["--events", "2000", "--payload", "300", "--json", "--done", "50", "--dead", "60", "--delayed", "70"];
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("bench.db").to_str().unwrap().to_owned();
    for mode in ["single_node", "multi_node", "ordered"] {
        let ended =
            run(&[&["bench", "drain", "--nodes", "2", "--store", &file, "--mode", mode], args.as_slice()].concat());
        assert_eq!(ended.code, Some(0), "{ended:?}");
        let report = ended.json();
        assert_figures("drain", &report, &DRAIN);
        assert_eq!((&report["mode"], &report["nodes"]), (&mode.into(), &2.into()));
        assert_eq!((&report["rows_done"], &report["rows_delayed"]), (&50.into(), &70.into()));
        assert_eq!(report["rows_dead"], 60);
    }
    let bystanders = "SELECT status || ' ' || count(*) FROM pillarbox_bench_event WHERE event_type = 'bench.bystander'
                      GROUP BY status ORDER BY status";
    assert_eq!(column(&file, bystanders).await, ["0 70", "1 50", "3 60"]);

    with_postgres(|url| async move {
        let args = ["bench", "drain", "--store", &url, "--mode", "multi_node", "--nodes", "2", "--events", "2000"];
        let args = [args.as_slice(), &["--done", "50", "--dead", "60", "--delayed", "70", "--json"]].concat();
        let ended = run_async(&args).await;
        assert_eq!(ended.code, Some(0), "{ended:?}");
        let report = ended.json();
        assert_eq!((&report["duplicates"], &report["lost"]), (&0.into(), &0.into()), "{report}");
        let (client, _connection) = connect(&url).await;
        let delayed = "SELECT count(*) FROM pillarbox_bench_event WHERE status = 0 AND available_at > now()";
        assert_eq!(count(&client, delayed).await, 70);
        assert_eq!(count(&client, "SELECT count(*) FROM pillarbox_bench_event WHERE status = 1").await, 2_050);
        assert_eq!(count(&client, "SELECT count(*) FROM pillarbox_bench_event WHERE status = 3").await, 60);
    })
    .await;
}

#[tokio::test]
async fn a_drain_in_order_passes_by_a_key_that_is_blocked() {
    let args = ["bench", "drain", "--mode", "partitioned", "--events", "2000", "--payload", "300", "--keys", "100"];
    let args =
        [args.as_slice(), &["--blocked", "1500", "--delayed", "70", "--nodes", "2", "--json", "--store"]].concat();
    let check = |report: &Value, delete_done: bool| {
        assert_figures("drain", report, &KEYS);
        assert_eq!((&report["mode"], &report["nodes"]), (&"partitioned".into(), &2.into()));
        assert_eq!((&report["keys"], &report["rows_blocked"]), (&100.into(), &1_500.into()));
        assert_eq!((&report["out_of_order"], &report["delete_done"]), (&0.into(), &delete_done.into()), "{report}");
    };
    let left = "SELECT event_type || ' ' || status || ' ' || attempts || ' ' || count(*) FROM pillarbox_bench_event
                GROUP BY event_type, status, attempts ORDER BY status, attempts";
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("bench.db").to_str().unwrap().to_owned();
    let ended = run(&[args.as_slice(), &[&file]].concat());
    assert_eq!(ended.code, Some(0), "{ended:?}");
    check(&ended.json(), false);
    // The one that fails has failed once, and those behind it have not been touched.
    let bystanders = ["bench.bystander 0 0 1570", "bench.event 1 0 2000", "bench.bystander 2 1 1"];
    assert_eq!(column(&file, left).await, bystanders);

    with_postgres(|url| async move {
        let ended = run_async(&[args.as_slice(), &[&url, "--delete-done"]].concat()).await;
        assert_eq!(ended.code, Some(0), "{ended:?}");
        check(&ended.json(), true);
        let (client, _connection) = connect(&url).await;
        let rows = client.query(left, &[]).await.unwrap();
        let rows: Vec<String> = rows.iter().map(|row| row.get(0)).collect();
        assert_eq!(rows, ["bench.bystander 0 0 1570", "bench.bystander 2 1 1"], "what is delivered is gone");
    })
    .await;
}
