use super::refusal::MIGRATE;

/// The version of an outbox's tables, and the releases that can run on them.
///
/// Each schema version records the oldest version whose releases still run on it. So a release may start on tables that a newer
/// one has migrated: old and new processes run side by side during a rolling upgrade, and a rollback needs no change of the
/// tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SchemaVersion {
    /// The highest version that was applied; zero if there are no tables.
    pub applied: i64,
    /// The oldest version whose releases can run on these tables; `None` if nothing is recorded.
    pub compatible_from: Option<i64>,
}

impl SchemaVersion {
    /// Refuses tables that are too new for a release of version `known`, in words for the user.
    ///
    /// # Errors
    /// If they are newer, and not compatible.
    pub fn refuse_newer(self, table: &str, known: i64) -> Result<(), String> {
        if self.applied <= known || self.compatible_from.is_some_and(|from| from <= known) {
            return Ok(());
        }
        let needed = self.compatible_from.unwrap_or(self.applied);
        Err(format!(
            "the tables of {table} are of version {}, newer than the {known} this release knows, and need a release that knows \
             {needed}; upgrade Pillarbox",
            self.applied
        ))
    }

    /// Refuses tables on which a release of version `known` cannot run.
    ///
    /// # Errors
    /// If they are older, or newer and not compatible.
    pub fn refuse_unusable(self, table: &str, known: i64) -> Result<(), String> {
        if self.applied < known {
            return Err(format!(
                "the tables of {table} are of version {}, this release needs {known}; {MIGRATE}",
                self.applied
            ));
        }
        self.refuse_newer(table, known)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_release_runs_on_its_own_version_and_on_newer_ones_that_are_compatible() {
        for (applied, compatible_from, migrates, runs) in [
            (0, None, true, false),
            (6, Some(4), true, false),
            (7, Some(7), true, true),
            (7, None, true, true),
            (8, Some(6), true, true),
            (8, Some(7), true, true),
            (8, Some(8), false, false),
            (8, None, false, false),
            (99, Some(7), true, true),
        ] {
            let found = SchemaVersion { applied, compatible_from };
            let answers = (found.refuse_newer("t", 7).is_ok(), found.refuse_unusable("t", 7).is_ok());
            assert_eq!(answers, (migrates, runs), "{found:?}");
        }
    }

    #[test]
    fn a_refusal_says_which_release_is_needed() {
        let newer = SchemaVersion { applied: 9, compatible_from: Some(8) }.refuse_unusable("shop.outbox_event", 7);
        let text = newer.expect_err("it is too new");
        for part in ["shop.outbox_event", "version 9", "newer than the 7", "knows 8", "upgrade Pillarbox"] {
            assert!(text.contains(part), "{part} is missing in: {text}");
        }
        let older = SchemaVersion { applied: 3, compatible_from: None }.refuse_unusable("outbox_event", 7);
        let text = older.expect_err("it is too old");
        assert!(text.contains("version 3, this release needs 7") && text.contains("pillarbox migrate"), "{text}");
    }
}
