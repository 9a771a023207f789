//! A doctor examines several subjects side by side, within its limits, and reports all it could not check.

#![allow(clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use pillarbox_core::clock::{Clock, SystemClock, Timestamp};
use pillarbox_core::error::{StoreError, StoreErrorKind};
use pillarbox_core::examine::{Check, Checked, Severity};
use pillarbox_core::publisher::{Message, PublishError, Publisher, PublisherInfo, Receipt};
use pillarbox_doctor::{Doctor, Report};
use pillarbox_memory::MemoryStore;

/// A clock that goes wrong by so many seconds.
#[derive(Debug)]
struct Wrong(i64);

impl Clock for Wrong {
    fn now(&self) -> Timestamp {
        Timestamp::from_micros(SystemClock.now().as_micros() + self.0 * 1_000_000)
    }
}

static WEAK: Check = Check { code: "broker-weak", severity: Severity::Notice, healthy: "h", cause: "c", remedy: "r" };

#[derive(Debug)]
struct Broker {
    info: PublisherInfo,
    answers: Answers,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Answers {
    Well,
    Refuses,
    Never,
    /// Takes the targets, and is silent when it is examined.
    Later,
}

fn broker(answers: Answers) -> Arc<Broker> {
    Arc::new(Broker { info: PublisherInfo::new("test", "test://broker"), answers })
}

#[async_trait]
impl Publisher for Broker {
    fn info(&self) -> &PublisherInfo {
        &self.info
    }

    async fn check(&self, _: &[String]) -> Result<(), PublishError> {
        match self.answers {
            Answers::Well | Answers::Later => Ok(()),
            Answers::Refuses => Err(PublishError::misconfigured("the stream ORDERS is missing")),
            Answers::Never => pending().await,
        }
    }

    async fn check_prefix(&self, prefix: &str) -> Result<bool, PublishError> {
        if prefix == "other." { Err(PublishError::misconfigured("no stream takes `other.>`")) } else { Ok(true) }
    }

    async fn examine(&self, targets: &[String]) -> Vec<Checked> {
        if self.answers == Answers::Later {
            pending::<()>().await;
        }
        vec![WEAK.found(targets.join(","))]
    }

    async fn publish(&self, _: Vec<Message>) -> Vec<Receipt> {
        Vec::new()
    }

    async fn close(&self) {}
}

fn codes(report: &Report) -> Vec<&str> {
    report.findings.iter().map(|finding| finding.code).collect()
}

#[tokio::test]
async fn a_clock_that_differs_is_found_in_either_direction() {
    for (seconds, direction) in [(3600, "behind"), (-3600, "ahead of")] {
        let doctor = Doctor::new().store("shop", Arc::new(MemoryStore::new())).clock(Arc::new(Wrong(seconds)));
        let report = doctor.run().await;
        let offset = report.findings.iter().find(|finding| finding.code == "clock-offset").expect("it is found");
        assert!(offset.evidence.contains(direction) && offset.evidence.contains("3"), "{}", offset.evidence);
    }
    let report = Doctor::new().store("shop", Arc::new(MemoryStore::new())).clock(Arc::new(Wrong(0))).run().await;
    assert_eq!(codes(&report), ["no-node"], "the heaviest alone: the clocks agree");
}

#[tokio::test]
async fn the_heaviest_comes_first_and_what_is_ignored_is_counted() {
    let doctor = Doctor::new().broker("weak", broker(Answers::Well), vec!["a".into(), "b".into()], Vec::new()).broker(
        "refuses",
        broker(Answers::Refuses),
        Vec::new(),
        Vec::new(),
    );
    let report = doctor.run().await;
    assert_eq!(codes(&report), ["broker-refuses", "broker-weak"]);
    assert!(report.findings[0].evidence.contains("ORDERS is missing"));
    assert_eq!((&*report.findings[1].evidence, &*report.findings[1].subject), ("a,b", "weak"));
    let report = doctor.ignore("broker-refuses").ignore("broker-weak").run().await;
    assert!(report.healthy && report.ignored == 2, "{report:?}");
}

#[tokio::test]
async fn a_broker_without_a_place_for_targets_that_depend_on_the_event_is_found() {
    let asked = async |beginnings: &[&str]| {
        let beginnings = beginnings.iter().map(|beginning| (*beginning).to_owned()).collect();
        Doctor::new().broker("events", broker(Answers::Well), Vec::new(), beginnings).run().await
    };
    assert_eq!(codes(&asked(&["orders."]).await), ["broker-weak"]);
    let report = asked(&["orders.", "other."]).await;
    assert_eq!(codes(&report), ["broker-refuses"]);
    assert!(report.findings[0].evidence.contains("other.>"), "{report:?}");
}

#[tokio::test(start_paused = true)]
async fn brokers_that_never_answer_are_given_up_and_the_others_are_reported() {
    let doctor = Doctor::new()
        .store("shop", Arc::new(MemoryStore::new()))
        .broker("silent", broker(Answers::Never), Vec::new(), Vec::new())
        .broker("later", broker(Answers::Later), Vec::new(), Vec::new())
        .run_limit(Duration::from_secs(20));
    let began = tokio::time::Instant::now();
    let report = doctor.run().await;
    assert_eq!(began.elapsed(), Duration::from_secs(20), "all are examined side by side");
    let mut found = codes(&report);
    found.sort_unstable();
    assert_eq!(found, ["broker-refuses", "examination-unfinished", "no-node"]);
    let unfinished = report.findings.iter().find(|finding| finding.code == "examination-unfinished");
    assert_eq!(unfinished.map(|finding| finding.subject.as_str()), Some("later"));
    assert!(report.passed.iter().any(|check| check.subject == "later"), "what was found by then is told");
}

#[tokio::test(start_paused = true)]
async fn an_examination_that_did_not_end_is_not_healthy() {
    let doctor = Doctor::new().broker("later", broker(Answers::Later), Vec::new(), Vec::new());
    for (limit, expected) in [(Duration::from_secs(15), "15s"), (Duration::from_secs(600), "60s")] {
        let began = tokio::time::Instant::now();
        let report = doctor.run_within(limit).await;
        assert!(!report.healthy && codes(&report) == ["examination-unfinished"], "{report:?}");
        assert_eq!(report.findings[0].evidence, format!("it did not end within {expected}; checks made by then: 1"));
        assert_eq!(began.elapsed(), limit.min(Duration::from_secs(60)), "its own limit holds as well");
    }
}

#[tokio::test]
async fn a_database_that_could_not_be_opened_is_a_finding() {
    let error = StoreError::new(StoreErrorKind::Unavailable, "connect to the database", "too many connections");
    let report = Doctor::new().unreachable("shop", &error).run().await;
    assert_eq!(codes(&report), ["database-unreachable"]);
    assert!(report.findings[0].evidence.contains("too many connections"));
    assert_eq!(report.findings[0].more, "docs/doctor.md#database-unreachable");
}

#[test]
fn a_report_is_plain_json() {
    let json = serde_json::to_value(Report::default()).expect("renders");
    assert_eq!(json["findings"], serde_json::json!([]));
    assert_eq!(json["healthy"], serde_json::json!(false), "a report that says nothing says nothing good");
}
