use pillarbox_core::error::StoreErrorKind;
use pillarbox_core::row::Status;
use pillarbox_core::store::{Purge, Purgeable, Purged, refusal};
use sqlx::{query, query_as, query_scalar};

use crate::error::Failure;
use crate::ownership::span;
use crate::store::Session;

/// Deletes what is old within one window of rows. Refuses to purge pending rows while a living node may hold them.
pub(super) async fn purge(session: &mut Session<'_>, purge: &Purge) -> Result<Purged, Failure> {
    if purge.what == Purgeable::All {
        let alive = query_scalar(session.sql.node_alive.clone()).fetch_optional(&mut *session.connection).await?;
        if let Some::<String>(node) = alive {
            return Err(Failure::Refused(StoreErrorKind::IncompatibleMode, refusal::still_delivers(&node)));
        }
    }
    let limit = i64::try_from(purge.limit).unwrap_or(i64::MAX);
    let (before, rows, last, over): (i64, i64, Option<i64>, Option<bool>) = query_as(session.sql.purge_window.clone())
        .bind(purge.above)
        .bind(limit)
        .bind(span(purge.older_than))
        .fetch_one(&mut *session.connection)
        .await?;
    let Some(last) = last else { return Ok(Purged { removed: 0, next: None }) };
    let state = match purge.what {
        Purgeable::Done => Some(Status::Done.code()),
        Purgeable::Dead => Some(Status::Dead.code()),
        Purgeable::All => None,
    };
    let delete = query(session.sql.purge.clone());
    let delete = delete.bind(purge.above).bind(last).bind(before).bind(state).bind(purge.key.as_deref());
    let removed = delete.execute(&mut *session.connection).await?.rows_affected();
    if removed > 0 && purge.what != Purgeable::Done {
        query(session.sql.intervene.clone()).execute(&mut *session.connection).await?;
    }
    let next = (rows == limit && over != Some(true)).then_some(last);
    Ok(Purged { removed, next })
}
