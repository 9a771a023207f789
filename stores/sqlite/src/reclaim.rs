use pillarbox_core::ownership::{NodeId, Reclaimed};
use sqlx::{query, query_as, query_scalar};

use crate::fetch::micros;
use crate::ownership;
use crate::store::Session;

/// Answers if there is nothing to free, which takes no write: a look at many rows should not keep others from writing.
pub(crate) async fn probe(session: &mut Session<'_>, node: &NodeId, thorough: bool) -> sqlx::Result<Option<Reclaimed>> {
    let (found, any_expired) = membership(session, node).await?;
    let orphans = query_scalar(session.sql.reclaim_orphans.clone());
    let something = any_expired || thorough && orphans.fetch_one(&mut *session.connection).await?;
    Ok((!something).then_some(found))
}

/// Evicts the nodes that have expired, and frees what nodes hold that are not registered.
///
/// The open transaction holds the write lock, so that none can join in between.
pub(crate) async fn reclaim(session: &mut Session<'_>, node: &NodeId, thorough: bool) -> sqlx::Result<Reclaimed> {
    let judged = ownership::evict_expired(session).await?;
    let mut freed = 0;
    if thorough || !judged.ended.is_empty() {
        freed = query(session.sql.free_orphans.clone()).execute(&mut *session.connection).await?.rows_affected();
    }
    let (found, _) = membership(session, node).await?;
    Ok(Reclaimed { freed, next_expiry: judged.next_expiry(found.next_expiry), ..found })
}

/// The nodes, as one statement sees them; the flag is true if the lease of any has ended.
async fn membership(session: &mut Session<'_>, node: &NodeId) -> sqlx::Result<(Reclaimed, bool)> {
    let probe = query_as(session.sql.membership.clone()).bind(node.as_str());
    let (registered, any_expired, next_expiry): (bool, bool, Option<i64>) =
        probe.fetch_one(&mut *session.connection).await?;
    Ok((Reclaimed { registered, freed: 0, next_expiry: next_expiry.map(micros) }, any_expired))
}
