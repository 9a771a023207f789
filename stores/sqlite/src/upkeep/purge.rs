use pillarbox_core::store::{operation, refusal};
use std::sync::Arc;

use pillarbox_core::error::{StoreError, StoreErrorKind};
use pillarbox_core::row::Status;
use pillarbox_core::store::{Purge, Purgeable, Purged};
use sqlx::{AssertSqlSafe, SqliteConnection, query, query_as, query_scalar};

use crate::ownership::span;
use crate::sql::Sql;

/// Refuses to purge pending rows while a living node may hold them.
pub(super) async fn check_nodes(
    connection: &mut SqliteConnection,
    sql: &Sql,
    purge: &Purge,
) -> Result<Option<StoreError>, sqlx::Error> {
    if purge.what != Purgeable::All {
        return Ok(None);
    }
    let alive: Option<String> =
        query_scalar(AssertSqlSafe(Arc::clone(&sql.node_alive))).fetch_optional(connection).await?;
    Ok(alive.map(|node| {
        StoreError::new(StoreErrorKind::IncompatibleMode, operation::PURGE, refusal::still_delivers(&node))
    }))
}

/// Deletes what is old within one window of rows.
pub(super) async fn purge(connection: &mut SqliteConnection, sql: &Sql, purge: &Purge) -> Result<Purged, sqlx::Error> {
    let limit = i64::try_from(purge.limit).unwrap_or(i64::MAX);
    let (before, rows, last, over): (i64, i64, Option<i64>, Option<bool>) =
        query_as(AssertSqlSafe(Arc::clone(&sql.purge_window)))
            .bind(purge.above)
            .bind(limit)
            .bind(span(purge.older_than))
            .fetch_one(&mut *connection)
            .await?;
    let Some(last) = last else { return Ok(Purged { removed: 0, next: None }) };
    let state = match purge.what {
        Purgeable::Done => Some(Status::Done.code()),
        Purgeable::Dead => Some(Status::Dead.code()),
        Purgeable::All => None,
    };
    let delete = query(AssertSqlSafe(Arc::clone(&sql.purge_delete)));
    let delete = delete.bind(purge.above).bind(last).bind(before).bind(state).bind(purge.key.as_deref());
    let removed = delete.execute(&mut *connection).await?.rows_affected();
    if removed > 0 && purge.what != Purgeable::Done {
        query(AssertSqlSafe(Arc::clone(&sql.intervene))).execute(connection).await?;
    }
    let next = (rows == limit && over != Some(true)).then_some(last);
    Ok(Purged { removed, next })
}
