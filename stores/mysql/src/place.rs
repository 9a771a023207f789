//! The place of a row in the order: its partition, its turn, and whether rows before it may still come.

use pillarbox_core::store::Writers;

use crate::answer::int;
use crate::error::Failure;
use crate::literal::{Literal, fill};
use crate::store::Inner;

/// Writes partitions into rows that have none.
pub(crate) async fn stamp(store: &Inner, rows: &[(i64, u8)]) -> Result<(), Failure> {
    if rows.is_empty() {
        return Ok(());
    }
    // Ascending, as every other statement locks rows.
    let mut sorted = rows.to_vec();
    sorted.sort_unstable();
    let stamp = fill(&store.sql.stamp, &[("pairs", &Literal::pairs(&sorted))]);
    let mut session = store.sessions.session().await?;
    session.run(stamp).await?;
    session.finish();
    Ok(())
}

/// Takes the due time from NEW rows whose time has come.
pub(crate) async fn ripen(store: &Inner, seqs: &[i64]) -> Result<(), Failure> {
    if seqs.is_empty() {
        return Ok(());
    }
    let mut sorted = seqs.to_vec();
    sorted.sort_unstable();
    let ripen = fill(&store.sql.ripen, &[("seqs", &Literal::ints(&sorted))]);
    let mut session = store.sessions.session().await?;
    session.run(ripen).await?;
    session.finish();
    Ok(())
}

/// How far the table has been written. Who may still commit rows below that, the server tells only those who may see all
/// of its sessions, and not by table.
pub(crate) async fn writers(store: &Inner) -> Result<Writers, Failure> {
    let mut session = store.sessions.session().await?;
    let answers = session.run(&store.sql.highest).await?;
    session.finish();
    Ok(Writers { highest: answers.first(0).map_or(Ok(0), |row| int(row, 0))?, open: None })
}
