//! The benches run on real databases and report every figure they promise. How fast they are is not tested here.

use crate::support::{keys, run, run_async, with_mysql, with_postgres};
use serde_json::Value;

pub(crate) const COMMON: [&str; 15] = [
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
const WRITE: [&str; 3] = ["business_only_per_s", "business_with_event_per_s", "write_ratio"];

pub(crate) fn assert_figures(bench: &str, report: &Value, own: &[&str]) {
    assert_keys(report, COMMON.iter().chain(own));
    assert_eq!(report["bench"], bench);
    assert_eq!(report["events"], 2_000);
    assert_eq!(report["payload_bytes"], 300);
    assert_eq!((&report["duplicates"], &report["lost"]), (&0.into(), &0.into()), "{report}");
}

/// Exactly these keys, and no number that is none.
pub(crate) fn assert_keys<'a>(report: &Value, expected: impl Iterator<Item = &'a &'a str>) {
    let mut expected: Vec<_> = expected.copied().collect();
    expected.sort_unstable();
    assert_eq!(keys(report), expected);
    for key in expected {
        if let Some(figure) = report[key].as_f64() {
            assert!(figure.is_finite() && figure >= 0.0, "{key}: {report}");
        }
    }
}

/// The keys of benches that compare themselves with nothing.
pub(crate) fn without_yardstick() -> impl Iterator<Item = &'static &'static str> {
    COMMON.iter().filter(|key| !["ratio", "yardstick_per_s"].contains(*key))
}

const BENCHES: [(&str, &[&str]); 3] = [("write", &WRITE), ("hot", &HOT), ("drain", &crate::drain::OWN)];

#[test]
fn every_bench_reports_on_sqlite() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("bench.db");
    for (bench, own) in BENCHES {
        let store = file.to_str().unwrap();
        let ended = run(&[bench, "--store", store, "--events", "2000", "--payload", "300", "--json"]);
        assert_eq!(ended.code, Some(0), "{ended:?}");
        assert_figures(bench, &ended.json(), own);
    }
}

#[tokio::test]
async fn every_bench_reports_on_postgres() {
    with_postgres(|url| async move {
        for (bench, own) in BENCHES {
            let args = [bench, "--store", &url, "--events", "2000", "--payload", "300", "--json"];
            let ended = run_async(&args).await;
            assert_eq!(ended.code, Some(0), "{ended:?}");
            assert_figures(bench, &ended.json(), own);
        }
        let ended = run_async(&["drain", "--store", &url, "--events", "100"]).await;
        assert_eq!(ended.code, Some(0), "{ended:?}");
        assert!(ended.stdout.contains("counted in the table"), "{ended:?}");
    })
    .await;
}

#[tokio::test]
async fn every_bench_reports_on_mysql() {
    with_mysql(|url| async move {
        for (bench, own) in BENCHES {
            let args = [bench, "--store", &url, "--events", "2000", "--payload", "300", "--json"];
            let ended = run_async(&args).await;
            assert_eq!(ended.code, Some(0), "{ended:?}");
            let report = ended.json();
            assert_figures(bench, &report, own);
            assert!(report["statements_per_event"].as_f64() > Some(0.0), "{report}");
        }
    })
    .await;
}

#[test]
fn samples_of_a_run_are_reported_on_request() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("bench.db");
    let store = file.to_str().unwrap();
    for (bench, done) in [("write", 0), ("hot", 2_000), ("drain", 2_000)] {
        let ended = run(&[bench, "--store", store, "--events", "2000", "--json", "--samples"]);
        assert_eq!(ended.code, Some(0), "{ended:?}");
        let report = ended.json();
        let last = report["samples"].as_array().and_then(|samples| samples.last()).unwrap();
        assert_eq!(keys(last), ["backlog", "dead_tuples", "done", "seconds", "wal_bytes", "written"]);
        assert_eq!(
            (&last["written"], &last["done"], &last["backlog"]),
            (&2_000.into(), &done.into(), &(2_000 - done).into())
        );
    }
    let ended = run(&["write", "--store", store, "--samples"]);
    assert_eq!(ended.code, Some(2), "they would drown the text: {ended:?}");
}
