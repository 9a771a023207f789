use std::collections::HashSet;

use bytes::Bytes;
use mysql_async::Row;
use pillarbox_core::event::{EventId, Payload};
use pillarbox_core::store::{FailedAttempt, Record, RowState};

use crate::answer::{EPOCH, bytes, int, owned, text, time};
use crate::error::Failure;
use crate::literal::{Literal, fill};
use crate::store::Inner;

/// Everything there is about one event, row by row.
pub(super) async fn records(store: &Inner, event_id: &str) -> Result<Vec<Record>, Failure> {
    let answers = store.sessions.run(fill(&store.sql.record, &[("event_id", &Literal::text(event_id))])).await?;
    let mut records = answers.rows(0).iter().map(read).collect::<Result<Vec<_>, _>>()?;
    // A handful, sorted here rather than by the server, which would weigh that against reading the table in this order.
    records.sort_by_key(|record| record.seq);
    Ok(records)
}

/// The row with this `seq`.
pub(super) async fn by_seq(store: &Inner, seq: i64) -> Result<Option<Record>, Failure> {
    let answers = store.sessions.run(fill(&store.sql.record_by_seq, &[("seq", &Literal::int(seq))])).await?;
    answers.first(0).map(read).transpose()
}

/// The states of all rows of these events.
pub(super) async fn states(store: &Inner, event_ids: &[EventId]) -> Result<Vec<RowState>, Failure> {
    let ids: Vec<&str> = event_ids.iter().map(EventId::as_str).collect();
    let answers = store.sessions.run(fill(&store.sql.states, &[("event_ids", &Literal::texts(&ids))])).await?;
    let asked: HashSet<&str> = ids.into_iter().collect();
    let state = |row: &Row| {
        let (event_id, handler) = (text(row, 0)?.unwrap_or_default(), text(row, 1)?.map(Box::from));
        Ok(RowState::new(EventId::from_stored(event_id), handler, int(row, 2)?, owned(row, 3)?, owned(row, 4)?))
    };
    let mut states = answers.rows(0).iter().map(state).collect::<Result<Vec<_>, Failure>>()?;
    states.retain(|state| asked.contains(state.event_id.as_str()));
    Ok(states)
}

fn read(row: &Row) -> Result<Record, Failure> {
    let payload = match (owned(row, 7)?, bytes(row, 8)?) {
        (Some(json), _) => Some(Payload::Json(json.into())),
        (None, Some(bytes)) => Some(Payload::Binary {
            content_type: owned(row, 9)?.unwrap_or_default().into(),
            bytes: Bytes::copy_from_slice(bytes),
        }),
        (None, None) => None,
    };
    Ok(Record {
        seq: int(row, 0)?,
        event_id: owned(row, 1)?.unwrap_or_default(),
        event_type: owned(row, 2)?.unwrap_or_default(),
        aggregate_type: owned(row, 3)?,
        aggregate_id: owned(row, 4)?,
        tenant_id: owned(row, 5)?,
        ordering_key: owned(row, 6)?,
        unique_key: owned(row, 22)?,
        handler: owned(row, 19)?,
        payload,
        headers: owned(row, 10)?,
        status: i16::try_from(int(row, 11)?).unwrap_or(i16::MAX),
        attempts: i32::try_from(int(row, 12)?).unwrap_or(i32::MAX),
        replays: i32::try_from(int(row, 20)?).unwrap_or(i32::MAX),
        available_at: time(row, 13)?,
        occurred_at: time(row, 14)?,
        created_at: time(row, 15)?.unwrap_or(EPOCH),
        done_at: time(row, 16)?,
        last_error: owned(row, 17)?,
        locked_by: owned(row, 18)?,
        delivered_as: owned(row, 23)?,
        failures: FailedAttempt::all_of(text(row, 21)?),
    })
}
