use std::sync::Arc;
use std::time::Duration;

use pillarbox_core::write::{Bind, NewRow, Statement};

use crate::sql::Sql;

/// One statement, whatever the number of rows: a plain one for a single row, arrays for more.
pub(crate) fn statements<'a>(sql: &Sql, rows: &'a [NewRow]) -> Vec<Statement<'a>> {
    let statement = match rows {
        [] => return Vec::new(),
        [row] => Statement { sql: Arc::clone(&sql.insert_one), binds: one(row), reusable: true },
        rows => Statement { sql: Arc::clone(&sql.insert_many), binds: many(rows), reusable: true },
    };
    vec![statement]
}

fn one(row: &NewRow) -> Vec<Bind<'_>> {
    let event = row.envelope();
    vec![
        Bind::Text(Some(row.event_id())),
        Bind::Text(Some(event.event_type())),
        Bind::Text(Some(event.aggregate_type())),
        Bind::Text(event.aggregate_id()),
        Bind::Text(event.tenant_id()),
        Bind::Text(event.key()),
        Bind::Int(Some(row.partition().into())),
        Bind::Text(row.payload()),
        Bind::Bytes(row.payload_bytes().map(|(bytes, _)| bytes)),
        Bind::Text(row.payload_bytes().map(|(_, content_type)| content_type)),
        Bind::Text(row.headers()),
        Bind::Int(row.available_at().map(|time| time.as_micros())),
        Bind::Int(Some(event.occurred_at().as_micros())),
        Bind::Text(row.locked_by()),
        Bind::Text(row.handler()),
        Bind::Int(row.delay().map(micros)),
    ]
}

/// The same columns in the same order, each as an array.
fn many(rows: &[NewRow]) -> Vec<Bind<'_>> {
    vec![
        texts(rows, |row| Some(row.event_id())),
        texts(rows, |row| Some(row.envelope().event_type())),
        texts(rows, |row| Some(row.envelope().aggregate_type())),
        texts(rows, |row| row.envelope().aggregate_id()),
        texts(rows, |row| row.envelope().tenant_id()),
        texts(rows, |row| row.envelope().key()),
        ints(rows, |row| Some(row.partition().into())),
        texts(rows, NewRow::payload),
        Bind::ByteArrays(rows.iter().map(|row| row.payload_bytes().map(|(bytes, _)| bytes)).collect()),
        texts(rows, |row| row.payload_bytes().map(|(_, content_type)| content_type)),
        texts(rows, NewRow::headers),
        ints(rows, |row| row.available_at().map(|time| time.as_micros())),
        ints(rows, |row| Some(row.envelope().occurred_at().as_micros())),
        texts(rows, NewRow::locked_by),
        texts(rows, NewRow::handler),
        ints(rows, |row| row.delay().map(micros)),
    ]
}

fn texts(rows: &[NewRow], column: impl Fn(&NewRow) -> Option<&str>) -> Bind<'_> {
    Bind::Texts(rows.iter().map(column).collect())
}

fn ints(rows: &[NewRow], column: impl Fn(&NewRow) -> Option<i64>) -> Bind<'_> {
    Bind::Ints(rows.iter().map(column).collect())
}

/// Events are delayed by 1,000 years at most.
fn micros(delay: Duration) -> i64 {
    i64::try_from(delay.as_micros()).unwrap_or(i64::MAX)
}
