use std::collections::HashMap;
use std::time::Duration;

use async_trait::async_trait;
use auto_impl::auto_impl;
use pillarbox_doctor::{Doctor, Severity};
use tokio::sync::Mutex;
use tokio::time::{Instant, timeout};

use crate::source::Source;

/// The time for which an examination is good, however many look at it.
const GOOD_FOR: Duration = Duration::from_secs(60);
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
    /// True if deliveries are harmed now.
    pub is_severe: bool,
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
            is_severe: finding.severity == Severity::Critical,
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
pub(crate) struct Examinations(Mutex<HashMap<String, (Instant, Examination)>>);

impl Examinations {
    /// The last examination if it is still good, or else one of now, and its age; `None` if nobody examines the source.
    pub(crate) async fn of(&self, source: &Source) -> Option<(Examination, Duration)> {
        let examiner = source.examiner.as_ref()?;
        // One at a time: the others wait for its result.
        let mut all = self.0.lock().await;
        all.retain(|_, (at, _)| at.elapsed() < GOOD_FOR);
        if let Some((at, examination)) = all.get(source.name()) {
            return Some((examination.clone(), at.elapsed()));
        }
        let examination = timeout(PATIENCE, examiner.examine()).await.unwrap_or_else(|_elapsed| Examination {
            not_checked: vec![("all".to_owned(), "the examination did not end within 20 seconds".to_owned())],
            ..Examination::default()
        });
        all.insert(source.name().to_owned(), (Instant::now(), examination.clone()));
        Some((examination, Duration::ZERO))
    }
}
