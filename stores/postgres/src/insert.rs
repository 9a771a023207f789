use std::sync::Arc;

use pillarbox_connect::batches;
use pillarbox_core::clock::Timestamp;
use pillarbox_core::write::{Bind, NewRow, Statement};

use crate::sql::Sql;

/// Rows of one statement at most: the server sorts them.
const MAX_ROWS: usize = 10_000;
/// Bytes of one statement, roughly, and but for a single row. The server holds them several times over, and takes no value of 1 GiB.
const MAX_BYTES: usize = 16 << 20;
/// The bytes of a row's other columns, roughly.
const OTHERS: usize = 1024;

/// One statement for as many rows as fit: a plain one for a single row, arrays for more. Behind a pooler they are not `reusable`.
pub(crate) fn statements<'a>(sql: &Sql, reusable: bool, rows: &'a [NewRow]) -> Vec<Statement<'a>> {
    let batches = batches(rows, MAX_ROWS, MAX_BYTES, |row| OTHERS + row.envelope().content_bytes());
    let statement = |rows: &'a [NewRow]| match rows {
        [row] => {
            Statement { sql: Arc::clone(&sql.insert_one), binds: Bind::of(row, Timestamp::as_micros).into(), reusable }
        }
        rows => Statement { sql: Arc::clone(&sql.insert_many), binds: many(rows), reusable },
    };
    batches.map(statement).collect()
}

/// One statement that inserts the row unless one with its unique key is pending.
pub(crate) fn unique<'a>(sql: &Sql, reusable: bool, row: &'a NewRow) -> Vec<Statement<'a>> {
    let binds = Bind::of_unique(row, Timestamp::as_micros);
    vec![Statement { sql: Arc::clone(&sql.insert_unique), binds, reusable }]
}

/// The values of [`Bind::of`] in the same order, those of each column as an array.
fn many(rows: &[NewRow]) -> Vec<Bind<'_>> {
    let mut columns = Vec::new();
    for row in rows {
        for (place, value) in Bind::of(row, Timestamp::as_micros).into_iter().enumerate() {
            match (columns.get_mut(place), value) {
                (Some(Bind::Ints(column)), Bind::Int(value)) => column.push(value),
                (Some(Bind::Texts(column)), Bind::Text(value)) => column.push(value),
                (Some(Bind::ByteArrays(column)), Bind::Bytes(value)) => column.push(value),
                (None, Bind::Int(value)) => columns.push(Bind::Ints(vec![value])),
                (None, Bind::Text(value)) => columns.push(Bind::Texts(vec![value])),
                (None, Bind::Bytes(value)) => columns.push(Bind::ByteArrays(vec![value])),
                // A column has values of one kind.
                (_, other) => debug_assert!(false, "{other:?} in column {place}"),
            }
        }
    }
    columns
}

#[cfg(test)]
mod tests {
    use super::*;
    use pillarbox_core::event::Envelope;
    use pillarbox_core::store::TableName;

    #[test]
    fn behind_a_pooler_no_statement_is_prepared() {
        let sql = Sql::new(&TableName::parse("outbox_event").expect("valid"));
        let event = || Envelope::builder("test.event").unique_key("k").payload_json("{}").build().expect("valid");
        let rows = [NewRow::new(event()), NewRow::new(event())];
        for reusable in [false, true] {
            let all = [
                statements(&sql, reusable, &rows[..1]),
                statements(&sql, reusable, &rows),
                unique(&sql, reusable, &rows[0]),
            ];
            assert!(all.iter().flatten().all(|statement| statement.reusable == reusable));
        }
    }

    #[test]
    fn a_statement_has_a_bounded_number_of_rows_and_bytes() {
        let sql = Sql::new(&TableName::parse("outbox_event").expect("valid"));
        let sizes = |count: usize, bytes: usize| -> Vec<usize> {
            let payload = format!("\"{}\"", "x".repeat(bytes));
            let event = || Envelope::json("test.event", payload.clone()).expect("valid");
            let rows: Vec<NewRow> = std::iter::repeat_with(|| NewRow::new(event())).take(count).collect();
            let rows_of = |statement: &Statement<'_>| match statement.binds.first() {
                Some(Bind::Texts(column)) => column.len(),
                _ => 1,
            };
            statements(&sql, true, &rows).iter().map(rows_of).collect()
        };
        assert_eq!(sizes(0, 1), [0; 0]);
        assert_eq!(sizes(1, 1), [1]);
        assert_eq!(sizes(10_001, 1), [10_000, 1], "the last one by itself");
        assert_eq!(sizes(40, (1 << 20) - 2), [15, 15, 10], "16 MiB with what else is in a row");
    }
}
