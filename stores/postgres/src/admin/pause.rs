use pillarbox_core::clock::Timestamp;
use pillarbox_core::store::{Interventions, NewPause, Pause, PauseChange, PauseKind};
use tokio_postgres::Row;
use tokio_postgres::types::Type;

use crate::error::{Failure, no_row};
use crate::fetch::size;
use crate::row::Micros;
use crate::settle::micros;
use crate::store::Inner;

/// The number of times that operators have intervened, and their pauses.
pub(crate) async fn interventions(store: &Inner) -> Result<Interventions, Failure> {
    let session = store.sessions.session().await?;
    let rows = session.query(&store.sql.interventions, &[]).await?;
    session.finish();
    let count = rows.first().ok_or_else(no_row)?.try_get(0)?;
    Ok(Interventions { count, pauses: decode(&rows)? })
}

/// Pauses an event type or a handler.
pub(super) async fn pause(store: &Inner, pause: &NewPause) -> Result<PauseChange, Failure> {
    let NewPause { kind, name, by, reason, length } = pause;
    let (kind, length, most) = (kind.name(), length.map(micros), size(Pause::MAX_PAUSES));
    let session = store.sessions.session().await?;
    let rows = session
        .query(
            &store.sql.pause,
            &[
                (&kind, Type::TEXT),
                (name, Type::TEXT),
                (&length, Type::INT8),
                (by, Type::TEXT),
                (reason, Type::TEXT),
                (&most, Type::INT8),
            ],
        )
        .await?;
    session.finish();
    let row = rows.first().ok_or_else(no_row)?;
    let (was_paused, is_paused): (bool, bool) = (row.try_get(0)?, row.try_get(1)?);
    Ok(match (was_paused, is_paused) {
        (_, false) => PauseChange::TooMany,
        (false, true) => PauseChange::Paused,
        (true, true) => PauseChange::Updated,
    })
}

/// Ends a pause.
pub(super) async fn resume(store: &Inner, kind: PauseKind, name: &str) -> Result<bool, Failure> {
    if name.contains('\0') {
        // The server refuses it, so it pauses nothing.
        return Ok(false);
    }
    let kind = kind.name();
    let session = store.sessions.session().await?;
    let rows = session.query(&store.sql.resume, &[(&kind, Type::TEXT), (&name, Type::TEXT)]).await?;
    session.finish();
    Ok(rows.first().map_or(Ok(false), |row| row.try_get(0))?)
}

/// The pauses that have not ended.
pub(super) async fn list(store: &Inner) -> Result<Vec<Pause>, Failure> {
    let session = store.sessions.session().await?;
    let rows = session.query(&store.sql.pauses, &[]).await?;
    session.finish();
    decode(&rows)
}

/// Counts the due rows that pauses hold.
pub(super) async fn count(store: &Inner) -> Result<u64, Failure> {
    let mut session = store.sessions.session().await?;
    let rows = session.query_by_index(&store.sql.count_paused, &[]).await?;
    session.finish();
    let count: i64 = rows.first().ok_or_else(no_row)?.try_get(0)?;
    Ok(u64::try_from(count).unwrap_or(0))
}

fn decode(rows: &[Row]) -> Result<Vec<Pause>, Failure> {
    let mut pauses = Vec::new();
    for row in rows {
        // None without a pause. The table takes no other kinds.
        let Some(kind) = row.try_get::<_, Option<&str>>(1)?.and_then(PauseKind::of_name) else { continue };
        pauses.push(Pause {
            kind,
            name: row.try_get(2)?,
            since: row.try_get::<_, Micros>(3)?.into(),
            until: row.try_get::<_, Option<Micros>>(4)?.map(Timestamp::from),
            by: row.try_get(5)?,
            reason: row.try_get(6)?,
        });
    }
    Ok(pauses)
}
