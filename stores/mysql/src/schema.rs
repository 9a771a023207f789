//! Creating, adopting and checking the tables.
//!
//! Statements that make tables commit by themselves, so a migration may be cut short between any two of them. Each of
//! them is therefore one that may be run again, they run one process at a time, and the version is recorded last.

use std::time::Duration;

use pillarbox_core::error::StoreErrorKind;
use pillarbox_core::store::schema::{LOCK_PAUSE, LOCK_WAIT, Migration, Migrations, SchemaVersion};
use pillarbox_core::store::{TableName, refusal};
use tokio::time::{Instant, sleep};

use crate::adopt::{self, ADOPT, is_outbox_java};
use crate::answer::{int, is_true, optional_int};
use crate::columns::{columns, taken};
use crate::error::Failure;
use crate::literal::{Literal, fill};
use crate::session::Session;
use crate::sql::{qualified, render, without_comments};
use crate::store::Inner;

/// The versions in ascending order. Versions are the same in every store, so some are not in this one; a released file never
/// changes.
const MIGRATIONS: Migrations<&str> = Migrations::new(&[
    Migration::new(1, 1, include_str!("../migrations/0001_outbox.sql")),
    Migration::new(3, 3, include_str!("../migrations/0003_handlers.sql")),
    Migration::new(4, 4, include_str!("../migrations/0004_heads.sql")),
    Migration::new(5, 4, include_str!("../migrations/0005_compatibility.sql")),
    Migration::new(6, 4, include_str!("../migrations/0006_undelayed.sql")),
    Migration::new(8, 4, include_str!("../migrations/0008_leases.sql")),
    Migration::new(9, 4, include_str!("../migrations/0009_replays.sql")),
    Migration::new(13, 4, include_str!("../migrations/0013_audit.sql")),
    Migration::new(14, 4, include_str!("../migrations/0014_inbox.sql")),
    Migration::new(15, 4, include_str!("../migrations/0015_pause.sql")),
    Migration::new(16, 4, include_str!("../migrations/0016_failures_and_unique_key.sql")),
    Migration::new(17, 4, include_str!("../migrations/0017_unique_key.sql")),
    Migration::new(19, 4, include_str!("../migrations/0019_delivered_as.sql")),
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

const MIGRATION_TABLE: &str = include_str!("../sql/migration_table.sql");
const OPEN_TRANSACTIONS: &str = include_str!("../sql/open_transactions.sql");

/// By which columns a table is known to be ours: those that others would not have by chance.
/// In the order of [`TableName::all`].
const OURS: [&[&str]; 7] = [
    &["seq", "event_id", "event_type", "payload", "status", "available_at", "locked_by", "queue", "due_at"],
    &["node_id", "mode", "started_at", "expires_at"],
    &["partition", "node_id", "epoch"],
    &["version", "applied_at"],
    &["consumer", "message_id", "received_at", "repeated"],
    &["kind", "name", "paused_at", "paused_until"],
    &["id", "began_at", "who", "action", "subject", "changed", "outcome"],
];

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
fn upgrade(migrations: &Migrations<&'static str>, table: &TableName, found: SchemaVersion) -> Result<String, Failure> {
    let missing = migrations.missing(table, found).map_err(unusable)?;
    Ok(if missing.is_empty() { String::new() } else { compose(table, found.applied, missing) })
}

fn create_database(schema: &str) -> String {
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

/// Runs what is missing, one process at a time. Where nothing is missing nothing is locked or written, and no privilege
/// to create tables is needed.
///
/// No statement waits for a table for longer than [`LOCK_WAIT`], since all that need the table queue behind one that waits. What
/// did not get its lock is tried again for as long as `patience`. What was lost since a migration has made it is an error.
pub(crate) async fn migrate(store: &Inner, patience: Duration) -> Result<(), Failure> {
    bring_up(store, patience).await?;
    check(store).await
}

async fn bring_up(store: &Inner, patience: Duration) -> Result<(), Failure> {
    let mut session = store.sessions.session().await?;
    let version = found(store, &mut session).await?;
    if upgrade(&MIGRATIONS, &store.table, version)?.is_empty() {
        session.finish();
        return Ok(());
    }
    lock(store, &mut session).await?;
    let deadline = Instant::now() + patience;
    // Another process may have done it while this one waited.
    let version = found(store, &mut session).await?;
    let script = upgrade(&MIGRATIONS, &store.table, version)?;
    if !script.is_empty() && version.applied == 0 {
        prepare(store, &mut session, deadline).await?;
    }
    for statement in statements(&without_comments(&script)) {
        make(store, &mut session, statement, deadline).await?;
    }
    // The session is closed, not given back: with it goes the lock, and what was set for the migration.
    Ok(())
}

/// The statements of a script, each of which ends with its line.
fn statements(script: &str) -> impl Iterator<Item = &str> {
    script.split(";\n").map(str::trim).filter(|statement| !statement.is_empty())
}

/// Runs a statement of a migration. Columns and indexes that are there already were made by a migration that was cut short, or else
/// are refused: no other may have these names in a table of ours.
async fn make(store: &Inner, session: &mut Session, statement: &str, deadline: Instant) -> Result<(), Failure> {
    loop {
        match session.run(statement).await {
            Err(failure) if failure.is_there_already() => return check_made(store, session, statement).await,
            Err(failure) if failure.is_contention() => {
                let (table, open) = (&store.table, open_transactions(session).await);
                if Instant::now() >= deadline {
                    return Err(Failure::Refused(StoreErrorKind::Contention, refusal::in_use(table, &open)));
                }
                tracing::warn!(%table, "a migration waits for its turn{open}; trying again");
                sleep(LOCK_PAUSE).await;
            }
            answer => return answer.map(|_| ()),
        }
    }
}

/// Verifies that the columns which a statement would have added are those of the same statement of an earlier migration.
async fn check_made(store: &Inner, session: &mut Session, statement: &str) -> Result<(), Failure> {
    let table = &store.table;
    let altered = |name: &String| statement.starts_with(&format!("ALTER TABLE {}", qualified(table, name)));
    let Some(name) = table.all().into_iter().find(altered) else { return Ok(()) };
    let found = columns(store, session, &name).await?;
    let taken = taken(statement, &found);
    if taken.is_empty() {
        return Ok(());
    }
    let problem = format!(
        "the table `{name}` has a column `{}` that is not Pillarbox's, which adds one of this name; rename it, and migrate again",
        taken.join("` and a column `")
    );
    Err(Failure::Refused(StoreErrorKind::Schema, problem))
}

/// The oldest transactions of the server, one of which keeps the table, in words; nothing where the user may not see them.
async fn open_transactions(session: &mut Session) -> String {
    let Ok(answers) = session.run(OPEN_TRANSACTIONS).await else { return String::new() };
    let open = answers.rows(0).iter().filter_map(|row| {
        let (connection, age) = (int(row, 0).ok()?, int(row, 1).ok()?);
        Some(format!("connection {connection} for {age} s"))
    });
    let open: Vec<String> = open.collect();
    if open.is_empty() { String::new() } else { format!("; transactions open now: {}", open.join(", ")) }
}

/// Takes the lock of migrations of this table, and lets statements take their time, but not wait for others.
async fn lock(store: &Inner, session: &mut Session) -> Result<(), Failure> {
    let limits = format!(
        "SET SESSION wait_timeout = 28800, lock_wait_timeout = {0}, innodb_lock_wait_timeout = {0} \
         /*!80001 , max_execution_time = 0 */ /*M!100600 , max_statement_time = 0 */",
        LOCK_WAIT.as_secs()
    );
    session.run(limits).await?;
    let values = [
        ("schema", &Literal::optional_text(store.table.schema())),
        ("table", &Literal::text(store.table.event())),
        ("seconds", &Literal::int(3600)),
    ];
    let answers = session.run(fill(&store.sql.migration_lock, &values)).await?;
    if answers.first(0).map(|row| is_true(row, 0)).transpose()? == Some(true) {
        return Ok(());
    }
    let problem = "another migration of these tables has not ended; wait for it, or end its connection".to_owned();
    Err(Failure::Refused(StoreErrorKind::Contention, problem))
}

/// Before the first version: makes the database, adopts a table of outbox-java, refuses a stranger's. What refuses comes
/// first.
async fn prepare(store: &Inner, session: &mut Session, deadline: Instant) -> Result<(), Failure> {
    let table = &store.table;
    let event = columns(store, session, table.event()).await?;
    for (name, ours) in table.all().into_iter().zip(OURS) {
        let found = columns(store, session, &name).await?;
        let has = |wanted: &&str| found.iter().any(|column| column.is_named(wanted));
        let adoptable = name == table.event() && is_outbox_java(&found);
        if !found.is_empty() && !ours.iter().all(has) && !adoptable {
            let problem = format!(
                "there is a table `{name}` that is neither Pillarbox's nor outbox-java's; rename it, or configure another \
                 name for the outbox's table"
            );
            return Err(Failure::Refused(StoreErrorKind::Schema, problem));
        }
    }
    if is_outbox_java(&event) {
        adopt::check(table.event(), &event, MIGRATIONS.after(0).iter().map(|migration| migration.sql))?;
    }
    if let Some(schema) = table.schema() {
        let exists = fill(&store.sql.schema_exists, &[("schema", &Literal::text(schema))]);
        // It wants the privilege to create databases even where there is nothing to do.
        if session.run(exists).await?.first(0).is_none() {
            session.run(create_database(schema)).await?;
        }
    }
    if is_outbox_java(&event) {
        make(store, session, &render(&without_comments(ADOPT), table), deadline).await?;
    }
    Ok(())
}

/// Verifies that every table is there and of the version this release needs.
pub(crate) async fn check(store: &Inner) -> Result<(), Failure> {
    let table = &store.table;
    let mut session = store.sessions.session().await?;
    let found = found(store, &mut session).await?;
    // Tables of an older version lack some, which is not what there is to say of them.
    if found.applied > 0 {
        MIGRATIONS.check(table, found).map_err(unusable)?;
    }
    let (mut missing, mut may_see) = (Vec::new(), true);
    for name in table.all() {
        if columns(store, &mut session, &name).await?.is_empty() {
            let name = qualified(table, &name);
            // The catalog has only tables on which the user has a privilege. For others the server says whether it would tell.
            let asked = session.run(format!("SELECT 1 FROM {name} LIMIT 0")).await;
            may_see &= !asked.is_err_and(|failure| failure.is_denied());
            missing.push(name.replace('`', ""));
        }
    }
    if !may_see {
        return Err(Failure::Refused(StoreErrorKind::Denied, refusal::unseen_tables(&missing)));
    }
    if !missing.is_empty() {
        let problem = if found.applied > 0 { refusal::lost(&missing) } else { refusal::missing_tables(&missing) };
        return Err(Failure::Refused(StoreErrorKind::Schema, problem));
    }
    session.finish();
    MIGRATIONS.check(table, found).map_err(unusable)
}

fn unusable(problem: String) -> Failure {
    Failure::Refused(StoreErrorKind::Schema, problem)
}

async fn found(store: &Inner, session: &mut Session) -> Result<SchemaVersion, Failure> {
    let table = &store.table;
    let migration = table.beside("migration");
    let found = columns(store, session, &migration).await?;
    // A table of another purpose is refused later, by name.
    if !found.iter().any(|column| column.name == "version") {
        return Ok(SchemaVersion::NONE);
    }
    let name = qualified(table, &migration);
    let mut newest = async |column: &str| -> Result<Option<i64>, Failure> {
        let answers = session.run(format!("SELECT `{column}` FROM {name} ORDER BY `version` DESC LIMIT 1")).await?;
        answers.first(0).map_or(Ok(None), |row| optional_int(row, 0))
    };
    let applied = newest("version").await?.unwrap_or(0);
    // Older tables have no such column, and nobody asks.
    let compatible_from = if applied > MIGRATIONS.latest() { newest("compatible_from").await? } else { None };
    Ok(SchemaVersion { applied, compatible_from })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plans::with_tables;

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

    #[tokio::test]
    async fn a_migration_that_gets_no_lock_says_which_transactions_are_open() {
        with_tables(async |store, session, database| {
            let event = format!("{database}.outbox_event");
            let back = format!(
                "DELETE FROM {database}.outbox_migration WHERE version >= 4; ALTER TABLE {event} DROP KEY pillarbox_heads"
            );
            session.run(back).await.expect("goes back");
            let insert = format!("INSERT INTO {event} (event_id, event_type, payload) VALUES ('secret', 't', '1')");
            let open = session.run(format!("START TRANSACTION; {insert}; SELECT CONNECTION_ID()")).await.expect("inserts");
            let connection = int(open.first(2).expect("a row"), 0).expect("a number");
            let refused = migrate(store.inner(), Duration::ZERO).await.expect_err("it gets no lock");
            let Failure::Refused(StoreErrorKind::Contention, text) = refused else { panic!("{refused:?}") };
            for part in [&*format!("connection {connection} for "), "in use", "migrate again"] {
                assert!(text.contains(part), "{part} is missing in: {text}");
            }
            assert!(!text.contains("secret"), "{text}");
            session.run("COMMIT").await.expect("commits");
            migrate(store.inner(), Duration::ZERO).await.expect("migrates");
        })
        .await;
    }

    #[test]
    fn what_only_older_releases_need_goes_one_release_later() {
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
