use pillarbox_core::clock::Timestamp;
use pillarbox_core::event::GLOBAL_AGGREGATE;
use pillarbox_core::store::{DeadEvent, DeadFilter};
use sqlx::query::Query;
use sqlx::sqlite::{SqliteArguments, SqliteRow};
use sqlx::{Row as _, SqlStr, Sqlite, query, query_scalar};

use super::filter::with_attributes;
use super::record::{attempts, required, text, time};
use crate::json;
use crate::store::Session;

/// A page of DEAD events.
pub(super) async fn list(
    session: &mut Session<'_>,
    filter: &DeadFilter,
    above: i64,
    limit: usize,
) -> sqlx::Result<Vec<DeadEvent>> {
    let list = matching(&session.sql.dead, filter).bind(above).bind(i64::try_from(limit).unwrap_or(i64::MAX));
    list.fetch_all(&mut *session.connection).await?.iter().map(decode).collect()
}

/// The number of DEAD rows that match.
pub(super) async fn count(session: &mut Session<'_>, filter: &DeadFilter) -> sqlx::Result<u64> {
    matching(&session.sql.count_dead, filter).fetch_one(&mut *session.connection).await?.try_get(0)
}

/// A statement on the DEAD rows that match, to which the filter is bound.
fn matching<'q>(statement: &SqlStr, filter: &'q DeadFilter) -> Query<'q, Sqlite, SqliteArguments> {
    let DeadFilter { attributes, since, before, error } = filter;
    let named = with_attributes(statement, attributes);
    named.bind(since.map(Timestamp::as_micros)).bind(before.map(Timestamp::as_micros)).bind(error.as_deref())
}

/// Makes DEAD rows NEW.
pub(super) async fn replay(session: &mut Session<'_>, seqs: &[i64]) -> sqlx::Result<Vec<i64>> {
    change(session, &session.sql.replay, seqs).await
}

/// Deletes DEAD rows.
pub(super) async fn discard(session: &mut Session<'_>, seqs: &[i64]) -> sqlx::Result<Vec<i64>> {
    change(session, &session.sql.discard, seqs).await
}

/// Changes those of the rows that the statement is about, and returns which they were.
pub(super) async fn change(session: &mut Session<'_>, statement: &SqlStr, seqs: &[i64]) -> sqlx::Result<Vec<i64>> {
    let change = query_scalar(statement.clone()).bind(json::array(seqs.iter().copied()));
    let changed: Vec<i64> = change.fetch_all(&mut *session.connection).await?;
    if !changed.is_empty() {
        query(session.sql.intervene.clone()).execute(&mut *session.connection).await?;
    }
    Ok(changed)
}

fn decode(row: &SqliteRow) -> sqlx::Result<DeadEvent> {
    Ok(DeadEvent {
        seq: row.try_get(0)?,
        event_id: required(row, 1)?,
        event_type: required(row, 2)?,
        aggregate_type: text(row, 3)?.unwrap_or_else(|| GLOBAL_AGGREGATE.to_owned()),
        aggregate_id: text(row, 4)?,
        tenant_id: text(row, 5)?,
        key: text(row, 6)?,
        handler: text(row, 11)?,
        attempts: attempts(row, 7)?,
        last_error: text(row, 8)?,
        created_at: Timestamp::from_micros(row.try_get(9)?),
        dead_at: time(row, 10)?,
    })
}
