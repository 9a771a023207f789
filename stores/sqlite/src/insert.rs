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
    unique: [Arc<str>; 3],
}

impl Inserts {
    pub(crate) fn new(table: &TableName) -> Self {
        let head = render(table, &format!("INSERT INTO {{event}} ({}) VALUES", COLUMNS.join(", ")));
        let kept = (1..=KEPT).map(|rows| text(&head, rows)).collect();
        let unique_columns = format!("INSERT INTO {{event}} ({}, unique_key) VALUES", COLUMNS.join(", "));
        let unless = "ON CONFLICT (unique_key, coalesce(handler, '')) WHERE unique_key IS NOT NULL DO NOTHING";
        let unique = [
            render(table, include_str!("../sql/free_unique.sql")).into(),
            format!("{}\n{}\n{unless}\nRETURNING seq", render(table, &unique_columns), row(&["?"])).into(),
            render(table, include_str!("../sql/unique_pending.sql")).into(),
        ];
        Self { head, kept, unique }
    }

    /// Rows go in in the order of `VALUES`, and `AUTOINCREMENT` gives each a greater `seq` than any before.
    pub(crate) fn statements<'a>(&self, rows: &'a [NewRow]) -> Vec<Statement<'a>> {
        rows.chunks(MAX_ROWS).map(|rows| self.statement(rows)).collect()
    }

    /// Three statements: a row that has ended gives up its unique key; the row is inserted unless another has the key; and that one is
    /// looked for.
    pub(crate) fn unique<'a>(&self, row: &'a NewRow) -> Vec<Statement<'a>> {
        let [free, insert, pending] = &self.unique;
        let statement = |sql: &Arc<str>, binds| Statement { sql: Arc::clone(sql), binds, reusable: true };
        let key = [row.unique_key(), row.handler(), Some(row.event_id())].map(Bind::Text);
        vec![
            statement(free, key[..2].to_vec()),
            statement(insert, Bind::of_unique(row, Timestamp::as_micros)),
            statement(pending, key.into()),
        ]
    }

    /// The statements around the insert of a row with a unique key.
    #[cfg(test)]
    pub(crate) fn around_unique(&self) -> [&str; 2] {
        let [free, _, pending] = &self.unique;
        [free, pending]
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
    format!("{head}{}\nRETURNING seq", vec![format!("\n{}", row(&[])); rows].join(",")).into()
}

/// The values of one row, and `more` behind them.
fn row(more: &[&str]) -> String {
    let value = |column: &&str| match *column {
        "available_at" => format!("coalesce(?, {NOW} + ?)"),
        _ => "?".to_owned(),
    };
    let values = COLUMNS.iter().map(value).chain(more.iter().map(|value| (*value).to_owned()));
    format!("({})", values.collect::<Vec<_>>().join(", "))
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
