use pillarbox_core::ownership::{NodeId, Reclaimed};
use tokio_postgres::Row;
use tokio_postgres::types::Type;

use crate::error::{Failure, no_row};
use crate::fetch::wait;
use crate::ownership;
use crate::row::Micros;
use crate::session::BY_INDEX;
use crate::store::Inner;

/// Evicts nodes whose lease has ended and frees the rows of holders that are not registered.
///
/// It does not use the connection of the lease: looking at a long backlog takes its time, and renewals must not wait.
pub(crate) async fn reclaim(store: &Inner, node: &NodeId, thorough: bool) -> Result<Reclaimed, Failure> {
    let mut session = store.sessions.session().await?;
    let id = node.as_str();
    let (found, any_expired) = membership(&session.query(&store.sql.membership, &[(&id, Type::TEXT)]).await?)?;
    if !thorough && !any_expired {
        session.finish();
        return Ok(found);
    }

    let transaction = ownership::locked(store, &mut session).await?;
    let judged = ownership::evict_expired(store, &transaction).await?;
    let freed: i64 = if thorough || !judged.ended.is_empty() {
        if store.sessions.is_pooled() {
            transaction.batch_execute(BY_INDEX).await?;
        }
        transaction.query_typed_one(&store.sql.free_orphans, &[]).await?.try_get(0)?
    } else {
        0
    };
    let (found, _) = membership(&transaction.query_typed(&store.sql.membership, &[(&id, Type::TEXT)]).await?)?;
    transaction.commit().await?;
    session.finish();
    let freed = u64::try_from(freed).unwrap_or(0);
    Ok(Reclaimed { freed, next_expiry: judged.next_expiry(found.next_expiry), ..found })
}

/// The nodes as `membership.sql` finds them; the flag is true if the lease of any has ended.
fn membership(rows: &[Row]) -> Result<(Reclaimed, bool), Failure> {
    let row = rows.first().ok_or_else(no_row)?;
    let (next_expiry, now): (Option<Micros>, Micros) = (row.try_get(2)?, row.try_get(3)?);
    let next_expiry = next_expiry.map(|end| wait(end, now));
    Ok((Reclaimed { registered: row.try_get(0)?, freed: 0, next_expiry }, row.try_get(1)?))
}
