use bytes::Bytes;
use pillarbox_core::clock::Timestamp;
use pillarbox_core::event::{EventId, Payload};
use pillarbox_core::store::{FailedAttempt, Record, RowState};
use tokio_postgres::Row;
use tokio_postgres::types::Type;

use crate::error::Failure;
use crate::row::{Micros, TOO_LARGE};
use crate::store::Inner;

/// Everything there is about one event, row by row.
pub(super) async fn records(store: &Inner, event_id: &str) -> Result<Vec<Record>, Failure> {
    // The server would refuse it as text; no event has such an id.
    if event_id.contains('\0') {
        return Ok(Vec::new());
    }
    let session = store.sessions.session().await?;
    let rows = session.query(&store.sql.record, &[(&event_id, Type::TEXT)]).await?;
    session.finish();
    let mut records = rows.iter().map(decode).collect::<Result<Vec<_>, _>>()?;
    // Sorted here: to be spared a sort, the server would read the whole table in this order.
    records.sort_by_key(|record| record.seq);
    Ok(records)
}

/// The row with this `seq`.
pub(super) async fn by_seq(store: &Inner, seq: i64) -> Result<Option<Record>, Failure> {
    let session = store.sessions.session().await?;
    let rows = session.query(&store.sql.record_by_seq, &[(&seq, Type::INT8)]).await?;
    session.finish();
    rows.first().map(decode).transpose()
}

/// The states of all rows of these events.
pub(super) async fn states(store: &Inner, event_ids: &[EventId]) -> Result<Vec<RowState>, Failure> {
    // One with a NUL would be refused as text; no event has such an id.
    let ids: Vec<&str> = event_ids.iter().map(EventId::as_str).filter(|id| !id.contains('\0')).collect();
    let session = store.sessions.session().await?;
    let rows = session.query(&store.sql.states, &[(&ids, Type::TEXT_ARRAY)]).await?;
    session.finish();
    let state = |row: &Row| {
        let handler: Option<&str> = row.try_get(1)?;
        let (event_id, status): (&str, i16) = (row.try_get(0)?, row.try_get(2)?);
        let (error, position) = (row.try_get(3)?, row.try_get(4)?);
        Ok(RowState::new(EventId::from_stored(event_id), handler.map(Box::from), status.into(), error, position))
    };
    rows.iter().map(state).collect()
}

fn decode(row: &Row) -> Result<Record, Failure> {
    Ok(Record {
        seq: row.try_get(0)?,
        event_id: row.try_get(1)?,
        event_type: row.try_get(2)?,
        aggregate_type: row.try_get(3)?,
        aggregate_id: row.try_get(4)?,
        tenant_id: row.try_get(5)?,
        ordering_key: row.try_get(6)?,
        unique_key: row.try_get(22)?,
        handler: row.try_get(19)?,
        payload: payload(row)?,
        headers: row.try_get::<_, Option<String>>(10)?.filter(|headers| !headers.starts_with(TOO_LARGE)),
        status: row.try_get(11)?,
        attempts: row.try_get(12)?,
        replays: row.try_get(20)?,
        available_at: time(row, 13)?,
        occurred_at: time(row, 14)?,
        created_at: row.try_get::<_, Micros>(15)?.into(),
        done_at: time(row, 16)?,
        last_error: row.try_get(17)?,
        locked_by: row.try_get(18)?,
        delivered_as: row.try_get(23)?,
        failures: FailedAttempt::all_of(row.try_get(21)?),
    })
}

/// Rows inserted by hand may hold both kinds, or bytes of no declared type. `None` if it is too large to be read.
fn payload(row: &Row) -> Result<Option<Payload>, Failure> {
    let (json, bytes): (Option<&str>, Option<&[u8]>) = (row.try_get(7)?, row.try_get(8)?);
    if json.is_some_and(|json| json.starts_with(TOO_LARGE)) {
        return Ok(None);
    }
    if let Some(json) = json {
        return Ok(Some(Payload::Json(json.into())));
    }
    let content_type: Option<&str> = row.try_get(9)?;
    let binary = |bytes| Payload::Binary {
        content_type: content_type.unwrap_or_default().into(),
        bytes: Bytes::copy_from_slice(bytes),
    };
    Ok(bytes.map(binary))
}

fn time(row: &Row, index: usize) -> Result<Option<Timestamp>, Failure> {
    Ok(row.try_get::<_, Option<Micros>>(index)?.map(Into::into))
}
