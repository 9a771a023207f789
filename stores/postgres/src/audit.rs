use std::time::Duration;

use pillarbox_core::store::{AuditEntry, AuditedAction};
use tokio_postgres::Row;
use tokio_postgres::types::Type;

use crate::error::{Failure, no_row};
use crate::fetch::size;
use crate::row::Micros;
use crate::session::Param;
use crate::settle::micros;
use crate::store::Inner;

/// Writes an entry for an action that is about to begin.
pub(crate) async fn record(store: &Inner, action: &AuditedAction) -> Result<i64, Failure> {
    let (who, name, subject) = (action.who(), action.action(), action.subject());
    let params: [Param<'_>; 3] = [(&who, Type::TEXT), (&name, Type::TEXT), (&subject, Type::TEXT)];
    let session = store.sessions.session().await?;
    let rows = session.query(&store.sql.action_record, &params).await?;
    session.finish();
    Ok(rows.first().ok_or_else(no_row)?.try_get(0)?)
}

/// Adds what became of an action.
pub(crate) async fn end(store: &Inner, id: i64, changed: Option<u64>, outcome: &str) -> Result<(), Failure> {
    let (changed, outcome) =
        (changed.map(|changed| i64::try_from(changed).unwrap_or(i64::MAX)), AuditedAction::outcome(outcome));
    let params: [Param<'_>; 3] = [(&id, Type::INT8), (&changed, Type::INT8), (&outcome, Type::TEXT)];
    let session = store.sessions.session().await?;
    session.query(&store.sql.action_end, &params).await?;
    session.finish();
    Ok(())
}

/// A page of entries, newest first.
pub(crate) async fn list(store: &Inner, below: Option<i64>, limit: usize) -> Result<Vec<AuditEntry>, Failure> {
    let (below, limit) = (below.unwrap_or(i64::MAX), size(limit));
    let mut session = store.sessions.session().await?;
    let rows = session.query_by_index(&store.sql.actions, &[(&below, Type::INT8), (&limit, Type::INT8)]).await?;
    session.finish();
    rows.iter().map(decode).collect()
}

fn decode(row: &Row) -> Result<AuditEntry, Failure> {
    Ok(AuditEntry {
        id: row.try_get(0)?,
        began_at: row.try_get::<_, Micros>(1)?.into(),
        who: row.try_get(2)?,
        action: row.try_get(3)?,
        subject: row.try_get(4)?,
        changed: row.try_get::<_, Option<i64>>(5)?.map(|changed| u64::try_from(changed).unwrap_or(0)),
        outcome: row.try_get(6)?,
    })
}

/// Deletes the oldest entries.
pub(crate) async fn purge(store: &Inner, older_than: Duration, limit: usize) -> Result<u64, Failure> {
    let (age, limit) = (micros(older_than), size(limit));
    let mut session = store.sessions.session().await?;
    let transaction = session.transaction().await?;
    let params: [Param<'_>; 2] = [(&age, Type::INT8), (&limit, Type::INT8)];
    let removed = transaction.execute_typed(&store.sql.actions_purge, &params).await?;
    transaction.commit().await?;
    session.finish();
    Ok(removed)
}
