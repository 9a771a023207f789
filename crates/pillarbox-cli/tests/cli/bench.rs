//! The benches run on real databases and report every figure they promise. How fast they are is not tested here.

use crate::support::{keys, run, run_async, with_postgres};
use serde_json::Value;

const COMMON: [&str; 10] = [
    "bench",
    "duplicates",
    "events",
    "events_per_s",
    "lost",
    "payload_bytes",
    "ratio",
    "seconds",
    "store",
    "yardstick_per_s",
];
const HOT: [&str; 5] = ["commit_to_handler_us", "done_within_1s", "write_only_per_s", "write_ratio", "written_per_s"];
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

const BENCHES: [(&str, &[&str]); 3] = [("write", &WRITE), ("hot", &HOT), ("drain", &[])];

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
