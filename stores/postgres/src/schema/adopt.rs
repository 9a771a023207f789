//! An outbox-java table becomes ours in place: its rows keep their payloads and are delivered, its programs go on writing.
//!
//! Any other object with the table's name is refused before anything is written.

use deadpool_postgres::Transaction;
use pillarbox_core::error::StoreErrorKind;
use pillarbox_core::store::TableName;
use tokio::time::Instant;
use tokio_postgres::types::Type;

use super::run_script::time_limit;
use crate::error::{Failure, no_row};
use crate::sql::qualified;

const ADOPT: &str = include_str!("../../migrations/adopt_outbox_java.sql");
const COLUMNS: &str = include_str!("../../sql/table_columns.sql");

const TEXT: [&str; 2] = ["character varying", "text"];
const JSON: [&str; 4] = ["jsonb", "json", "text", "character varying"];
const STATE: [&str; 2] = ["smallint", "integer"];
const COUNT: [&str; 2] = ["integer", "smallint"];
const ZONED: &str = "timestamp with time zone";
const NAIVE: &str = "timestamp without time zone";
const TIME: [&str; 2] = [ZONED, NAIVE];

/// The columns of outbox-java's table, with the types that they may have.
const THEIRS: [(&str, &[&str]); 15] = [
    ("event_id", &TEXT),
    ("event_type", &TEXT),
    ("aggregate_type", &TEXT),
    ("aggregate_id", &TEXT),
    ("tenant_id", &TEXT),
    ("payload", &JSON),
    ("headers", &JSON),
    ("status", &STATE),
    ("attempts", &COUNT),
    ("available_at", &TIME),
    ("created_at", &TIME),
    ("done_at", &TIME),
    ("last_error", &TEXT),
    ("locked_by", &TEXT),
    ("locked_at", &TIME),
];

/// The columns of them that are never NULL, with the value that a row gets which has none.
const REQUIRED: [(&str, &str); 5] = [
    ("event_id", "an id that no other row has"),
    ("event_type", "the type by which its handler is found"),
    ("status", "0 if the event is to be delivered, else 1"),
    ("attempts", "0"),
    ("created_at", "the time of the event, or now()"),
];

/// The columns that it gains, and so must not have.
const OURS: [&str; 12] = [
    "seq",
    "ordering_key",
    "partition",
    "handler",
    "payload_bytes",
    "content_type",
    "occurred_at",
    "replays",
    "aside",
    "failures",
    "unique_key",
    "delivered_as",
];

/// A column as the catalog describes it.
struct Column {
    name: String,
    data_type: String,
    required: bool,
    unique: bool,
    nullable: bool,
}

/// The SQL that adopts the object with the event table's name; `None` if there is none. If columns may be NULL it
/// reads the whole table, until `until` at most.
pub(super) async fn script(
    transaction: &Transaction<'_>,
    table: &TableName,
    until: Instant,
) -> Result<Option<String>, Failure> {
    let (name, schema) = (table.event(), table.schema());
    let rows = transaction.query_typed(COLUMNS, &[(&name, Type::TEXT), (&schema, Type::TEXT)]).await?;
    if rows.is_empty() {
        return Ok(None);
    }
    let mut columns = Vec::with_capacity(rows.len());
    for row in rows {
        // An object that is no table has one row without a column.
        if let Some(name) = row.try_get(0)? {
            columns.push(Column {
                name,
                data_type: row.try_get(1)?,
                required: row.try_get(2)?,
                unique: row.try_get(3)?,
                nullable: row.try_get(4)?,
            });
        }
    }
    let problems = problems(&columns);
    if problems.is_empty() {
        refuse_nulls(transaction, table, &columns, until).await?;
        return Ok(Some(retype(&columns) + ADOPT));
    }
    let problem = format!(
        "{table} exists and is neither a table of Pillarbox nor one of outbox-java, which could be adopted: {}; nothing \
         was changed; rename it or configure another `table`",
        problems.join(", ")
    );
    Err(Failure::Refused(StoreErrorKind::Schema, problem))
}

/// Finds the problems that keep these columns from being those of outbox-java.
fn problems(columns: &[Column]) -> Vec<String> {
    if columns.is_empty() {
        return vec!["it is not an ordinary table".to_owned()];
    }
    let mut problems = Vec::new();
    for (name, types) in THEIRS {
        match columns.iter().find(|column| column.name == name) {
            None => problems.push(format!("column `{name}` is missing")),
            Some(column) if !types.contains(&column.data_type.as_str()) => {
                problems.push(format!("column `{name}` is of type {} instead of {}", column.data_type, types[0]));
            }
            Some(column) if name == "event_id" && !column.unique => {
                problems.push("column `event_id` is not unique".to_owned());
            }
            Some(_) => {}
        }
    }
    for column in columns {
        let name = column.name.as_str();
        if OURS.contains(&name) {
            problems.push(format!("column `{name}` is there already"));
        } else if column.required && THEIRS.iter().all(|(theirs, _)| *theirs != name) {
            problems.push(format!("column `{name}` is unknown, and required in every INSERT"));
        }
    }
    problems
}

/// Refuses rows without a value that every event has.
async fn refuse_nulls(
    transaction: &Transaction<'_>,
    table: &TableName,
    columns: &[Column],
    until: Instant,
) -> Result<(), Failure> {
    let is_nullable = |name: &str| columns.iter().any(|column| column.name == name && column.nullable);
    let nullable: Vec<_> = REQUIRED.into_iter().filter(|(name, _)| is_nullable(name)).collect();
    if nullable.is_empty() {
        return Ok(());
    }
    let conditions: Vec<String> =
        nullable.iter().map(|(name, _)| format!("coalesce(bool_or(\"{name}\" IS NULL), FALSE)")).collect();
    let event = qualified(table, table.event());
    transaction.batch_execute(&format!("SET LOCAL {}", time_limit(until))).await?;
    let rows = transaction.query_typed(&format!("SELECT {} FROM {event}", conditions.join(", ")), &[]).await?;
    let row = rows.first().ok_or_else(no_row)?;
    let mut problems = Vec::new();
    for (index, (name, value)) in nullable.iter().enumerate() {
        if row.try_get(index)? {
            problems.push(format!("column `{name}` is NULL in some rows, set it to {value}"));
        }
    }
    if problems.is_empty() {
        return Ok(());
    }
    let problem = format!(
        "{table} is a table of outbox-java that cannot be adopted yet: {}; nothing was changed; set these values or delete the rows, \
         and migrate again",
        problems.join("; ")
    );
    Err(Failure::Refused(StoreErrorKind::Schema, problem))
}

/// Brings types to ours where they differ, and only there: it is refused for columns that a view reads.
///
/// A time without its zone is taken to be in the time zone of this session, which is the database's unless the URL says
/// otherwise (`options=-c TimeZone=…`); a JDBC driver would write it in the zone of its own process.
fn retype(columns: &[Column]) -> String {
    let change = |column: &Column| {
        let data_type = match (column.name.as_str(), column.data_type.as_str()) {
            ("available_at" | "created_at" | "done_at", NAIVE) => "TIMESTAMPTZ",
            ("status", "integer") => "SMALLINT",
            ("attempts", "smallint") => "INT",
            _ => return None,
        };
        Some(format!("ALTER COLUMN \"{}\" TYPE {data_type}", column.name))
    };
    let changes: Vec<String> = columns.iter().filter_map(change).collect();
    if changes.is_empty() { String::new() } else { format!("ALTER TABLE {{event}} {};\n", changes.join(", ")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Change = fn(&mut Vec<Column>);

    fn theirs() -> Vec<Column> {
        let column = |(name, types): (&str, &[&str])| Column {
            name: name.to_owned(),
            data_type: types[0].to_owned(),
            required: name == "event_id",
            unique: name == "event_id",
            nullable: name != "event_id",
        };
        THEIRS.into_iter().map(column).collect()
    }

    #[test]
    fn every_difference_is_named() {
        let other = |name: &str, required| Column {
            name: name.to_owned(),
            data_type: "text".to_owned(),
            required,
            unique: false,
            nullable: !required,
        };
        assert_eq!(problems(&theirs()), Vec::<String>::new());
        let table: [(&str, Change); 4] = [
            ("`headers` is missing", |columns| columns.retain(|column| column.name != "headers")),
            ("`status` is of type text instead of smallint", |columns| columns[7].data_type = "text".to_owned()),
            ("`event_id` is not unique", |columns| columns[0].unique = false),
            ("not an ordinary table", Vec::clear),
        ];
        for (part, change) in table {
            let mut columns = theirs();
            change(&mut columns);
            let found = problems(&columns);
            assert!(found.len() == 1 && found[0].contains(part), "{part}: {found:?}");
        }
        let named = |name: &str| (format!("`{name}` is there already"), other(name, false));
        let unknown = ("`region` is unknown".to_owned(), other("region", true));
        for (part, column) in OURS.into_iter().map(named).chain([unknown]) {
            let mut columns = theirs();
            columns.extend([column, other("harmless", false)]);
            let found = problems(&columns);
            assert!(found.len() == 1 && found[0].contains(&part), "{part}: {found:?}");
        }
    }

    #[test]
    fn no_column_that_a_migration_adds_may_be_there() {
        let whole = crate::schema::script(&TableName::default(), 0);
        let (event, later) = whole.split_once("-- What may be delivered at once").expect("version 1 creates the table");
        let of_version_1 = event.lines().filter_map(|line| line.trim_start().strip_prefix('"'));
        let altered = later.split("ALTER TABLE \"outbox_event\"").skip(1).flat_map(|rest| {
            let statement = rest.split(";\n").next().unwrap_or_default();
            statement.split("ADD COLUMN ").skip(1).filter_map(|column| column.split('"').nth(1))
        });
        let names = of_version_1.filter_map(|line| line.split('"').next()).chain(altered);
        let known: Vec<&str> = THEIRS.into_iter().map(|(name, _)| name).chain(OURS).collect();
        let names: Vec<&str> = names.filter(|name| !["version", "applied_at"].contains(name)).collect();
        assert!(names.contains(&"seq") && names.contains(&"delivered_as"), "{names:?}");
        assert!(names.iter().all(|name| known.contains(name)), "{names:?}");
    }

    #[test]
    fn types_change_only_where_they_differ() {
        assert_eq!(retype(&theirs()), "");
        let mut columns = theirs();
        columns[7].data_type = "integer".to_owned();
        columns[10].data_type = NAIVE.to_owned();
        columns[14].data_type = NAIVE.to_owned();
        let sql = "ALTER TABLE {event} ALTER COLUMN \"status\" TYPE SMALLINT, \
                   ALTER COLUMN \"created_at\" TYPE TIMESTAMPTZ;\n";
        assert_eq!(retype(&columns), sql);
    }
}
