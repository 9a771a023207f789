use bytes::Bytes;
use pillarbox_core::clock::Timestamp;
use pillarbox_core::event::{EventId, Payload};
use pillarbox_core::store::{FailedAttempt, Record, RowState};
use sqlx::sqlite::SqliteRow;
use sqlx::{Row as _, query};

use crate::json;
use crate::store::Session;

/// Everything there is about one event, row by row.
pub(super) async fn records(session: &mut Session<'_>, event_id: &str) -> sqlx::Result<Vec<Record>> {
    let found = query(session.sql.record.clone()).bind(event_id).fetch_all(&mut *session.connection).await?;
    let mut records = found.iter().map(decode).collect::<Result<Vec<_>, _>>()?;
    // A handful, and the index has them by their handlers.
    records.sort_by_key(|record| record.seq);
    Ok(records)
}

/// The row with this `seq`.
pub(super) async fn by_seq(session: &mut Session<'_>, seq: i64) -> sqlx::Result<Option<Record>> {
    let found = query(session.sql.record_by_seq.clone()).bind(seq).fetch_optional(&mut *session.connection).await?;
    found.as_ref().map(decode).transpose()
}

/// The states of all rows of these events.
pub(super) async fn states(session: &mut Session<'_>, event_ids: &[EventId]) -> sqlx::Result<Vec<RowState>> {
    let found = query(session.sql.states.clone()).bind(json::event_ids(event_ids)).fetch_all(&mut *session.connection);
    let state = |row: &SqliteRow| {
        let (event_id, handler) = (required(row, 0)?, text(row, 1)?.map(String::into_boxed_str));
        Ok(RowState::new(EventId::from_stored(&event_id), handler, row.try_get(2)?, text(row, 3)?, text(row, 4)?))
    };
    found.await?.iter().map(state).collect()
}

fn decode(row: &SqliteRow) -> sqlx::Result<Record> {
    Ok(Record {
        seq: row.try_get(0)?,
        event_id: required(row, 1)?,
        event_type: required(row, 2)?,
        aggregate_type: text(row, 3)?,
        aggregate_id: text(row, 4)?,
        tenant_id: text(row, 5)?,
        ordering_key: text(row, 6)?,
        unique_key: text(row, 22)?,
        handler: text(row, 19)?,
        payload: payload(row)?,
        headers: text(row, 10)?,
        status: row.try_get(11)?,
        attempts: attempts(row, 12)?,
        replays: attempts(row, 20)?,
        available_at: time(row, 13)?,
        occurred_at: time(row, 14)?,
        created_at: Timestamp::from_micros(row.try_get(15)?),
        done_at: time(row, 16)?,
        last_error: text(row, 17)?,
        locked_by: text(row, 18)?,
        delivered_as: text(row, 23)?,
        failures: FailedAttempt::all_of(text(row, 21)?.as_deref()),
    })
}

fn payload(row: &SqliteRow) -> sqlx::Result<Option<Payload>> {
    if let Some(json) = text(row, 7)? {
        return Ok(Some(Payload::Json(json.into())));
    }
    let Some(bytes) = row.try_get::<Option<&[u8]>, _>(8)? else { return Ok(None) };
    let content_type = text(row, 9)?.unwrap_or_else(|| "application/octet-stream".to_owned());
    Ok(Some(Payload::Binary { content_type: content_type.into(), bytes: Bytes::copy_from_slice(bytes) }))
}

/// A column's text. Bytes that are no UTF-8 are replaced: operators look at the very rows that cannot be delivered.
pub(super) fn text(row: &SqliteRow, index: usize) -> sqlx::Result<Option<String>> {
    let bytes: Option<&[u8]> = row.try_get(index)?;
    Ok(bytes.map(|bytes| String::from_utf8_lossy(bytes).into_owned()))
}

/// The text of a column that cannot be NULL.
pub(super) fn required(row: &SqliteRow, index: usize) -> sqlx::Result<String> {
    Ok(text(row, index)?.unwrap_or_default())
}

pub(super) fn attempts(row: &SqliteRow, index: usize) -> sqlx::Result<i32> {
    Ok(i32::try_from(row.try_get::<i64, _>(index)?).unwrap_or(i32::MAX))
}

pub(super) fn time(row: &SqliteRow, index: usize) -> sqlx::Result<Option<Timestamp>> {
    Ok(row.try_get::<Option<i64>, _>(index)?.map(Timestamp::from_micros))
}
