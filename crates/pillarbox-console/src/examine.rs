use std::cmp::Reverse;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use auto_impl::auto_impl;
use pillarbox_core::lock::Mutex;
use pillarbox_doctor::{Doctor, RoutePause, Severity, SourceStatus};
use pillarbox_routes::{Forwarder, RouteState, RouteStatus};
use tokio::time::{Instant, timeout};

use crate::actions::Jobs;
use crate::source::Source;

/// The time for which an examination is good, however many look at it.
const GOOD_FOR: Duration = Duration::from_secs(60);
/// The time between two examinations, however often somebody asks for one.
const APART: Duration = Duration::from_secs(5);
/// The time after which a doctor ends its examination by itself, and tells what it has found by then.
const LIMIT: Duration = Duration::from_secs(15);
/// The longest time of an examination, also of an examiner that does not end by itself.
const EXAMINATION_TIMEOUT: Duration = Duration::from_secs(20);

/// Examines an outbox: its database, its brokers, its nodes. The console asks at most once a minute, and while somebody looks.
#[async_trait]
#[auto_impl(Arc)]
pub trait Examine: Send + Sync {
    /// Examines it now. It should change nothing, and end by itself.
    async fn examine(&self) -> Examination;
}

/// The result of an examination.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Examination {
    /// The problems that harm deliveries, or will, the worst first.
    pub findings: Vec<Finding>,
    /// The checks that could not be made, each with the reason.
    pub not_checked: Vec<(String, String)>,
    /// The number of checks that found nothing.
    pub healthy: usize,
}

/// A condition that harms deliveries, or will.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// Its name, such as `snapshot-pinned`.
    pub code: String,
    /// Its weight.
    pub severity: Severity,
    /// Its cause, in a sentence.
    pub cause: String,
    /// The evidence of the problem, without secrets.
    pub evidence: String,
    /// The remedy.
    pub remedy: String,
    /// A command or statement that does it, if there is one to copy.
    pub command: Option<String>,
}

#[async_trait]
impl Examine for Doctor {
    async fn examine(&self) -> Examination {
        let report = self.run_within(LIMIT).await;
        let findings = report.findings.into_iter().map(|finding| Finding {
            code: finding.code.to_owned(),
            severity: finding.severity,
            cause: finding.cause.to_owned(),
            evidence: format!("{}: {}", finding.subject, finding.evidence),
            remedy: finding.remedy.into_owned(),
            command: finding.command,
        });
        let not_checked = report.not_checked.into_iter();
        Examination {
            findings: findings.collect(),
            not_checked: not_checked
                .map(|check| (format!("{}: {}", check.subject, check.code), check.reason))
                .collect(),
            healthy: report.passed.len(),
        }
    }
}

/// The last examination of each source. A source whose database is silent makes no other wait.
#[derive(Debug, Default)]
pub(crate) struct Examinations(Mutex<HashMap<String, Last>>);

/// The last examination of a source. It is locked while the next one is made, whose result all others wait for.
type Last = Arc<tokio::sync::Mutex<Option<Examined>>>;

/// An examination that was made.
#[derive(Debug, Clone)]
pub(crate) struct Examined {
    /// It rises with each of a source.
    pub(crate) number: u64,
    at: Instant,
    pub(crate) examination: Examination,
}

impl Examined {
    pub(crate) fn age(&self) -> Duration {
        self.at.elapsed()
    }
}

impl Examinations {
    /// The last examination if it is still good, or else one of now; `None` if the source has no examiner. A caller that has
    /// `seen` an examination gets a later one. An examination that has begun is among `jobs`, and ends though no caller waits for it any more.
    pub(crate) async fn of(&self, jobs: &Jobs, source: &Source, seen: Option<u64>) -> Option<Examined> {
        source.examiner.as_ref()?;
        let mut last = self.last(source.name()).lock_owned().await;
        let is_good = |last: &&Examined| {
            let good_for = if seen == Some(last.number) { APART } else { GOOD_FOR };
            last.age() < good_for
        };
        if let Some(last) = last.as_ref().filter(is_good) {
            return Some(last.clone());
        }
        let number = last.as_ref().map_or(0, |last| last.number) + 1;
        let source = source.clone();
        let examined = jobs.run_to_completion(async move {
            let examination = examine(&source).await;
            let examined = Examined { number, at: Instant::now(), examination };
            *last = Some(examined.clone());
            examined
        });
        // The task has panicked, or the console is ending.
        let broken = || Examined { number, at: Instant::now(), examination: nothing("the examination has broken off") };
        Some(examined.await.unwrap_or_else(broken))
    }

    /// The last examination of the source of this name. Those of other sources are forgotten once they are old and nobody looks.
    fn last(&self, name: &str) -> Last {
        let is_kept = |last: &Last| {
            Arc::strong_count(last) > 1
                || last.try_lock().is_ok_and(|last| last.as_ref().is_some_and(|last| last.age() < GOOD_FOR))
        };
        let mut all = self.0.lock();
        all.retain(|other, last| other == name || is_kept(last));
        Arc::clone(all.entry(name.to_owned()).or_default())
    }
}

/// An examination that has checked nothing, for this reason.
fn nothing(reason: &str) -> Examination {
    Examination { not_checked: vec![("all".to_owned(), reason.to_owned())], ..Examination::default() }
}

/// The findings of a source's examiner, and those of this process about its own deliveries.
async fn examine(source: &Source) -> Examination {
    let own = async {
        match status(source) {
            None => Examination::default(),
            Some(status) => {
                let doctor = Doctor::new().relay("this process", move || {
                    let status = status.clone();
                    Box::pin(async move { Ok(vec![status]) })
                });
                doctor.examine().await
            }
        }
    };
    let given = async {
        let Some(examiner) = &source.examiner else { return Examination::default() };
        let late = |_elapsed| nothing("the examination did not end within 20 seconds");
        timeout(EXAMINATION_TIMEOUT, examiner.examine()).await.unwrap_or_else(late)
    };
    let (own, given) = tokio::join!(own, given);
    let mut findings: Vec<Finding> = own.findings.into_iter().chain(given.findings).collect();
    findings.sort_by_key(|finding| Reverse(finding.severity));
    Examination {
        findings,
        not_checked: own.not_checked.into_iter().chain(given.not_checked).collect(),
        healthy: own.healthy + given.healthy,
    }
}

/// The status of a source in this process; `None` if it delivers nothing from it.
fn status(source: &Source) -> Option<SourceStatus> {
    let mut problems = Vec::new();
    match (source.store(), source.outbox()) {
        (Err(problem), _) => problems.push(problem.to_owned()),
        (Ok(_), Some(outbox)) => {
            let health = outbox.health();
            problems.extend(health.problems.iter().map(ToString::to_string).chain(health.last_error));
        }
        (Ok(_), None) => source.routes.as_ref().map(|_| ())?,
    }
    let routes = source.routes.as_ref().map(Forwarder::status).unwrap_or_default();
    let pauses = routes.into_iter().flat_map(pauses).collect();
    Some(SourceStatus { name: source.name().to_owned(), problems, pauses, elsewhere: None })
}

fn pauses(status: RouteStatus) -> impl Iterator<Item = RoutePause> {
    let RouteStatus { route, state, paused_targets: count, targets, .. } = status;
    let some = targets.into_iter().filter_map(|target| match target.state {
        RouteState::Paused { problem, .. } => Some((target.target, problem)),
        RouteState::PausedByOperator { reason, .. } => Some((target.target, reason)),
        RouteState::Delivering => None,
    });
    let targets = (count > 0).then(|| RoutePause::Targets { route: route.clone(), count, some: some.collect() });
    let whole = match state {
        RouteState::Delivering => None,
        RouteState::Paused { problem, .. } => Some(RoutePause::Destination { route, problem }),
        RouteState::PausedByOperator { reason, .. } => Some(RoutePause::ByOperator { route, reason }),
    };
    whole.into_iter().chain(targets)
}
