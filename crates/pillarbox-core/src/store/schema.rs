//! The versions of an outbox's tables: which release can run on them, and which migrations they lack.

use std::time::Duration;

use super::TableName;
use super::refusal::{UPGRADE, unmigrated};

/// The time for which a migration tries to get the locks it needs, before it names their holders.
pub const PATIENCE: Duration = Duration::from_secs(300);
/// The time for which a statement of a migration waits for a lock.
pub const LOCK_WAIT: Duration = Duration::from_secs(2);
/// The time for which the others have the table for themselves before it is tried again.
pub const LOCK_PAUSE: Duration = Duration::from_secs(1);

/// The version from which on a version records the oldest one that is compatible.
const RECORDS_COMPATIBILITY: i64 = 5;

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
    /// The version where there are no tables.
    pub const NONE: Self = Self { applied: 0, compatible_from: None };

    fn refuse_newer(self, table: &TableName, known: i64) -> Result<(), String> {
        if self.applied <= known || self.compatible_from.is_some_and(|from| from <= known) {
            return Ok(());
        }
        let needed = self.compatible_from.unwrap_or(self.applied);
        Err(format!(
            "the tables of {table} are of version {}, newer than the {known} this release knows, and need a release that knows \
             {needed}; {UPGRADE}",
            self.applied
        ))
    }

    fn refuse_older(self, table: &TableName, known: i64) -> Result<(), String> {
        if self.applied >= known {
            return Ok(());
        }
        let problem = format!("the tables of {table} are of version {}, this release needs {known}", self.applied);
        Err(unmigrated(&problem))
    }
}

/// The step that leads the tables of a store to a version from the one before.
#[derive(Debug, Clone, Copy)]
pub struct Migration<S> {
    /// The version. Versions are the same in every store, so some are not in each.
    pub version: i64,
    /// The oldest version whose releases can run on the tables after it; see `docs/upgrading.md`.
    pub compatible_from: i64,
    /// Its SQL, in the form that the store runs it. That of a release never changes.
    pub sql: S,
    /// True if it takes away what only older releases need: new tables come without that, and others keep it until the next release.
    pub contracts: bool,
}

impl<S> Migration<S> {
    /// A step to `version`, on whose tables the releases of `compatible_from` and newer ones run.
    pub const fn new(version: i64, compatible_from: i64, sql: S) -> Self {
        Self { version, compatible_from, sql, contracts: false }
    }

    /// A step that takes away what only releases before `version` need. It stands at the end of its list; with the step of the next
    /// release behind it, it becomes one like any other.
    pub const fn contraction(version: i64, compatible_from: i64, sql: S) -> Self {
        Self { version, compatible_from, sql, contracts: true }
    }

    /// The oldest compatible version, if the record of this step has it: the table of the first versions had no such column.
    #[must_use]
    pub const fn recorded(&self) -> Option<i64> {
        if self.version < RECORDS_COMPATIBILITY { None } else { Some(self.compatible_from) }
    }
}

/// The migrations of a store, from an empty database to the version that this release needs.
#[derive(Debug)]
pub struct Migrations<S: 'static>(&'static [Migration<S>]);

impl<S> Migrations<S> {
    /// The migrations of a list that ascends. In a constant, one that does not fails to compile.
    ///
    /// # Panics
    /// If a version or its oldest compatible one falls, or no release of a version could run on it.
    #[must_use]
    pub const fn new(list: &'static [Migration<S>]) -> Self {
        assert!(ascends(list), "versions have to grow, and what is compatible with them never falls");
        Self(list)
    }

    /// The version that this release gives to new tables, and the newest that it knows.
    #[must_use]
    pub fn latest(&self) -> i64 {
        self.0.last().map_or(0, |migration| migration.version)
    }

    /// The version that this release needs.
    #[must_use]
    pub fn needed(&self) -> i64 {
        self.0.iter().rfind(|migration| !migration.contracts).map_or(0, |migration| migration.version)
    }

    /// The migrations that follow `version`.
    #[must_use]
    pub fn after(&self, version: i64) -> &'static [Migration<S>] {
        let applied = self.0.partition_point(|migration| migration.version <= version);
        self.0.get(applied..).unwrap_or_default()
    }

    /// The migrations that the tables lack; none, if they are newer and compatible. Tables with rows keep what older releases need.
    ///
    /// # Errors
    /// If they are newer, and this release cannot run on them; in words for the user.
    pub fn missing(&self, table: &TableName, found: SchemaVersion) -> Result<&'static [Migration<S>], String> {
        found.refuse_newer(table, self.latest())?;
        let missing = self.after(found.applied);
        let all =
            if found.applied == 0 { missing.len() } else { missing.iter().take_while(|next| !next.contracts).count() };
        Ok(missing.get(..all).unwrap_or_default())
    }

    /// Verifies that this release can run on the tables.
    ///
    /// # Errors
    /// If they are older, or newer and not compatible; in words for the user.
    pub fn check(&self, table: &TableName, found: SchemaVersion) -> Result<(), String> {
        found.refuse_older(table, self.needed())?;
        found.refuse_newer(table, self.latest())
    }
}

const fn ascends<S>(list: &[Migration<S>]) -> bool {
    let (mut version, mut compatible_from, mut rest) = (0, 0, list);
    while let [next, others @ ..] = rest {
        if next.version <= version || next.compatible_from < compatible_from || next.compatible_from > next.version {
            return false;
        }
        (version, compatible_from, rest) = (next.version, next.compatible_from, others);
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIGRATIONS: Migrations<&str> =
        Migrations::new(&[Migration::new(1, 1, "a"), Migration::new(4, 4, "b"), Migration::new(7, 6, "c")]);

    #[test]
    fn a_release_runs_on_its_own_version_and_on_newer_ones_that_are_compatible() {
        for (applied, compatible_from, missing, runs) in [
            (0, None, Some("abc"), false),
            (1, None, Some("bc"), false),
            (3, None, Some("bc"), false),
            (4, None, Some("c"), false),
            (6, Some(4), Some("c"), false),
            (7, Some(7), Some(""), true),
            (7, None, Some(""), true),
            (8, Some(6), Some(""), true),
            (8, Some(7), Some(""), true),
            (8, Some(8), None, false),
            (8, None, None, false),
            (99, Some(7), Some(""), true),
        ] {
            let found = SchemaVersion { applied, compatible_from };
            let lacks = MIGRATIONS.missing(&TableName::default(), found).ok();
            let lacks = lacks.map(|missing| missing.iter().map(|migration| migration.sql).collect::<String>());
            assert_eq!(lacks.as_deref(), missing, "{found:?}");
            assert_eq!(MIGRATIONS.check(&TableName::default(), found).is_ok(), runs, "{found:?}");
        }
        assert_eq!(MIGRATIONS.latest(), 7);
    }

    #[test]
    fn a_refusal_says_which_release_is_needed() {
        let table = TableName::parse("shop.outbox_event").expect("valid");
        let refusal = |applied, compatible_from| {
            MIGRATIONS.check(&table, SchemaVersion { applied, compatible_from }).expect_err("it is refused")
        };
        let text = refusal(9, Some(8));
        for part in ["shop.outbox_event", "version 9", "newer than the 7", "knows 8", "upgrade Pillarbox"] {
            assert!(text.contains(part), "{part} is missing in: {text}");
        }
        let text = refusal(3, None);
        assert!(text.contains("version 3, this release needs 7") && text.contains("pillarbox migrate"), "{text}");
    }

    #[test]
    fn versions_grow_and_what_is_compatible_never_falls() {
        let table: [(&[(i64, i64)], bool); 8] = [
            (&[], true),
            (&[(1, 1)], true),
            (&[(1, 1), (3, 1), (4, 4), (5, 4)], true),
            (&[(0, 0)], false),
            (&[(2, 2), (1, 2)], false),
            (&[(1, 1), (1, 1)], false),
            (&[(4, 4), (5, 3)], false),
            (&[(1, 2)], false),
        ];
        for (versions, sound) in table {
            let list: Vec<_> = versions.iter().map(|(version, from)| Migration::new(*version, *from, ())).collect();
            assert_eq!(ascends(&list), sound, "{versions:?}");
        }
    }

    #[test]
    fn compatibility_is_recorded_from_version_five_on() {
        for (version, recorded) in [(1, None), (4, None), (5, Some(1)), (9, Some(1))] {
            assert_eq!(Migration::new(version, 1, ()).recorded(), recorded, "{version}");
        }
    }
}
