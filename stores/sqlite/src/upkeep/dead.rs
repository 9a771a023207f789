use std::sync::Arc;

use pillarbox_core::clock::Timestamp;
use pillarbox_core::event::GLOBAL_AGGREGATE;
use pillarbox_core::store::{DeadEvent, DeadFilter};
use sqlx::sqlite::SqliteRow;
use sqlx::{AssertSqlSafe, Row as _, SqliteConnection, query, query_scalar};

use super::record::{attempts, required, text, time};
use crate::json;
use crate::sql::Sql;

/// A page of DEAD events.
pub(super) async fn list(
    connection: &mut SqliteConnection,
    sql: &Sql,
    filter: &DeadFilter,
    above: i64,
    limit: usize,
) -> Result<Vec<DeadEvent>, sqlx::Error> {
    let list = query(AssertSqlSafe(Arc::clone(&sql.dead)))
        .bind(filter.event_type.as_deref())
        .bind(filter.aggregate_type.as_deref())
        .bind(filter.tenant_id.as_deref())
        .bind(filter.handler.as_deref())
        .bind(filter.key.as_deref())
        .bind(above)
        .bind(i64::try_from(limit).unwrap_or(i64::MAX));
    list.fetch_all(connection).await?.iter().map(decode).collect()
}

/// The number of DEAD rows that match.
pub(super) async fn count(
    connection: &mut SqliteConnection,
    sql: &Sql,
    filter: &DeadFilter,
) -> Result<u64, sqlx::Error> {
    let count = query_scalar(AssertSqlSafe(Arc::clone(&sql.dead_count)))
        .bind(filter.event_type.as_deref())
        .bind(filter.aggregate_type.as_deref())
        .bind(filter.tenant_id.as_deref())
        .bind(filter.handler.as_deref())
        .bind(filter.key.as_deref());
    count.fetch_one(connection).await
}

/// Replays or discards these rows, whichever `statement` does, and returns those that were DEAD.
pub(super) async fn change(
    connection: &mut SqliteConnection,
    sql: &Sql,
    statement: &Arc<str>,
    seqs: &[i64],
) -> Result<Vec<i64>, sqlx::Error> {
    let change = query_scalar(AssertSqlSafe(Arc::clone(statement))).bind(json::array(seqs.iter().copied()));
    let changed: Vec<i64> = change.fetch_all(&mut *connection).await?;
    if !changed.is_empty() {
        query(AssertSqlSafe(Arc::clone(&sql.intervene))).execute(connection).await?;
    }
    Ok(changed)
}

fn decode(row: &SqliteRow) -> Result<DeadEvent, sqlx::Error> {
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
