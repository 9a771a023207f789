use std::time::Duration;

use pillarbox_core::clock::Timestamp;
use pillarbox_core::store::{AuditEntry, AuditedAction};
use sqlx::{query, query_as, query_scalar};

use crate::ownership::span;
use crate::store::Session;

/// Writes an entry for an action that is about to begin.
pub(crate) async fn record(session: &mut Session<'_>, action: &AuditedAction) -> sqlx::Result<i64> {
    let record = query_scalar(session.sql.action_record.clone());
    let record = record.bind(action.who()).bind(action.action()).bind(action.subject());
    record.fetch_one(&mut *session.connection).await
}

/// Adds what became of an action.
pub(crate) async fn end(session: &mut Session<'_>, id: i64, changed: Option<u64>, outcome: &str) -> sqlx::Result<()> {
    let end = query(session.sql.action_end.clone())
        .bind(id)
        .bind(changed.map(|changed| i64::try_from(changed).unwrap_or(i64::MAX)));
    end.bind(AuditedAction::outcome(outcome)).execute(&mut *session.connection).await?;
    Ok(())
}

/// A page of entries, newest first.
pub(crate) async fn list(session: &mut Session<'_>, below: Option<i64>, limit: usize) -> sqlx::Result<Vec<AuditEntry>> {
    type Row = (i64, i64, String, String, String, Option<i64>, Option<String>);
    let list = query_as(session.sql.actions.clone()).bind(below.unwrap_or(i64::MAX));
    let rows: Vec<Row> =
        list.bind(i64::try_from(limit).unwrap_or(i64::MAX)).fetch_all(&mut *session.connection).await?;
    let entry = |(id, began_at, who, action, subject, changed, outcome): Row| AuditEntry {
        id,
        began_at: Timestamp::from_micros(began_at),
        who,
        action,
        subject,
        changed: changed.map(|changed| u64::try_from(changed).unwrap_or(0)),
        outcome,
    };
    Ok(rows.into_iter().map(entry).collect())
}

/// Deletes the oldest entries.
pub(crate) async fn purge(session: &mut Session<'_>, older_than: Duration, limit: usize) -> sqlx::Result<u64> {
    let purge = query(session.sql.actions_purge.clone()).bind(span(older_than));
    let purge = purge.bind(i64::try_from(limit).unwrap_or(i64::MAX));
    Ok(purge.execute(&mut *session.connection).await?.rows_affected())
}
