//! A report as text for a person.

use pillarbox_doctor::{Finding, Report};
use pillarbox_program::report::{counted, plain};

/// The whole report: each finding with cause, evidence and remedy, then what could not be checked.
pub(super) fn whole(report: &Report, verbose: bool) -> String {
    let mut parts: Vec<String> = report.findings.iter().map(finding).collect();
    let mut lines = Vec::new();
    for check in &report.not_checked {
        lines.push(format!("not checked  {} ({}): {}", check.code, plain(&check.subject), plain(&check.reason)));
    }
    if verbose {
        for check in &report.passed {
            lines.push(format!("healthy      {} ({}): {}", check.code, plain(&check.subject), check.says));
        }
    }
    if !lines.is_empty() {
        parts.push(lines.join("\n"));
    }
    parts.push(summary(report));
    parts.join("\n\n")
}

fn summary(report: &Report) -> String {
    let mut counts = vec![counted(number(report.findings.len()), "finding")];
    counts.push(format!("{} healthy", counted(number(report.passed.len()), "check")));
    if !report.not_checked.is_empty() {
        counts.push(format!("{} not checked", report.not_checked.len()));
    }
    if report.ignored > 0 {
        counts.push(format!("{} ignored", report.ignored));
    }
    counts.join(", ")
}

fn number(count: usize) -> u64 {
    u64::try_from(count).unwrap_or(u64::MAX)
}

fn finding(finding: &Finding) -> String {
    let Finding { code, severity, subject, cause, evidence, remedy, command, more } = finding;
    let mut lines = vec![
        format!("{:<8}  {code}  {}", severity.name().to_uppercase(), plain(subject)),
        format!("  evidence  {}", evidence.lines().map(plain).collect::<Vec<_>>().join("\n            ")),
        format!("  cause     {cause}"),
        format!("  remedy    {remedy}"),
    ];
    if let Some(command) = command {
        lines.push(format!("            {}", plain(command)));
    }
    lines.push(format!("  more      {more}"));
    lines.join("\n")
}

/// The code of the finding that an examination did not come to its end. No examination says that this is healthy.
const UNFINISHED: &str = "examination-unfinished";
/// Findings after which an examination of their subject makes no further checks.
const THE_LAST: [&str; 3] = ["database-unreachable", "broker-refuses", UNFINISHED];

/// The findings that a watch has told of and that no later examination has shown to be gone.
#[derive(Debug, Default)]
pub(super) struct Watched(Vec<Open>);

/// A finding that is not gone, by its check and its subject.
#[derive(Debug)]
struct Open {
    code: &'static str,
    subject: String,
    /// True while the last examination has found it.
    is_found: bool,
}

impl Watched {
    /// The changes that a report brings, a text for each: findings that are new, or were not checked for a while, as a whole; the names of those
    /// that are gone; and the names of those whose checks were not made any more, once, since they may be there still.
    pub(super) fn changes(&mut self, now: &Report) -> Vec<String> {
        let is = |open: &Open, code: &str, subject: &str| open.code == code && open.subject == subject;
        let told = |found: &&Finding| self.0.iter().any(|open| open.is_found && is(open, found.code, &found.subject));
        let mut changes: Vec<String> = now.findings.iter().filter(|found| !told(found)).map(finding).collect();
        self.0.retain_mut(|open| {
            if now.findings.iter().any(|found| is(open, found.code, &found.subject)) {
                return false;
            }
            let named = format!("{}  {}", open.code, plain(&open.subject));
            let Some(reason) = unverified(now, open) else {
                changes.push(format!("GONE      {named}"));
                return false;
            };
            if std::mem::take(&mut open.is_found) {
                let reason = plain(&reason);
                changes.push(format!("NOT CHECKED  {named}: it was found before and may be there still; {reason}"));
            }
            true
        });
        let found = now.findings.iter();
        self.0.extend(found.map(|found| Open { code: found.code, subject: found.subject.clone(), is_found: true }));
        changes
    }
}

/// The reason why a report does not tell whether a finding is gone; `None` if its check was made and found nothing.
fn unverified(now: &Report, open: &Open) -> Option<String> {
    let of_the_subject = |subject: &str| subject == open.subject;
    if now.passed.iter().any(|check| check.code == open.code && of_the_subject(&check.subject)) {
        return None;
    }
    let mut not_checked = now.not_checked.iter().filter(|check| of_the_subject(&check.subject));
    if let Some(check) = not_checked.clone().find(|check| check.code == open.code) {
        return Some(check.reason.clone());
    }
    let mut findings = now.findings.iter().filter(|found| of_the_subject(&found.subject));
    if let Some(last) = findings.find(|found| THE_LAST.contains(&found.code)) {
        return Some(format!("{}: {}", last.code, last.evidence));
    }
    if let Some(unfinished) = not_checked.find(|check| check.code == UNFINISHED) {
        return Some(unfinished.reason.clone());
    }
    (open.code != UNFINISHED).then(|| "the examination has not made its check".to_owned())
}

#[cfg(test)]
mod tests {
    use pillarbox_doctor::{Healthy, NotChecked};

    use super::*;

    fn report(codes: &[&'static str]) -> Report {
        let finding = |code: &&'static str| Finding {
            code,
            severity: pillarbox_doctor::Severity::Warning,
            subject: "shop".to_owned(),
            cause: "A cause.",
            evidence: "three\u{1b}[2J".to_owned(),
            remedy: "A remedy.".into(),
            command: Some("VACUUM;".to_owned()),
            more: format!("docs/doctor.md#{code}"),
        };
        Report { findings: codes.iter().map(finding).collect(), healthy: codes.is_empty(), ..Report::default() }
    }

    /// The report with these checks, which found nothing.
    fn passed(mut report: Report, codes: &[&'static str]) -> Report {
        let healthy = |code: &&'static str| Healthy { code, subject: "shop".to_owned(), says: "all is well" };
        report.passed.extend(codes.iter().map(healthy));
        report
    }

    fn not_checked(code: &'static str, reason: &str) -> NotChecked {
        NotChecked { code, subject: "shop".to_owned(), reason: reason.to_owned() }
    }

    #[test]
    fn a_finding_has_all_its_parts_and_no_control_character() {
        let text = whole(&report(&["a-b"]), false);
        for part in ["WARNING   a-b  shop", "three\\u{1b}[2J", "A cause.", "A remedy.", "VACUUM;", "docs/doctor.md#a-b"]
        {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert!(text.ends_with("1 finding, 0 checks healthy"), "{text}");
    }

    #[test]
    fn a_watch_tells_what_is_new_and_what_is_gone() {
        let mut watched = Watched::default();
        watched.changes(&report(&["a", "b"]));
        let changes = watched.changes(&passed(report(&["b", "c"]), &["a"]));
        assert!(changes.len() == 2 && changes[0].contains("c  shop"), "{changes:?}");
        assert_eq!(changes[1], "GONE      a  shop");
        assert_eq!(watched.changes(&report(&["b", "c"])), Vec::<String>::new());
    }

    #[test]
    fn a_watch_calls_nothing_gone_whose_check_was_not_made() {
        let mut watched = Watched::default();
        watched.changes(&report(&["a", "b"]));
        let mut cut_short = report(&["database-unreachable"]);
        cut_short.not_checked.push(not_checked("b", "no privilege"));
        let changes = watched.changes(&cut_short);
        assert!(changes[0].contains("database-unreachable  shop"), "{changes:?}");
        let told = |code: &str, reason: &str| {
            format!("NOT CHECKED  {code}  shop: it was found before and may be there still; {reason}")
        };
        let why = "database-unreachable: three\\u{1b}[2J";
        assert_eq!(changes[1..], [told("a", why), told("b", "no privilege")]);
        assert_eq!(watched.changes(&cut_short), Vec::<String>::new(), "it is told once");

        let changes = watched.changes(&passed(report(&["b"]), &["a", "database-unreachable"]));
        assert!(changes[0].starts_with("WARNING   b  shop"), "it is there still: {changes:?}");
        assert_eq!(changes[1..], ["GONE      a  shop", "GONE      database-unreachable  shop"]);
        let changes = watched.changes(&report(&[]));
        assert_eq!(changes, [told("b", "the examination has not made its check")]);
        assert_eq!(watched.changes(&passed(report(&[]), &["b"])), ["GONE      b  shop"]);
    }

    #[test]
    fn an_examination_that_ends_again_is_no_longer_unfinished() {
        let mut watched = Watched::default();
        watched.changes(&report(&["a", UNFINISHED]));
        let mut unfinished = report(&[]);
        unfinished.not_checked.push(not_checked(UNFINISHED, "no answer"));
        let changes = watched.changes(&unfinished);
        assert!(changes.len() == 2 && changes.iter().all(|change| change.ends_with("; no answer")), "{changes:?}");
        assert_eq!(
            watched.changes(&passed(report(&[]), &["a"])),
            ["GONE      a  shop", "GONE      examination-unfinished  shop"]
        );
    }
}
