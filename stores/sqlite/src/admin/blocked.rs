use pillarbox_core::store::Blocked;
use sqlx::sqlite::SqliteRow;
use sqlx::{Row as _, query, query_scalar};

use super::record::{attempts, required, text};
use crate::fetch::micros;
use crate::store::Session;

/// A page of the events that later ones of their key wait behind.
pub(super) async fn list(session: &mut Session<'_>, above: i64, limit: usize) -> sqlx::Result<Vec<Blocked>> {
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let list = query(session.sql.blocked.clone()).bind(above).bind(limit);
    list.fetch_all(&mut *session.connection).await?.iter().map(decode).collect()
}

/// The event that a pending one waits behind.
pub(super) async fn head_of(session: &mut Session<'_>, seq: i64) -> sqlx::Result<Option<i64>> {
    let found = query_scalar(session.sql.head_of.clone()).bind(seq).fetch_optional(&mut *session.connection).await?;
    Ok(found.flatten())
}

fn decode(row: &SqliteRow) -> sqlx::Result<Blocked> {
    let dead = row.try_get(5)?;
    let due_in: Option<i64> = row.try_get(7)?;
    Ok(Blocked {
        seq: row.try_get(0)?,
        event_id: required(row, 1)?,
        event_type: required(row, 2)?,
        key: required(row, 3)?,
        handler: text(row, 4)?,
        dead,
        attempts: attempts(row, 6)?,
        due_in: due_in.filter(|left| !dead && *left > 0).map(micros),
        last_error: text(row, 8)?,
        waiting: row.try_get(9)?,
    })
}
