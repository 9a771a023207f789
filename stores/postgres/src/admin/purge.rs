use deadpool_postgres::Transaction;
use pillarbox_core::error::StoreErrorKind;
use pillarbox_core::row::Status;
use pillarbox_core::store::refusal;
use pillarbox_core::store::{Purge, Purgeable, Purged};
use tokio_postgres::types::Type;

use crate::error::{Failure, no_row};
use crate::fetch::{from, size};
use crate::ownership;
use crate::session::Param;
use crate::settle::micros;
use crate::store::Inner;

/// Deletes what is old within one window of rows.
pub(super) async fn purge(store: &Inner, purge: &Purge) -> Result<Purged, Failure> {
    let state = match purge.what {
        Purgeable::Done => Some(Status::Done.code()),
        Purgeable::Dead => Some(Status::Dead.code()),
        Purgeable::All => None,
    };
    let (age, above, limit) = (micros(purge.older_than), from(purge.above), size(purge.limit));
    let params: [Param<'_>; 5] = [
        (&state, Type::INT2),
        (&age, Type::INT8),
        (&above, Type::INT8),
        (&limit, Type::INT8),
        (&purge.key, Type::TEXT),
    ];

    let mut session = store.sessions.session().await?;
    let rows = match purge.what {
        Purgeable::All => {
            // Under the lock of membership, so that no node begins to deliver what is being deleted.
            let transaction = ownership::locked(store, &mut session).await?;
            refuse_beside_nodes(store, &transaction).await?;
            let rows = transaction.query_typed(&store.sql.purge, &params).await?;
            transaction.commit().await?;
            rows
        }
        Purgeable::Done | Purgeable::Dead => session.query_by_index(&store.sql.purge, &params).await?,
    };
    session.finish();

    let row = rows.first().ok_or_else(no_row)?;
    let (removed, seen): (i64, i64) = (row.try_get(0)?, row.try_get(1)?);
    let (last, all_are_young): (Option<i64>, bool) = (row.try_get(2)?, row.try_get(3)?);
    let over = seen < limit || all_are_young;
    Ok(Purged { removed: u64::try_from(removed).unwrap_or(0), next: last.filter(|_| !over) })
}

/// Refuses to purge pending rows while a living node may hold them.
async fn refuse_beside_nodes(store: &Inner, transaction: &Transaction<'_>) -> Result<(), Failure> {
    let nodes = transaction.query_typed(&store.sql.live_nodes, &[]).await?;
    let Some(node) = nodes.first() else { return Ok(()) };
    Err(Failure::Refused(StoreErrorKind::IncompatibleMode, refusal::still_delivers(node.try_get(0)?)))
}
