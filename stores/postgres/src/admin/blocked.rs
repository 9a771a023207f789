use pillarbox_core::row::Status;
use pillarbox_core::store::Blocked;
use tokio_postgres::Row;
use tokio_postgres::types::Type;

use super::overview::count;
use crate::error::Failure;
use crate::fetch::{from, size, wait};
use crate::row::Micros;
use crate::store::Inner;

/// A page of the events that later ones of their key wait behind.
pub(super) async fn list(store: &Inner, above: i64, limit: usize) -> Result<Vec<Blocked>, Failure> {
    let (above, limit) = (from(above), size(limit));
    let mut session = store.sessions.session().await?;
    let rows = session.query_by_index(&store.sql.blocked, &[(&above, Type::INT8), (&limit, Type::INT8)]).await?;
    session.finish();
    rows.iter().map(decode).collect()
}

/// The event that a pending one waits behind.
pub(super) async fn head_of(store: &Inner, seq: i64) -> Result<Option<i64>, Failure> {
    let mut session = store.sessions.session().await?;
    let rows = session.query_by_index(&store.sql.head_of, &[(&seq, Type::INT8)]).await?;
    session.finish();
    Ok(rows.first().map(|row| row.try_get(0)).transpose()?.flatten())
}

fn decode(row: &Row) -> Result<Blocked, Failure> {
    let (due_at, now): (Option<Micros>, Micros) = (row.try_get(7)?, row.try_get(10)?);
    Ok(Blocked {
        seq: row.try_get(0)?,
        event_id: row.try_get(1)?,
        event_type: row.try_get(2)?,
        key: row.try_get(3)?,
        handler: row.try_get(4)?,
        dead: row.try_get::<_, i16>(5)? == Status::Dead.code(),
        attempts: row.try_get(6)?,
        due_in: due_at.map(|due_at| wait(due_at, now)),
        last_error: row.try_get(8)?,
        waiting: count(row.try_get(9)?),
    })
}
