//! Benches of the outbox alone.

use crate::figures::{COMMON, assert_keys, without_yardstick};
use crate::support::{Ended, keys, run, run_async, with_mysql, with_postgres};

#[tokio::test]
async fn an_idle_outbox_is_counted_mode_by_mode() {
    let check = |ended: &Ended, modes: &[&str], has_statements: bool| {
        assert_eq!(ended.code, Some(0), "{ended:?}");
        let report = ended.json();
        let costs = ["client_cpu_us_per_event", "dead_tuples", "statements_per_event", "wal_bytes_per_event"];
        assert_keys(&report, ["bench", "modes", "seconds", "store", "verdicts"].iter().chain(&costs));
        let found: Vec<_> = report["modes"].as_array().unwrap().iter().collect();
        assert_eq!(found.iter().map(|mode| &mode["mode"]).collect::<Vec<_>>(), modes);
        for mode in found {
            assert_eq!(keys(mode), ["cpu_percent", "mode", "statements_per_s"]);
            assert_eq!(mode["statements_per_s"].is_f64(), has_statements, "{report}");
            assert_eq!(mode["cpu_percent"].is_f64(), cfg!(target_os = "linux"), "{report}");
        }
    };
    fn idle(url: &str) -> Vec<&str> {
        vec!["idle", "--json", "--after", "0", "--seconds", "1", "--store", url]
    }
    fn one(url: &str) -> Vec<&str> {
        [idle(url).as_slice(), &["--mode", "partitioned"]].concat()
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("bench.db").to_str().unwrap().to_owned();
    check(&run(&idle(&file)), &["single_node", "multi_node", "partitioned", "ordered"], false);
    with_postgres(move |url| async move { check(&run_async(&one(&url)).await, &["partitioned"], true) }).await;
    with_mysql(move |url| async move { check(&run_async(&one(&url)).await, &["partitioned"], true) }).await;
}

#[tokio::test]
async fn pages_of_each_list_are_measured() {
    let check = |ended: &Ended| {
        assert_eq!(ended.code, Some(0), "{ended:?}");
        let report = ended.json();
        let costs = ["client_cpu_us_per_event", "dead_tuples", "statements_per_event", "wal_bytes_per_event"];
        assert_keys(&report, ["bench", "lists", "pages", "rows", "seconds", "store", "verdicts"].iter().chain(&costs));
        assert_eq!((&report["rows"], &report["pages"]), (&3_000.into(), &3.into()));
        let lists = report["lists"].as_array().unwrap();
        assert_eq!(lists.len(), 10, "{report}");
        for list in lists {
            assert_eq!(keys(list), ["list", "p50_ms", "p99_ms"]);
            assert!(list["p99_ms"].as_f64() >= list["p50_ms"].as_f64(), "{list}");
        }
    };
    fn console(url: &str) -> [&str; 12] {
        ["console", "--json", "--rows", "3000", "--pending", "100", "--dead", "100", "--pages", "3", "--store", url]
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("bench.db").to_str().unwrap().to_owned();
    check(&run(&console(&file)));
    with_postgres(move |url| async move { check(&run_async(&console(&url)).await) }).await;
    with_mysql(move |url| async move { check(&run_async(&console(&url)).await) }).await;
}

#[tokio::test]
async fn every_delivered_row_is_purged() {
    let check = |ended: &Ended| {
        assert_eq!(ended.code, Some(0), "{ended:?}");
        let report = ended.json();
        assert_eq!((&report["rows"], &report["purged"], &report["batch"]), (&3_000.into(), &3_000.into(), &400.into()));
        assert!(report["purged_per_s"].as_f64().is_some_and(|rate| rate > 0.0), "{report}");
    };
    fn purge(url: &str) -> [&str; 8] {
        ["purge", "--json", "--rows", "3000", "--batch", "400", "--store", url]
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("bench.db").to_str().unwrap().to_owned();
    check(&run(&purge(&file)));
    with_postgres(move |url| async move { check(&run_async(&purge(&url)).await) }).await;
    with_mysql(move |url| async move { check(&run_async(&purge(&url)).await) }).await;
}

#[tokio::test]
async fn memory_is_measured_for_three_backlogs() {
    let check = |ended: &Ended, mode: &str| {
        assert_eq!(ended.code, Some(0), "{ended:?}");
        let report = ended.json();
        assert_keys(&report, without_yardstick().chain(&["mode", "peaks"]));
        assert_eq!((&report["mode"], &report["events"]), (&mode.into(), &2_000.into()));
        assert_eq!((&report["duplicates"], &report["lost"]), (&0.into(), &0.into()));
        let peaks = report["peaks"].as_array().unwrap();
        assert_eq!(peaks.iter().map(|peak| &peak["events"]).collect::<Vec<_>>(), [20, 200, 2_000]);
        for peak in peaks {
            assert_eq!(peak["peak_memory_bytes"].as_u64() > Some(1_000_000), cfg!(target_os = "linux"), "{report}");
        }
    };
    fn memory<'a>(url: &'a str, mode: &'a str) -> [&'a str; 8] {
        ["memory", "--json", "--events", "2000", "--mode", mode, "--store", url]
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("bench.db").to_str().unwrap().to_owned();
    check(&run(&memory(&file, "single_node")), "single_node");
    with_postgres(move |url| async move {
        check(&run_async(&memory(&url, "partitioned")).await, "partitioned");
    })
    .await;
    with_mysql(move |url| async move { check(&run_async(&memory(&url, "multi_node")).await, "multi_node") }).await;
}

#[test]
fn the_engine_is_measured_without_a_database() {
    let ended = run(&["overhead", "--events", "5000", "--workers", "2", "--json"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let report = ended.json();
    assert_keys(&report, COMMON.iter().chain(&["workers"]));
    assert_eq!((&report["store"], &report["workers"]), (&"memory".into(), &2.into()));
    assert_eq!((&report["events"], &report["duplicates"], &report["lost"]), (&5_000.into(), &0.into(), &0.into()));
    assert!(report["yardstick_per_s"].as_f64() > Some(0.0), "{report}");
}
