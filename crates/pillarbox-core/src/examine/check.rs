use serde::Serialize;

/// The weight of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Nothing is wrong today; a failure of a machine may cost more than expected.
    Notice,
    /// It costs speed or space, or will stop deliveries if it goes on.
    Warning,
    /// Events are not delivered, or may be lost.
    Critical,
}

impl Severity {
    /// Its name, in lower case.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Notice => "notice",
            Self::Warning => "warning",
            Self::Critical => "critical",
        }
    }
}

/// One condition that a doctor looks for. Its texts are those of `docs/doctor.md`, which a test compares.
#[derive(Debug, PartialEq, Eq)]
pub struct Check {
    /// Its name, which never changes: `snapshot-pinned`.
    pub code: &'static str,
    /// The weight of its finding.
    pub severity: Severity,
    /// The statement that holds when all is well: "no old snapshot is held".
    pub healthy: &'static str,
    /// The cause of trouble, where it is found.
    pub cause: &'static str,
    /// The remedy.
    pub remedy: &'static str,
}

impl Check {
    /// The condition is not there.
    #[must_use]
    pub const fn healthy(&'static self) -> Checked {
        Checked { check: self, judgement: Judgement::Healthy }
    }

    /// The condition was found. `evidence` gives place and extent; it holds no secret and no value of a row.
    #[must_use]
    pub fn found(&'static self, evidence: impl Into<String>) -> Checked {
        Checked { check: self, judgement: Judgement::Found { evidence: evidence.into(), command: None } }
    }

    /// It could not be looked for. `reason` says what would allow it.
    #[must_use]
    pub fn not_checked(&'static self, reason: impl Into<String>) -> Checked {
        Checked { check: self, judgement: Judgement::NotChecked { reason: reason.into() } }
    }

    /// Found if there is evidence, healthy without any.
    #[must_use]
    pub fn judge(&'static self, evidence: Option<String>) -> Checked {
        match evidence {
            Some(evidence) => self.found(evidence),
            None => self.healthy(),
        }
    }
}

/// The result of a check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checked {
    /// The check.
    pub check: &'static Check,
    /// Its result.
    pub judgement: Judgement,
}

impl Checked {
    /// Adds the command or statement that mends it, to be pasted. Without a finding it changes nothing.
    #[must_use]
    pub fn with_command(mut self, text: impl Into<String>) -> Self {
        if let Judgement::Found { command, .. } = &mut self.judgement {
            *command = Some(text.into());
        }
        self
    }
}

/// The result of a check, without its texts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Judgement {
    /// The condition is not there.
    Healthy,
    /// The condition was found.
    Found {
        /// The facts.
        evidence: String,
        /// A command or statement that mends it, if there is one to paste.
        command: Option<String>,
    },
    /// It could not be looked for.
    NotChecked {
        /// The reason, and the remedy.
        reason: String,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    static CHECK: Check =
        Check { code: "c", severity: Severity::Warning, healthy: "well", cause: "cause", remedy: "remedy" };

    #[test]
    fn a_command_belongs_to_a_finding() {
        let found = CHECK.judge(Some("three".into())).with_command("VACUUM");
        let mended = Judgement::Found { evidence: "three".into(), command: Some("VACUUM".into()) };
        assert_eq!(found.judgement, mended);
        assert_eq!(CHECK.judge(None).with_command("VACUUM").judgement, Judgement::Healthy);
        assert_eq!(CHECK.not_checked("no").judgement, Judgement::NotChecked { reason: "no".into() });
    }

    #[test]
    fn the_heaviest_finding_is_the_greatest() {
        assert!(Severity::Critical > Severity::Warning && Severity::Warning > Severity::Notice);
        assert_eq!([Severity::Notice, Severity::Critical].map(Severity::name), ["notice", "critical"]);
    }
}
