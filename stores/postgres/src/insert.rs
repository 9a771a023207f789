use std::sync::Arc;

use pillarbox_core::clock::Timestamp;
use pillarbox_core::write::{Bind, NewRow, Statement};

use crate::sql::Sql;

/// One statement, whatever the number of rows: a plain one for a single row, arrays for more.
pub(crate) fn statements<'a>(sql: &Sql, rows: &'a [NewRow]) -> Vec<Statement<'a>> {
    let statement = match rows {
        [] => return Vec::new(),
        [row] => Statement {
            sql: Arc::clone(&sql.insert_one),
            binds: Bind::of(row, Timestamp::as_micros).into(),
            reusable: true,
        },
        rows => Statement { sql: Arc::clone(&sql.insert_many), binds: many(rows), reusable: true },
    };
    vec![statement]
}

/// One statement that inserts the row unless one with its unique key is pending.
pub(crate) fn unique<'a>(sql: &Sql, row: &'a NewRow) -> Vec<Statement<'a>> {
    let binds = Bind::of_unique(row, Timestamp::as_micros);
    vec![Statement { sql: Arc::clone(&sql.insert_unique), binds, reusable: true }]
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
