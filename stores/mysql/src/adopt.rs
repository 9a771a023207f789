//! A table of outbox-java becomes ours in place: its rows keep their payloads and are delivered, its programs go on writing.

use pillarbox_core::error::StoreErrorKind;

use crate::columns::{Column, added};
use crate::error::Failure;

pub(crate) const ADOPT: &str = include_str!("../sql/adopt.sql");

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

pub(crate) fn is_outbox_java(columns: &[Column]) -> bool {
    let has = |wanted: &str| columns.iter().any(|column| column.is_named(wanted));
    let mut primary = columns.iter().filter(|column| column.is_primary);
    OUTBOX_JAVA.iter().all(|wanted| has(wanted))
        && !has("seq")
        && primary.next().is_some_and(|column| column.is_named("event_id"))
        && primary.next().is_none()
}

/// Refuses a table of outbox-java whose other columns would be in the way of an adoption, or of an insert after it. `later` are the
/// migrations that will follow.
pub(crate) fn check(table: &str, columns: &[Column], later: impl Iterator<Item = &'static str>) -> Result<(), Failure> {
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
    use crate::columns::tests::column;

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
    fn what_is_in_the_way_of_an_adoption_is_named() {
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
