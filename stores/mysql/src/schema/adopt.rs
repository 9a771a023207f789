//! A table of outbox-java becomes ours in place: its rows keep their payloads and are delivered, its programs go on writing.
//!
//! Any other table with the name of one of the tables is refused before anything is written.

use pillarbox_core::error::StoreErrorKind;

use super::columns::{Column, added, columns};
use super::versions::MIGRATIONS;
use crate::error::Failure;
use crate::session::Session;
use crate::store::Inner;

pub(super) const ADOPT: &str = include_str!("../../migrations/adopt_outbox_java.sql");

/// The columns by which an event table of outbox-java is known.
const OUTBOX_JAVA: [&str; 15] = [
    "event_id",
    "event_type",
    "aggregate_type",
    "aggregate_id",
    "tenant_id",
    "payload",
    "headers",
    "status",
    "attempts",
    "available_at",
    "created_at",
    "done_at",
    "last_error",
    "locked_by",
    "locked_at",
];

/// The columns by which a table is known to be ours: others would not have them by chance. In the order of
/// [`TableName::all`](pillarbox_core::store::TableName::all).
const OURS: [&[&str]; 7] = [
    &["seq", "event_id", "event_type", "payload", "status", "available_at", "locked_by", "queue", "due_at"],
    &["node_id", "mode", "started_at", "expires_at"],
    &["partition", "node_id", "epoch"],
    &["version", "applied_at"],
    &["consumer", "message_id", "received_at", "repeated"],
    &["kind", "name", "paused_at", "paused_until"],
    &["id", "began_at", "who", "action", "subject", "changed", "outcome"],
];

/// True if there is a table of outbox-java, which is to be adopted. A stranger's table is refused, and one that cannot be adopted.
pub(super) async fn is_to_be_adopted(store: &Inner, session: &mut Session) -> Result<bool, Failure> {
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
    let is_outbox_java = is_outbox_java(&event);
    if is_outbox_java {
        check(table.event(), &event, MIGRATIONS.after(0).iter().map(|migration| migration.sql))?;
    }
    Ok(is_outbox_java)
}

fn is_outbox_java(columns: &[Column]) -> bool {
    let has = |wanted: &str| columns.iter().any(|column| column.is_named(wanted));
    let mut primary = columns.iter().filter(|column| column.is_primary);
    OUTBOX_JAVA.iter().all(|wanted| has(wanted))
        && !has("seq")
        && primary.next().is_some_and(|column| column.is_named("event_id"))
        && primary.next().is_none()
}

/// Refuses a table of outbox-java whose other columns would be in the way of an adoption, or of an insert after it. `later` are the
/// migrations that will follow.
fn check(table: &str, columns: &[Column], later: impl Iterator<Item = &'static str>) -> Result<(), Failure> {
    let ours = gained(later);
    let mut problems = Vec::new();
    for column in columns {
        let (name, is) = (&column.name, |other: &&str| column.is_named(other));
        if ours.iter().any(is) {
            problems.push(format!("column `{name}` is there already"));
        } else if column.is_required && !OUTBOX_JAVA.iter().any(is) {
            problems.push(format!("column `{name}` is unknown, and required in every INSERT"));
        }
    }
    if problems.is_empty() {
        return Ok(());
    }
    let problem = format!(
        "`{table}` is a table of outbox-java that cannot be adopted: {}; nothing was changed; rename a column that is there already, \
         and give a default to one that is required",
        problems.join(", ")
    );
    Err(Failure::Refused(StoreErrorKind::Schema, problem))
}

/// The columns that the event table gains.
fn gained(later: impl Iterator<Item = &'static str>) -> Vec<&'static str> {
    let statements = std::iter::once(ADOPT).chain(later).flat_map(|sql| sql.split(";\n"));
    let of_events = statements.filter(|statement| statement.contains("ALTER TABLE {event}"));
    of_events.flat_map(added).map(|(name, _)| name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::columns::tests::column;

    fn theirs() -> Vec<Column> {
        let of_theirs = |name: &&str| Column { is_primary: *name == "event_id", ..column(name, "text") };
        OUTBOX_JAVA.iter().map(of_theirs).collect()
    }

    #[test]
    fn a_table_is_told_by_its_columns() {
        assert!(is_outbox_java(&theirs()));
        assert!(!is_outbox_java(&theirs()[..14]));
        assert!(!is_outbox_java(&[]));
        let other = |is_primary, name| Column { is_primary, ..column(name, "int") };
        for (one, expected) in
            [(other(false, "region"), true), (other(true, "region"), false), (other(false, "SEQ"), false)]
        {
            let mut columns = theirs();
            columns.push(one);
            assert_eq!(is_outbox_java(&columns), expected, "{columns:?}");
        }
    }

    #[test]
    fn columns_in_the_way_of_an_adoption_are_named() {
        let later = || {
            ["ALTER TABLE {node} ADD COLUMN `lease` BIGINT;\nALTER TABLE {event} ADD COLUMN `replays` INT;\n"]
                .into_iter()
        };
        for (name, is_required, named) in [
            ("Replays", false, Some("`Replays` is there already")),
            ("ordering_key", false, Some("`ordering_key` is there already")),
            ("region", true, Some("`region` is unknown, and required")),
            ("region", false, None),
            ("lease", false, None),
        ] {
            let mut columns = theirs();
            columns.push(Column { is_required, ..column(name, "int") });
            let problem = check("outbox_event", &columns, later()).err().map(Failure::into_problem);
            assert_eq!(problem.is_some(), named.is_some(), "{problem:?}");
            assert!(problem.unwrap_or_default().contains(named.unwrap_or_default()), "{named:?}");
        }
    }
}
