//! The versions of the tables, and the SQL that leads from one to the next.

use pillarbox_core::store::TableName;
use pillarbox_core::store::schema::{Migration, Migrations, SchemaVersion};

use super::check::unusable;
use crate::error::Failure;
use crate::sql::render;

/// The versions in ascending order. Versions are the same in every store, so some are not in this one; a released file never
/// changes.
pub(super) const MIGRATIONS: Migrations<&str> = Migrations::new(&[
    Migration::new(1, 1, include_str!("../../migrations/0001_outbox.sql")),
    Migration::new(3, 3, include_str!("../../migrations/0003_handlers.sql")),
    Migration::new(4, 4, include_str!("../../migrations/0004_heads.sql")),
    Migration::new(5, 4, include_str!("../../migrations/0005_compatibility.sql")),
    Migration::new(6, 4, include_str!("../../migrations/0006_undelayed.sql")),
    Migration::new(8, 4, include_str!("../../migrations/0008_leases.sql")),
    Migration::new(9, 4, include_str!("../../migrations/0009_replays.sql")),
    Migration::new(13, 4, include_str!("../../migrations/0013_audit.sql")),
    Migration::new(14, 4, include_str!("../../migrations/0014_inbox.sql")),
    Migration::new(15, 4, include_str!("../../migrations/0015_pause.sql")),
    Migration::new(16, 4, include_str!("../../migrations/0016_failures_and_unique_key.sql")),
    Migration::new(17, 4, include_str!("../../migrations/0017_unique_key.sql")),
    Migration::new(19, 4, include_str!("../../migrations/0019_delivered_as.sql")),
]);

/// The SQL that records a migration.
fn record(migration: &Migration<&str>) -> String {
    let version = migration.version;
    match migration.recorded() {
        None => format!("INSERT IGNORE INTO {{migration}} (`version`) VALUES ({version});\n"),
        Some(from) => {
            format!("INSERT IGNORE INTO {{migration}} (`version`, `compatible_from`) VALUES ({version}, {from});\n")
        }
    }
}

const MIGRATION_TABLE: &str = include_str!("../../sql/migration_table.sql");

/// The definition of a key as the migrations leave it: ``KEY `name` (…)``.
pub(crate) fn key(name: &str) -> Option<String> {
    let named = format!("KEY `{name}` (");
    let sql = MIGRATIONS.after(0).iter().map(|migration| migration.sql).rfind(|sql| sql.contains(&named))?;
    let begin = sql.rfind(&named)?;
    let unique = if sql[..begin].ends_with("UNIQUE ") { "UNIQUE " } else { "" };
    let end = begin + sql[begin..].find(')')?;
    Some(format!("{unique}{}", &sql[begin..=end]))
}

/// The SQL that leads from the `applied` version to the latest, with the records of it.
pub(crate) fn script(table: &TableName, applied: i64) -> String {
    let database = table.schema().filter(|_| applied == 0).map(create_database);
    database.unwrap_or_default() + &compose(table, applied, MIGRATIONS.after(applied))
}

/// The SQL that brings tables of this version to the one that this release needs; empty if they lack nothing.
pub(super) fn upgrade(
    migrations: &Migrations<&'static str>,
    table: &TableName,
    found: SchemaVersion,
) -> Result<String, Failure> {
    let missing = migrations.missing(table, found).map_err(unusable)?;
    Ok(if missing.is_empty() { String::new() } else { compose(table, found.applied, missing) })
}

pub(super) fn create_database(schema: &str) -> String {
    format!("CREATE DATABASE IF NOT EXISTS `{schema}`;\n")
}

fn compose(table: &TableName, applied: i64, migrations: &[Migration<&str>]) -> String {
    let mut script = String::new();
    if applied == 0 {
        script.push_str(MIGRATION_TABLE);
    }
    for migration in migrations {
        script.push_str(&format!("\n-- Version {}\n\n{}{}", migration.version, migration.sql, record(migration)));
    }
    render(&script, table)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::adopt::ADOPT;
    use crate::schema::run_script::statements;
    use crate::sql::without_comments;

    #[test]
    fn the_script_names_the_configured_table_and_records_each_version() {
        let table = TableName::parse("billing.orders_event").expect("valid");
        let sql = script(&table, 0);
        assert!(!sql.contains(['{', '}']), "a placeholder is left: {sql}");
        assert!(sql.starts_with("CREATE DATABASE IF NOT EXISTS `billing`;"), "{sql}");
        for migration in MIGRATIONS.after(0) {
            let Migration { version, compatible_from, .. } = migration;
            let old = format!("INSERT IGNORE INTO `billing`.`orders_migration` (`version`) VALUES ({version});");
            let new = format!(
                "INSERT IGNORE INTO `billing`.`orders_migration` (`version`, `compatible_from`) VALUES ({version}, \
                 {compatible_from});"
            );
            assert!(sql.contains(if *version < 5 { &old } else { &new }), "{sql}");
        }
        assert_eq!(script(&table, MIGRATIONS.latest()), "", "nothing is left to do");
    }

    #[test]
    fn an_upgrade_adds_what_is_missing_only() {
        let table = TableName::parse("outbox_event").expect("valid");
        let upgrade = without_comments(&script(&table, 3));
        let words: Vec<Vec<&str>> =
            statements(&upgrade).map(|statement| statement.split_whitespace().take(3).collect()).collect();
        let expected: [&[&str]; 32] = [
            &["ALTER", "TABLE", "`outbox_event`"],
            &["ALTER", "TABLE", "`outbox_event`"],
            &["ALTER", "TABLE", "`outbox_partition`"],
            &["INSERT", "IGNORE", "INTO"],
            &["ALTER", "TABLE", "`outbox_migration`"],
            &["INSERT", "IGNORE", "INTO"],
            &["SET", "@pillarbox_migration", "="],
            &["PREPARE", "`pillarbox_migration`", "FROM"],
            &["EXECUTE", "`pillarbox_migration`"],
            &["DEALLOCATE", "PREPARE", "`pillarbox_migration`"],
            &["INSERT", "IGNORE", "INTO"],
            &["ALTER", "TABLE", "`outbox_node`"],
            &["INSERT", "IGNORE", "INTO"],
            &["ALTER", "TABLE", "`outbox_event`"],
            &["ALTER", "TABLE", "`outbox_event`"],
            &["INSERT", "IGNORE", "INTO"],
            &["CREATE", "TABLE", "IF"],
            &["SELECT", "`id`,", "`began_at`,"],
            &["ALTER", "TABLE", "`outbox_node`"],
            &["INSERT", "IGNORE", "INTO"],
            &["CREATE", "TABLE", "IF"],
            &["SELECT", "`consumer`,", "`message_id`,"],
            &["INSERT", "IGNORE", "INTO"],
            &["CREATE", "TABLE", "IF"],
            &["SELECT", "`kind`,", "`name`,"],
            &["INSERT", "IGNORE", "INTO"],
            &["ALTER", "TABLE", "`outbox_event`"],
            &["INSERT", "IGNORE", "INTO"],
            &["ALTER", "TABLE", "`outbox_event`"],
            &["INSERT", "IGNORE", "INTO"],
            &["ALTER", "TABLE", "`outbox_event`"],
            &["INSERT", "IGNORE", "INTO"],
        ];
        assert_eq!(words, expected, "{upgrade}");
    }

    #[test]
    fn schema_parts_that_only_older_releases_need_go_one_release_later() {
        const STEPS: Migrations<&str> = Migrations::new(&[
            Migration::new(1, 1, "first"),
            Migration::new(6, 4, "adds"),
            Migration::contraction(7, 6, "takes"),
        ]);
        let table = TableName::parse("outbox_event").expect("valid");
        let of =
            |applied| upgrade(&STEPS, &table, SchemaVersion { applied, compatible_from: None }).expect("an upgrade");
        for (applied, parts, others) in
            [(0, &["first", "adds", "takes"][..], &[][..]), (1, &["adds"], &["first", "takes", "(7"])]
        {
            let sql = of(applied);
            assert!(parts.iter().all(|part| sql.contains(part)), "{applied}: {sql}");
            assert!(!others.iter().any(|part| sql.contains(part)), "{applied}: {sql}");
        }
        assert_eq!((of(6), of(7)), (String::new(), String::new()));
    }

    /// A reader that began meanwhile would keep a table that was written anew from taking its place, and all would be in vain.
    #[test]
    fn a_table_of_events_is_changed_beside_its_writers_or_by_who_has_it_alone() {
        let statements =
            std::iter::once(ADOPT).chain(MIGRATIONS.after(1).iter().map(|step| step.sql)).flat_map(statements);
        for statement in statements.filter(|statement| statement.contains("ALTER TABLE {event}")) {
            let modes = ["ALGORITHM = INPLACE, LOCK = NONE", "LOCK = EXCLUSIVE", "MODIFY COLUMN `replays`"];
            assert!(modes.iter().any(|mode| statement.contains(mode)), "{statement}");
        }
    }
}
