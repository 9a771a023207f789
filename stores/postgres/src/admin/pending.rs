use pillarbox_core::clock::Timestamp;
use pillarbox_core::store::{PendingEvent, PendingFilter, PendingState};
use tokio_postgres::Row;
use tokio_postgres::types::Type;

use super::filter::{are_impossible, attributes};
use crate::error::Failure;
use crate::fetch::{from, size};
use crate::row::Micros;
use crate::session::Param;
use crate::sql::Intervention;
use crate::store::Inner;

/// A page of pending events.
pub(super) async fn list(
    store: &Inner,
    filter: &PendingFilter,
    above: i64,
    limit: usize,
) -> Result<Vec<PendingEvent>, Failure> {
    if are_impossible(&filter.attributes) {
        return Ok(Vec::new());
    }
    let (above, limit, state) = (from(above), size(limit), filter.state.map(PendingState::code));
    let mut params = conditions(filter, &state);
    params.extend([(&above as _, Type::INT8), (&limit as _, Type::INT8)]);
    let mut session = store.sessions.session().await?;
    let rows = session.query_by_index(&store.sql.pending, &params).await?;
    session.finish();
    rows.iter().map(decode).collect()
}

/// The number of pending rows that match.
pub(super) async fn count(store: &Inner, filter: &PendingFilter) -> Result<u64, Failure> {
    if are_impossible(&filter.attributes) {
        return Ok(0);
    }
    let state = filter.state.map(PendingState::code);
    let mut session = store.sessions.session().await?;
    let rows = session.query_by_index(&store.sql.count_pending, &conditions(filter, &state)).await?;
    session.finish();
    let count: i64 = rows.first().map_or(Ok(0), |row| row.try_get(0))?;
    Ok(u64::try_from(count).unwrap_or(0))
}

/// Changes those of the rows that are pending as `intervention` wants them, and returns which they were.
pub(super) async fn change(store: &Inner, intervention: &Intervention, seqs: &[i64]) -> Result<Vec<i64>, Failure> {
    let session = store.sessions.session().await?;
    let (mut changed, mut passed_over) = (Vec::new(), Vec::new());
    for row in session.query(&intervention.free, &[(&seqs, Type::INT8_ARRAY)]).await? {
        let is_changed = row.try_get(1)?;
        if is_changed { &mut changed } else { &mut passed_over }.push(row.try_get::<_, i64>(0)?);
    }
    for seq in passed_over {
        let alone: &[i64] = &[seq];
        for row in session.query(&intervention.any, &[(&alone, Type::INT8_ARRAY)]).await? {
            changed.extend(row.try_get::<_, bool>(1)?.then_some(seq));
        }
    }
    session.finish();
    Ok(changed)
}

fn conditions<'a>(filter: &'a PendingFilter, state: &'a Option<i16>) -> Vec<Param<'a>> {
    let mut params = attributes(&filter.attributes);
    params.push((state, Type::INT2));
    params
}

fn decode(row: &Row) -> Result<PendingEvent, Failure> {
    Ok(PendingEvent {
        seq: row.try_get(0)?,
        event_id: row.try_get(1)?,
        event_type: row.try_get(2)?,
        aggregate_type: row.try_get(3)?,
        aggregate_id: row.try_get(4)?,
        tenant_id: row.try_get(5)?,
        key: row.try_get(6)?,
        handler: row.try_get(7)?,
        state: PendingState::of_code(row.try_get::<_, i16>(8)?.into()),
        attempts: row.try_get(9)?,
        last_error: row.try_get(10)?,
        created_at: row.try_get::<_, Micros>(11)?.into(),
        due_at: row.try_get::<_, Option<Micros>>(12)?.map(Timestamp::from),
        held_by: PendingEvent::holder(row.try_get(13)?),
    })
}
