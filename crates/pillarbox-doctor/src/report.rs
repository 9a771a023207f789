use std::borrow::Cow;
use std::time::Duration;

use pillarbox_core::examine::{Checked, Judgement, Severity};
use serde::Serialize;

/// The page that explains each finding.
const PAGE: &str = "docs/doctor.md";

/// The result of an examination. Its form as JSON is a contract, which `docs/doctor.md` documents.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Report {
    /// True if nothing was found.
    pub healthy: bool,
    /// The conditions that were found, the heaviest first.
    pub findings: Vec<Finding>,
    /// The checks that could not be made.
    pub not_checked: Vec<NotChecked>,
    /// The checks that found nothing.
    pub passed: Vec<Healthy>,
    /// The findings that were left out, since their codes are ignored.
    pub ignored: u64,
    /// The time that the examination took, in seconds.
    pub seconds: f64,
}

/// A condition that was found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// Its name, which never changes.
    pub code: &'static str,
    /// Its weight.
    pub severity: Severity,
    /// The database or broker.
    pub subject: String,
    /// The cause.
    pub cause: &'static str,
    /// The facts, without secrets and without values of rows.
    pub evidence: String,
    /// The remedy.
    pub remedy: Cow<'static, str>,
    /// A command or statement that mends it, if there is one to paste.
    pub command: Option<String>,
    /// The place in the documentation.
    pub more: String,
}

/// A check that could not be made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NotChecked {
    /// The name of the check.
    pub code: &'static str,
    /// The database or broker.
    pub subject: String,
    /// The reason, and what would allow it.
    pub reason: String,
}

/// A check that found nothing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Healthy {
    /// The name of the check.
    pub code: &'static str,
    /// The database or broker.
    pub subject: String,
    /// The statement that holds.
    pub says: &'static str,
}

impl Report {
    /// The report on all subjects: their names with the results of their checks.
    pub(crate) fn of(subjects: Vec<(String, Vec<Checked>)>, ignored: &[String], took: Duration) -> Self {
        let mut report = Self { seconds: (took.as_secs_f64() * 1e3).round() / 1e3, ..Self::default() };
        for (subject, results) in subjects {
            for result in results {
                report.add(subject.clone(), result, ignored);
            }
        }
        report.findings.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
        report.healthy = report.findings.is_empty();
        report
    }

    fn add(&mut self, subject: String, Checked { check, judgement }: Checked, ignored: &[String]) {
        let code = check.code;
        match judgement {
            Judgement::Healthy => self.passed.push(Healthy { code, subject, says: check.healthy }),
            Judgement::NotChecked { reason } => self.not_checked.push(NotChecked { code, subject, reason }),
            Judgement::Found { .. } if ignored.iter().any(|ignored| ignored == code) => self.ignored += 1,
            Judgement::Found { evidence, command } => self.findings.push(Finding {
                code,
                severity: check.severity,
                subject,
                cause: check.cause,
                evidence,
                remedy: check.remedy.into(),
                command,
                more: format!("{PAGE}#{code}"),
            }),
        }
    }
}
