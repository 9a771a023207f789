//! The place of a row in the order: its partition, its turn, and the rows that may still come before it.

use pillarbox_core::store::{RowId, Writers};
use sqlx::{query, query_scalar};

use crate::json;
use crate::store::Session;

/// Writes partitions into rows that have none.
pub(crate) async fn assign_partitions(session: &mut Session<'_>, rows: &[(RowId, u8)]) -> sqlx::Result<()> {
    query(session.sql.assign_partitions.clone()).bind(json::partitions(rows)).execute(&mut *session.connection).await?;
    Ok(())
}

/// Takes the due time from pending rows whose time has come.
pub(crate) async fn promote_due(session: &mut Session<'_>, rows: &[RowId]) -> sqlx::Result<()> {
    let promote_due = query(session.sql.promote_due.clone()).bind(json::array(rows.iter().map(|row| row.seq)));
    promote_due.bind(json::events(rows)).execute(&mut *session.connection).await?;
    Ok(())
}

/// The highest `seq` of the table. One connection writes at a time, so events are committed in the order of their `seq`: what is not
/// visible below the highest one never will be.
pub(crate) async fn writers(session: &mut Session<'_>) -> sqlx::Result<Writers> {
    let highest = query_scalar(session.sql.highest.clone()).fetch_one(&mut *session.connection).await?;
    Ok(Writers { highest, open: Some(Vec::new()), prepared: Vec::new() })
}
