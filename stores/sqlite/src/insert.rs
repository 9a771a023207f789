use std::sync::Arc;

use pillarbox_core::clock::Timestamp;
use pillarbox_core::store::TableName;
use pillarbox_core::write::{Bind, NewRow, Statement};

use crate::sql::{NOW, render};

const COLUMNS: [&str; 15] = [
    "event_id",
    "event_type",
    "aggregate_type",
    "aggregate_id",
    "tenant_id",
    "ordering_key",
    "partition",
    "payload",
    "payload_bytes",
    "content_type",
    "headers",
    "available_at",
    "occurred_at",
    "locked_by",
    "handler",
];

/// Values of a row: one for each column, and the delay, which SQLite adds to its time.
const VALUES: usize = COLUMNS.len() + 1;

/// SQLite takes 32,766 values in one statement.
const MAX_ROWS: usize = 32_766 / VALUES;

/// Up to so many rows the text is kept, and worth preparing once per connection; larger batches seldom repeat their size.
const KEPT: usize = 8;

/// Renders the inserts of one table.
#[derive(Debug)]
pub(crate) struct Inserts {
    head: String,
    kept: Vec<Arc<str>>,
}

impl Inserts {
    pub(crate) fn new(table: &TableName) -> Self {
        let head = render(table, &format!("INSERT INTO {{event}} ({}) VALUES", COLUMNS.join(", ")));
        let kept = (1..=KEPT).map(|rows| text(&head, rows)).collect();
        Self { head, kept }
    }

    /// Rows go in in the order of `VALUES`, and `AUTOINCREMENT` gives each a greater `seq` than any before.
    pub(crate) fn statements<'a>(&self, rows: &'a [NewRow]) -> Vec<Statement<'a>> {
        rows.chunks(MAX_ROWS).map(|rows| self.statement(rows)).collect()
    }

    fn statement<'a>(&self, rows: &'a [NewRow]) -> Statement<'a> {
        let kept = self.kept.get(rows.len() - 1);
        Statement {
            sql: kept.map_or_else(|| text(&self.head, rows.len()), Arc::clone),
            binds: rows.iter().flat_map(|row| Bind::of(row, Timestamp::as_micros)).collect(),
            reusable: kept.is_some(),
        }
    }
}

fn text(head: &str, rows: usize) -> Arc<str> {
    let value = |column: &&str| match *column {
        "available_at" => format!("coalesce(?, {NOW} + ?)"),
        _ => "?".to_owned(),
    };
    let row = format!("\n({})", COLUMNS.iter().map(value).collect::<Vec<_>>().join(", "));
    format!("{head}{}\nRETURNING seq", vec![row; rows].join(",")).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_rows_are_one_statement() {
        let sql = text("INSERT INTO t (…) VALUES", 2);
        let row = format!("(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, coalesce(?, {NOW} + ?), ?, ?, ?)");
        assert_eq!(*sql, format!("INSERT INTO t (…) VALUES\n{row},\n{row}\nRETURNING seq"));
    }
}
