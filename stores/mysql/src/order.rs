//! The place of a row in the order: its partition, its turn, and the transactions that may still commit rows before it.

use pillarbox_core::store::{RowId, Writers};

use crate::answer::int;
use crate::error::Failure;
use crate::literal::{Literal, fill};
use crate::store::Inner;

/// Writes partitions into rows that have none.
pub(crate) async fn assign_partitions(store: &Inner, rows: &[(RowId, u8)]) -> Result<(), Failure> {
    if rows.is_empty() {
        return Ok(());
    }
    // Ascending, as every other statement locks rows.
    let mut sorted: Vec<&(RowId, u8)> = rows.iter().collect();
    sorted.sort_unstable_by_key(|(row, _)| row.seq);
    store.sessions.run(fill(&store.sql.assign_partitions, &[("partitions", &Literal::partitions(sorted))])).await?;
    Ok(())
}

/// Takes the due time from pending rows whose time has come.
pub(crate) async fn promote_due(store: &Inner, rows: &[RowId]) -> Result<(), Failure> {
    if rows.is_empty() {
        return Ok(());
    }
    let (seqs, events) = places(rows);
    store.sessions.run(fill(&store.sql.promote_due, &[("seqs", &seqs), ("events", &events)])).await?;
    Ok(())
}

/// The places of rows, ascending, and their events.
pub(crate) fn places(rows: &[RowId]) -> (Literal, Literal) {
    let mut seqs: Vec<i64> = rows.iter().map(|row| row.seq).collect();
    seqs.sort_unstable();
    let events: Vec<&str> = rows.iter().map(|row| row.event_id.as_str()).collect();
    (Literal::ints(&seqs), Literal::byte_list(&events))
}

/// The highest `seq` of the table. The server names the transactions that may still commit rows below that only to users that may see
/// all of its sessions, and not by table.
pub(crate) async fn writers(store: &Inner) -> Result<Writers, Failure> {
    let answers = store.sessions.run(&store.sql.highest).await?;
    Ok(Writers { highest: answers.first(0).map_or(Ok(0), |row| int(row, 0))?, open: None, prepared: Vec::new() })
}
