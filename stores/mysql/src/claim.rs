use pillarbox_core::ownership::{NodeId, begun_by};
use pillarbox_core::store::{Fetch, Fetched, FetchedRow, RowId};

use crate::error::Failure;
use crate::fetch::{found, queries, truncate};
use crate::literal::{Literal, fill};
use crate::order::places;
use crate::row;
use crate::session::Within;
use crate::sql::script;
use crate::store::Inner;

/// Locks rows that are free, skips those that others have locked, and writes the node's name into them: two round trips.
///
/// It does not check if a holder still lives: that check would have to lock every change of membership out. Rows of
/// nodes that died are freed by [`reclaim`](crate::reclaim).
pub(crate) async fn claim(store: &Inner, node: &NodeId, fetch: &Fetch) -> Result<Fetched, Failure> {
    let sql = &store.sql;
    let (id, begun) = (Literal::text(node.as_str()), Literal::text(&begun_by(node)));
    let free = fill(&sql.free, &[("id", &id), ("begun", &begun)]);
    let fence = fill(&sql.fence, &[("id", &id)]);
    let mut wanted = fetch.clone();
    // Rows that are too large together are not taken, as in a fetch: with the connection the transaction ends, and its locks. While it has
    // not, they would be skipped as if another node had taken them.
    let mut given_up = None;
    let (mut session, answers) = loop {
        let [next_due, due, ready] = queries(sql, &wanted, &free, "\nFOR UPDATE SKIP LOCKED");
        let mut session = store.sessions.session().await?;
        if let Some(number) = given_up.take() {
            session.outlast(number).await?;
        }
        let script = script(["START TRANSACTION", &fence, &next_due, &due, &ready]);
        match session.run_within(script, row::content_bytes, fetch.max_bytes).await? {
            Within::Cut { rows } => {
                wanted.limit = rows;
                given_up = session.number();
            }
            Within::Answers(answers) => break (session, answers),
        }
    };
    // A node that was evicted takes nothing; one that is there cannot be evicted before this has ended.
    let registered = answers.first(1).is_some();
    let found = found(&answers, 2, wanted.limit).map(|found| truncate(found, wanted.limit < fetch.limit));
    let fetched = if registered { found? } else { Fetched::default() };
    let seqs: Vec<i64> = fetched.rows.iter().map(FetchedRow::seq).collect();
    if seqs.is_empty() {
        session.run("ROLLBACK").await?;
    } else {
        let claim = fill(&sql.claim, &[("id", &id), ("begun", &begun), ("seqs", &Literal::ints(&seqs))]);
        session.run(script([&*claim, "COMMIT"])).await?;
    }
    session.finish();
    Ok(fetched)
}

/// Gives up rows that the node holds.
pub(crate) async fn release(store: &Inner, node: &NodeId, rows: &[RowId]) -> Result<(), Failure> {
    if rows.is_empty() {
        return Ok(());
    }
    let (seqs, events) = places(rows);
    let (id, begun) = (Literal::text(node.as_str()), Literal::text(&begun_by(node)));
    let values = [("id", &id), ("begun", &begun), ("seqs", &seqs), ("events", &events)];
    store.sessions.run(fill(&store.sql.release, &values)).await?;
    Ok(())
}
