use pillarbox_core::ownership::NodeId;
use pillarbox_core::store::{Fetch, Fetched, FetchedRow, RowId};
use sqlx::query;

use crate::ownership::is_registered;
use crate::store::Session;
use crate::{fetch, json};

/// Answers a claim that finds nothing, which takes no write: an idle node should not keep the others from writing.
pub(crate) async fn probe(session: &mut Session<'_>, node: &NodeId, wanted: &Fetch) -> sqlx::Result<Option<Fetched>> {
    if !is_registered(session, node).await? {
        return Ok(Some(Fetched::default()));
    }
    let one = Fetch { limit: 1, ..wanted.clone() };
    let found = fetch::fetch(session, Some(node), &one).await?;
    Ok(found.rows.is_empty().then_some(found))
}

/// Takes rows inside the open transaction, which holds the write lock, so that nobody takes them in between.
///
/// They are read before they are changed, because the caller wants to know their holders.
pub(crate) async fn claim(session: &mut Session<'_>, node: &NodeId, wanted: &Fetch) -> sqlx::Result<Fetched> {
    if !is_registered(session, node).await? {
        return Ok(Fetched::default());
    }
    let found = fetch::fetch(session, Some(node), wanted).await?;
    let seqs = json::array(found.rows.iter().map(FetchedRow::seq));
    query(session.sql.claim.clone()).bind(node.as_str()).bind(seqs).execute(&mut *session.connection).await?;
    Ok(found)
}

/// Gives up what the node holds of these rows.
pub(crate) async fn release(session: &mut Session<'_>, node: &NodeId, rows: &[RowId]) -> sqlx::Result<()> {
    let release = query(session.sql.release.clone()).bind(node.as_str());
    let release = release.bind(json::array(rows.iter().map(|row| row.seq)));
    release.bind(json::events(rows)).execute(&mut *session.connection).await?;
    Ok(())
}
