use pillarbox_core::clock::Timestamp;
use pillarbox_core::event::GLOBAL_AGGREGATE;
use pillarbox_core::store::{PendingEvent, PendingFilter, PendingState};
use sqlx::query::Query;
use sqlx::sqlite::{SqliteArguments, SqliteRow};
use sqlx::{Row as _, SqlStr, Sqlite};

use super::dead::change;
use super::filter::with_attributes;
use super::record::{attempts, required, text, time};
use crate::store::Session;

/// A page of pending events.
pub(super) async fn list(
    session: &mut Session<'_>,
    filter: &PendingFilter,
    above: i64,
    limit: usize,
) -> sqlx::Result<Vec<PendingEvent>> {
    let list = matching(&session.sql.pending, filter).bind(above).bind(i64::try_from(limit).unwrap_or(i64::MAX));
    list.fetch_all(&mut *session.connection).await?.iter().map(decode).collect()
}

/// The number of pending rows that match.
pub(super) async fn count(session: &mut Session<'_>, filter: &PendingFilter) -> sqlx::Result<u64> {
    matching(&session.sql.count_pending, filter).fetch_one(&mut *session.connection).await?.try_get(0)
}

/// Makes rows due that wait for a time.
pub(super) async fn retry_now(session: &mut Session<'_>, seqs: &[i64]) -> sqlx::Result<Vec<i64>> {
    change(session, &session.sql.retry_now, seqs).await
}

/// Ends pending rows without a delivery.
pub(super) async fn cancel(session: &mut Session<'_>, seqs: &[i64]) -> sqlx::Result<Vec<i64>> {
    change(session, &session.sql.cancel, seqs).await
}

/// A statement on the pending rows that match, to which the filter is bound.
fn matching<'q>(statement: &SqlStr, filter: &'q PendingFilter) -> Query<'q, Sqlite, SqliteArguments> {
    let PendingFilter { attributes, state } = filter;
    with_attributes(statement, attributes).bind(state.map(PendingState::code))
}

fn decode(row: &SqliteRow) -> sqlx::Result<PendingEvent> {
    Ok(PendingEvent {
        seq: row.try_get(0)?,
        event_id: required(row, 1)?,
        event_type: required(row, 2)?,
        aggregate_type: text(row, 3)?.unwrap_or_else(|| GLOBAL_AGGREGATE.to_owned()),
        aggregate_id: text(row, 4)?,
        tenant_id: text(row, 5)?,
        key: text(row, 6)?,
        handler: text(row, 7)?,
        state: PendingState::of_code(row.try_get(8)?),
        attempts: attempts(row, 9)?,
        last_error: text(row, 10)?,
        created_at: Timestamp::from_micros(row.try_get(11)?),
        due_at: time(row, 12)?,
        held_by: PendingEvent::holder(text(row, 13)?.as_deref()),
    })
}
