use pillarbox_core::ownership::{NodeId, begun_by};
use pillarbox_core::store::{Fetch, Fetched, FetchedRow};

use crate::error::Failure;
use crate::fetch::{found, queries};
use crate::literal::{Literal, fill};
use crate::sql::script;
use crate::store::Inner;

/// Locks rows that are free, skips those that others have locked, and writes the node's name into them: two round trips.
///
/// Whether a holder still lives is not asked: it would have to be asked together with every change of membership. Rows of
/// nodes that died are freed by [`reclaim`](crate::reclaim).
pub(crate) async fn claim(store: &Inner, node: &NodeId, fetch: &Fetch) -> Result<Fetched, Failure> {
    let sql = &store.sql;
    let (id, begun) = (Literal::text(node.as_str()), Literal::text(&begun_by(node)));
    let free = fill(&sql.free, &[("id", &id), ("begun", &begun)]);
    let [next_due, due, ready] = queries(sql, fetch, &free, "\nFOR UPDATE SKIP LOCKED");
    let mut session = store.sessions.session().await?;
    let fence = fill(&sql.fence, &[("id", &id)]);
    let answers = session.run(script(["START TRANSACTION", &fence, &next_due, &due, &ready])).await?;
    // A node that was cleared away takes nothing; one that is there cannot be cleared away before this has ended.
    let registered = answers.first(1).is_some();
    let fetched = if registered { found(&answers, 2, fetch.limit)? } else { Fetched::default() };
    let seqs: Vec<i64> = fetched.rows.iter().map(FetchedRow::seq).collect();
    if seqs.is_empty() {
        session.run("ROLLBACK").await?;
    } else {
        let take = fill(&sql.take, &[("id", &id), ("begun", &begun), ("seqs", &Literal::ints(&seqs))]);
        session.run(script([&*take, "COMMIT"])).await?;
    }
    session.finish();
    Ok(fetched)
}

/// Gives up rows that the node holds.
pub(crate) async fn release(store: &Inner, node: &NodeId, seqs: &[i64]) -> Result<(), Failure> {
    if seqs.is_empty() {
        return Ok(());
    }
    let mut sorted = seqs.to_vec();
    sorted.sort_unstable();
    let (id, begun) = (Literal::text(node.as_str()), Literal::text(&begun_by(node)));
    let values = [("id", &id), ("begun", &begun), ("seqs", &Literal::ints(&sorted))];
    let mut session = store.sessions.session().await?;
    session.run(fill(&store.sql.release, &values)).await?;
    session.finish();
    Ok(())
}
