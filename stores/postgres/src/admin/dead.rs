use pillarbox_core::clock::Timestamp;
use pillarbox_core::store::{DeadEvent, DeadFilter};
use tokio_postgres::Row;
use tokio_postgres::types::Type;

use super::filter::{are_impossible, attributes};
use crate::error::Failure;
use crate::fetch::{from, size};
use crate::row::Micros;
use crate::session::Param;
use crate::store::Inner;

/// A page of DEAD events.
pub(super) async fn list(
    store: &Inner,
    filter: &DeadFilter,
    above: i64,
    limit: usize,
) -> Result<Vec<DeadEvent>, Failure> {
    let (above, limit) = (from(above), size(limit));
    if is_impossible(filter) {
        return Ok(Vec::new());
    }
    let times = times(filter);
    let mut params = conditions(filter, &times);
    params.extend([(&above as _, Type::INT8), (&limit as _, Type::INT8)]);
    let session = store.sessions.session().await?;
    let rows = session.query(&store.sql.dead, &params).await?;
    session.finish();
    rows.iter().map(decode).collect()
}

/// The number of DEAD rows that match.
pub(super) async fn count(store: &Inner, filter: &DeadFilter) -> Result<u64, Failure> {
    if is_impossible(filter) {
        return Ok(0);
    }
    let times = times(filter);
    let session = store.sessions.session().await?;
    let rows = session.query(&store.sql.count_dead, &conditions(filter, &times)).await?;
    session.finish();
    let count: i64 = rows.first().map_or(Ok(0), |row| row.try_get(0))?;
    Ok(u64::try_from(count).unwrap_or(0))
}

/// Replays or discards these rows, whichever `statement` does, and returns those that were DEAD.
pub(super) async fn change(store: &Inner, statement: &str, seqs: &[i64]) -> Result<Vec<i64>, Failure> {
    let session = store.sessions.session().await?;
    let rows = session.query(statement, &[(&seqs, Type::INT8_ARRAY)]).await?;
    session.finish();
    rows.iter().map(|row| Ok(row.try_get(0)?)).collect()
}

/// True if the filter names text that no row has, since the server refuses it: with a NUL in it.
fn is_impossible(filter: &DeadFilter) -> bool {
    are_impossible(&filter.attributes) || filter.error.as_ref().is_some_and(|text| text.contains('\0'))
}

/// The bounds of the end.
fn times(filter: &DeadFilter) -> [Option<Micros>; 2] {
    [filter.since, filter.before].map(|time| time.map(Micros::from))
}

fn conditions<'a>(filter: &'a DeadFilter, [since, before]: &'a [Option<Micros>; 2]) -> Vec<Param<'a>> {
    let mut params = attributes(&filter.attributes);
    params.extend([
        (since as _, Type::TIMESTAMPTZ),
        (before as _, Type::TIMESTAMPTZ),
        (&filter.error as _, Type::TEXT),
    ]);
    params
}

fn decode(row: &Row) -> Result<DeadEvent, Failure> {
    Ok(DeadEvent {
        seq: row.try_get(0)?,
        event_id: row.try_get(1)?,
        event_type: row.try_get(2)?,
        aggregate_type: row.try_get(3)?,
        aggregate_id: row.try_get(4)?,
        tenant_id: row.try_get(5)?,
        key: row.try_get(6)?,
        handler: row.try_get(11)?,
        attempts: row.try_get(7)?,
        last_error: row.try_get(8)?,
        created_at: row.try_get::<_, Micros>(9)?.into(),
        dead_at: row.try_get::<_, Option<Micros>>(10)?.map(Timestamp::from),
    })
}
