//! Benches that write and deliver at once.

use crate::figures::{COMMON, assert_keys, without_yardstick};
use crate::support::{Ended, column, connect, count, keys, run, run_async, with_mysql, with_postgres};
use serde_json::Value;

const STEADY: [&str; 8] =
    ["cold", "commit_to_handler_us", "done_within_1s", "mode", "nodes", "rate", "writers", "written_per_s"];
const LATENCY: [&str; 8] = [
    "delivered_us",
    "foreign_look_every_ms",
    "foreign_us",
    "hot_us",
    "other_node_is_woken",
    "other_node_us",
    "rate",
    "writers",
];
const MIXED: [&str; 8] = [
    "backlog_s",
    "commit_to_handler_us",
    "delivered_per_s",
    "mode",
    "write_only_per_s",
    "write_ratio",
    "writers",
    "written_per_s",
];

const PACE: [&str; 4] = ["--rate", "200", "--seconds", "1"];

fn steady(url: &str, cold: bool) -> Vec<&str> {
    let mut args = vec!["steady", "--store", url, "--writers", "3", "--json", "--samples"];
    args.extend(PACE);
    if cold {
        args.extend(["--cold", "--mode", "partitioned", "--nodes", "2"]);
    }
    args
}

/// On a busy machine a verdict may well be that the rate was not met; then the exit code has to say so.
fn assert_steady(ended: &Ended, cold: bool) {
    let report = ended.json();
    assert_keys(&report, without_yardstick().chain(&STEADY).chain(&["samples"]));
    let verdicts = report["verdicts"].as_array().unwrap();
    let names: Vec<_> = verdicts.iter().map(|verdict| &verdict["name"]).collect();
    assert_eq!(names, ["rate", "backlog", "handled"]);
    assert_eq!(keys(&verdicts[0]), ["figure", "held", "name", "wanted"]);
    let all_held = verdicts.iter().all(|verdict| verdict["held"] == true);
    assert_eq!(ended.code, Some(if all_held { 0 } else { 1 }), "{ended:?}");
    assert_eq!(verdicts[2]["held"], true, "{report}");
    assert_eq!((&report["events"], &report["duplicates"], &report["lost"]), (&200.into(), &0.into(), &0.into()));
    let (mode, nodes) = if cold { ("partitioned", 2) } else { ("single_node", 1) };
    assert_eq!((&report["cold"], &report["mode"], &report["nodes"]), (&cold.into(), &mode.into(), &nodes.into()));
    assert_eq!(keys(&report["commit_to_handler_us"]), ["max", "p50", "p95", "p99"]);
}

#[tokio::test]
async fn a_steady_load_is_judged() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("bench.db").to_str().unwrap().to_owned();
    for cold in [false, true] {
        assert_steady(&run(&steady(&file, cold)), cold);
        let done = "SELECT CAST(count(*) AS TEXT) FROM pillarbox_bench_event WHERE status = 1";
        assert_eq!(column(&file, done).await, ["200"]);
    }
    with_postgres(|url| async move {
        for cold in [false, true] {
            assert_steady(&run_async(&steady(&url, cold)).await, cold);
            let (client, _connection) = connect(&url).await;
            let done = "SELECT count(*) FROM pillarbox_bench_event WHERE status = 1";
            assert_eq!(count(&client, done).await, 200);
        }
    })
    .await;
    with_mysql(|url| async move { assert_steady(&run_async(&steady(&url, true)).await, true) }).await;
}

/// The same load again beside a held snapshot, compared with the first and drawn.
#[tokio::test]
async fn a_steady_load_is_compared_with_the_same_beside_a_snapshot() {
    async fn compared(url: String) {
        const OWN: [&str; 4] =
            ["latency_over_time_us", "snapshot_held", "without_snapshot_us", "written_without_per_s"];
        let folder = tempfile::tempdir().unwrap();
        let plot = folder.path().join("held.svg").to_str().unwrap().to_owned();
        let args = [&steady(&url, true)[..], &["--hold-snapshot", "2s", "--plot", &plot]].concat();
        let ended = run_async(&args).await;
        let report = ended.json();
        assert_keys(&report, without_yardstick().chain(&STEADY).chain(&OWN).chain(&["samples"]));
        let verdicts = report["verdicts"].as_array().unwrap();
        let names: Vec<_> = verdicts.iter().map(|verdict| &verdict["name"]).collect();
        assert_eq!(names, ["rate", "backlog", "handled", "p99", "rate beside it"]);
        // Twice as long as without.
        assert_eq!((&report["events"], &report["duplicates"], &report["lost"]), (&400.into(), &0.into(), &0.into()));
        let over_time = report["latency_over_time_us"].as_array().unwrap();
        assert_eq!(keys(&over_time[0]), ["max", "p50", "p95", "p99", "seconds"]);
        assert!(over_time.last().unwrap()["seconds"].as_f64() > Some(1.5), "{report}");
        let svg = std::fs::read_to_string(&plot).unwrap();
        assert!(roxmltree::Document::parse(&svg).is_ok() && svg.contains("p99 without a snapshot"), "{svg}");
    }
    with_postgres(compared).await;
    with_mysql(compared).await;
}

#[test]
fn a_snapshot_that_cannot_be_held_and_a_picture_that_cannot_be_written_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("bench.db").to_str().unwrap().to_owned();
    let ended = run(&["steady", "--store", &file, "--hold-snapshot", "1s"]);
    assert_eq!(ended.code, Some(2), "{ended:?}");
    assert!(ended.stderr.contains("`--hold-snapshot` does not apply to SQLite"), "{ended:?}");
    let ended = run(&["steady", "--store", "postgres://nobody@127.0.0.1:1/none", "--plot", &file]);
    assert_eq!(ended.code, Some(2), "{ended:?}");
    assert!(ended.stderr.contains("--hold-snapshot"), "it draws nothing without: {ended:?}");
    assert!(!std::path::Path::new(&file).exists(), "what is refused touches nothing");
}

#[test]
fn a_verdict_is_shown_to_people() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("bench.db").to_str().unwrap().to_owned();
    let ended = run(&[&["steady", "--store", &file], PACE.as_slice()].concat());
    assert!(ended.stdout.contains("held: handled is 1, and should be at least 1"), "{ended:?}");
}

#[test]
fn a_run_that_is_too_long_to_be_counted_is_refused() {
    for bench in ["steady", "latency"] {
        let ended = run(&[bench, "--store", "none.db", "--rate", "100000", "--seconds", "101"]);
        assert_eq!(ended.code, Some(2), "{ended:?}");
        assert!(ended.stderr.contains("--seconds") && ended.stderr.contains("10000000"), "{ended:?}");
        assert!(!std::path::Path::new("none.db").exists(), "what is refused touches nothing");
    }
}

#[tokio::test]
async fn latency_is_measured_here_and_on_another_node() {
    let check = |ended: &Ended, woken: bool| {
        assert_eq!(ended.code, Some(0), "{ended:?}");
        let report = ended.json();
        assert_keys(&report, without_yardstick().chain(&LATENCY));
        // 200 on each path.
        assert_eq!((&report["events"], &report["duplicates"], &report["lost"]), (&800.into(), &0.into(), &0.into()));
        assert_eq!(report["other_node_is_woken"], woken);
        for path in ["hot_us", "other_node_us", "foreign_us", "delivered_us"] {
            let [p50, p99, max] = ["p50", "p99", "max"].map(|key| report[path][key].as_u64().unwrap());
            assert!(p50 <= p99 && p99 <= max, "{report}");
        }
        assert!(report["other_node_us"]["max"].as_u64() > Some(0), "{report}");
        assert!(report["delivered_us"]["p50"].as_u64() > Some(0), "{report}");
    };
    fn latency(url: &str) -> Vec<&str> {
        [&["latency", "--json", "--store", url], PACE.as_slice()].concat()
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("bench.db").to_str().unwrap().to_owned();
    check(&run(&latency(&file)), false);
    with_postgres(move |url| async move { check(&run_async(&latency(&url)).await, true) }).await;
    with_mysql(move |url| async move { check(&run_async(&latency(&url)).await, false) }).await;
}

#[tokio::test]
async fn a_mixed_load_is_measured_beside_its_writers_alone() {
    let check = |ended: &Ended| {
        assert_eq!(ended.code, Some(0), "{ended:?}");
        let report: Value = ended.json();
        assert_keys(&report, COMMON.iter().chain(&MIXED));
        assert_eq!((&report["events"], &report["duplicates"], &report["lost"]), (&500.into(), &0.into(), &0.into()));
        assert!(report["write_only_per_s"].as_f64() > Some(0.0), "{report}");
    };
    fn mixed(url: &str) -> [&str; 8] {
        ["mixed", "--json", "--events", "500", "--writers", "3", "--store", url]
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("bench.db").to_str().unwrap().to_owned();
    check(&run(&mixed(&file)));
    with_postgres(move |url| async move { check(&run_async(&mixed(&url)).await) }).await;
    with_mysql(move |url| async move { check(&run_async(&mixed(&url)).await) }).await;
}
