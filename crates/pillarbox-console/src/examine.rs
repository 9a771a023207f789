use std::cmp::Reverse;
use std::collections::HashMap;
use std::time::Duration;

use async_trait::async_trait;
use auto_impl::auto_impl;
use pillarbox_doctor::{Doctor, RoutePause, Severity, SourceStatus};
use pillarbox_routes::{Forwarder, RouteState, RouteStatus};
use tokio::sync::Mutex;
use tokio::time::{Instant, timeout};

use crate::source::Source;

/// The time for which an examination is good, however many look at it.
const GOOD_FOR: Duration = Duration::from_secs(60);
/// The time between two examinations, however often somebody asks for one.
const APART: Duration = Duration::from_secs(5);
/// The longest time of one.
const PATIENCE: Duration = Duration::from_secs(20);

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
    /// What harms deliveries, or will, the worst first.
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
    /// What was seen, without secrets.
    pub evidence: String,
    /// What to do.
    pub remedy: String,
    /// A command or statement that does it, if there is one to copy.
    pub command: Option<String>,
}

#[async_trait]
impl Examine for Doctor {
    async fn examine(&self) -> Examination {
        let report = self.run().await;
        let findings = report.findings.into_iter().map(|finding| Finding {
            code: finding.code.to_owned(),
            severity: finding.severity,
            cause: finding.cause.to_owned(),
            evidence: format!("{}: {}", finding.subject, finding.evidence),
            remedy: finding.remedy.to_owned(),
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

/// The last examination of each source.
#[derive(Debug, Default)]
pub(crate) struct Examinations(Mutex<HashMap<String, Examined>>);

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
    /// The last examination if it is still good, or else one of now; `None` if nobody examines the source. Whoever has seen an examination
    /// may want one after it.
    pub(crate) async fn of(&self, source: &Source, seen: Option<u64>) -> Option<Examined> {
        source.examiner.as_ref()?;
        // One at a time: the others wait for its result.
        let mut all = self.0.lock().await;
        all.retain(|name, last| name == source.name() || last.age() < GOOD_FOR);
        let last = all.get(source.name());
        let is_good = |last: &&Examined| {
            let good_for = if seen == Some(last.number) { APART } else { GOOD_FOR };
            last.age() < good_for
        };
        if let Some(last) = last.filter(is_good) {
            return Some(last.clone());
        }
        let number = last.map_or(0, |last| last.number) + 1;
        let examination = timeout(PATIENCE, examine(source)).await.unwrap_or_else(|_elapsed| Examination {
            not_checked: vec![("all".to_owned(), "the examination did not end within 20 seconds".to_owned())],
            ..Examination::default()
        });
        let examined = Examined { number, at: Instant::now(), examination };
        all.insert(source.name().to_owned(), examined.clone());
        Some(examined)
    }
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
        match &source.examiner {
            Some(examiner) => examiner.examine().await,
            None => Examination::default(),
        }
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
        RouteState::PausedByHand { reason, .. } => Some((target.target, reason)),
        RouteState::Open => None,
    });
    let targets = (count > 0).then(|| RoutePause::Targets { route: route.clone(), count, some: some.collect() });
    let whole = match state {
        RouteState::Open => None,
        RouteState::Paused { problem, .. } => Some(RoutePause::Destination { route, problem }),
        RouteState::PausedByHand { reason, .. } => Some(RoutePause::ByHand { route, reason }),
    };
    whole.into_iter().chain(targets)
}
