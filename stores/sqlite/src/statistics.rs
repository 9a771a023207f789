use sqlx::{query, query_scalar, raw_sql};

use crate::store::Session;

/// Forgets statistics that `ANALYZE` or `PRAGMA optimize` made of the event table while it was nearly empty.
///
/// SQLite believes them until they are made again, and reads a table of which it expects a few dozen rows from end to end
/// rather than look rows up by their key. Years of delivered events later, every batch of verdicts would read them all.
/// Without statistics it expects a large table, for which the statements are written.
pub(crate) async fn forget_small(session: &mut Session<'_>) -> sqlx::Result<()> {
    if !are_small(session).await? {
        return Ok(());
    }
    let forget = query(session.sql.statistics_forget.clone()).bind(session.table.event());
    if forget.execute(&mut *session.connection).await?.rows_affected() > 0 {
        // Reading them again replaces the statistics read when the connection was opened.
        raw_sql("ANALYZE sqlite_schema").execute(&mut *session.connection).await?;
    }
    Ok(())
}

/// True if there are such statistics.
pub(crate) async fn are_small(session: &mut Session<'_>) -> sqlx::Result<bool> {
    let there: bool = query_scalar(session.sql.statistics_there.clone()).fetch_one(&mut *session.connection).await?;
    if !there {
        return Ok(false);
    }
    let small = query_scalar(session.sql.statistics_small.clone()).bind(session.table.event());
    small.fetch_one(&mut *session.connection).await
}
