//! The demo keeps its promises on real databases, and says so in numbers that come from them.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test fails by panicking, and so do the functions that tests have in common"
)]

#[cfg(feature = "postgres")]
mod postgres;
mod sqlite;

use pillarbox_programtest::{Ended, Program, keys};
use serde_json::Value;

const DEMO: Program = Program(env!("CARGO_BIN_EXE_pillarbox-demo"));

const KEYS: [&str; 11] = [
    "cold",
    "commit_to_handler_us",
    "delivered",
    "duplicates",
    "events_committed",
    "hot",
    "lost",
    "orders",
    "rolled_back",
    "seconds",
    "store",
];

/// A run of 300 orders in which everything went well.
fn assert_clean(ended: &Ended, store: &str) -> Value {
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let report = ended.json();
    assert_eq!(keys(&report), KEYS);
    assert_eq!(keys(&report["commit_to_handler_us"]), ["max", "p50", "p95", "p99"]);
    assert_eq!(report["orders"], 300);
    assert_eq!(report["rolled_back"], 15);
    assert_eq!(report["events_committed"], 285);
    assert_eq!(report["delivered"], 285);
    assert_eq!((&report["duplicates"], &report["lost"]), (&0.into(), &0.into()));
    let (hot, cold) = (report["hot"].as_u64().unwrap(), report["cold"].as_u64().unwrap());
    assert!(hot > 0 && cold > 0, "both paths are shown: {report}");
    assert_eq!(hot + cold, 285);
    assert!(report["store"].as_str().unwrap().contains(store), "{report}");
    report
}
