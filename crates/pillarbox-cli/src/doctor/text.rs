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
        format!("  evidence  {}", plain(evidence)),
        format!("  cause     {cause}"),
        format!("  remedy    {remedy}"),
    ];
    if let Some(command) = command {
        lines.push(format!("            {}", plain(command)));
    }
    lines.push(format!("  more      {more}"));
    lines.join("\n")
}

/// The differences between two reports, a text for each: new findings as a whole, and the names of those that are gone.
pub(super) fn changes(before: &Report, now: &Report) -> Vec<String> {
    let same = |one: &Finding, other: &Finding| one.code == other.code && one.subject == other.subject;
    let new = now.findings.iter().filter(|found| !before.findings.iter().any(|other| same(found, other)));
    let gone = before.findings.iter().filter(|found| !now.findings.iter().any(|other| same(found, other)));
    let gone = gone.map(|found| format!("GONE      {}  {}", found.code, plain(&found.subject)));
    new.map(finding).chain(gone).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(codes: &[&'static str]) -> Report {
        let finding = |code: &&'static str| Finding {
            code,
            severity: pillarbox_doctor::Severity::Warning,
            subject: "shop".to_owned(),
            cause: "A cause.",
            evidence: "three\u{1b}[2J".to_owned(),
            remedy: "A remedy.",
            command: Some("VACUUM;".to_owned()),
            more: format!("docs/doctor.md#{code}"),
        };
        Report { findings: codes.iter().map(finding).collect(), healthy: codes.is_empty(), ..Report::default() }
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
        let changes = changes(&report(&["a", "b"]), &report(&["b", "c"]));
        assert!(changes.len() == 2 && changes[0].contains("c  shop"), "{changes:?}");
        assert_eq!(changes[1], "GONE      a  shop");
    }
}
