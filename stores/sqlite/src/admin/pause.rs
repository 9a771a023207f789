use pillarbox_core::clock::Timestamp;
use pillarbox_core::store::{Interventions, NewPause, Pause, PauseChange, PauseKind};
use sqlx::{SqlStr, query, query_as, query_scalar};

use crate::ownership::span;
use crate::store::Session;

type Found = (i64, Option<String>, Option<String>, Option<i64>, Option<i64>, Option<String>, Option<String>);

/// The number of times that operators have intervened, and their pauses.
pub(crate) async fn interventions(session: &mut Session<'_>) -> sqlx::Result<Interventions> {
    let sql = session.sql.intervened.clone();
    let (count, pauses) = read(session, sql).await?;
    Ok(Interventions { count: count.ok_or(sqlx::Error::RowNotFound)?, pauses })
}

/// Pauses an event type or a handler.
pub(super) async fn pause(session: &mut Session<'_>, pause: &NewPause) -> sqlx::Result<PauseChange> {
    let NewPause { kind, name, by, reason, length } = pause;
    query(session.sql.pause_ended.clone()).execute(&mut *session.connection).await?;
    let found = query_as(session.sql.pause_found.clone()).bind(kind.name()).bind(name);
    let (pauses, is_paused): (i64, bool) = found.fetch_one(&mut *session.connection).await?;
    if !is_paused && usize::try_from(pauses).is_ok_and(|pauses| pauses >= Pause::MAX_PAUSES) {
        return Ok(PauseChange::TooMany);
    }
    let write = query(session.sql.pause.clone()).bind(kind.name()).bind(name).bind(length.map(span));
    write.bind(by).bind(reason).execute(&mut *session.connection).await?;
    Ok(if is_paused { PauseChange::Updated } else { PauseChange::Paused })
}

/// Ends a pause.
pub(super) async fn resume(session: &mut Session<'_>, kind: PauseKind, name: &str) -> sqlx::Result<bool> {
    // A pause that has ended by itself is none any more.
    query(session.sql.pause_ended.clone()).execute(&mut *session.connection).await?;
    let resume = query(session.sql.resume.clone()).bind(kind.name()).bind(name);
    Ok(resume.execute(&mut *session.connection).await?.rows_affected() > 0)
}

/// The pauses that have not ended.
pub(super) async fn list(session: &mut Session<'_>) -> sqlx::Result<Vec<Pause>> {
    let sql = session.sql.pauses.clone();
    Ok(read(session, sql).await?.1)
}

/// Counts the due rows that pauses hold.
pub(super) async fn count(session: &mut Session<'_>) -> sqlx::Result<u64> {
    query_scalar(session.sql.count_paused.clone()).fetch_one(&mut *session.connection).await
}

/// The first column of the first row, and the pauses.
async fn read(session: &mut Session<'_>, sql: SqlStr) -> sqlx::Result<(Option<i64>, Vec<Pause>)> {
    let rows: Vec<Found> = query_as(sql).fetch_all(&mut *session.connection).await?;
    let first = rows.first().map(|row| row.0);
    let pause = |(_, kind, name, since, until, by, reason): Found| {
        Some(Pause {
            // The table takes no other kinds.
            kind: PauseKind::of_name(&kind?)?,
            name: name?,
            since: Timestamp::from_micros(since?),
            until: until.map(Timestamp::from_micros),
            by,
            reason,
        })
    };
    Ok((first, rows.into_iter().filter_map(pause).collect()))
}
