use pillarbox_core::error::StoreError;
use pillarbox_core::event::EventId;
use pillarbox_core::row::{Change, Expected, Verdict};
use pillarbox_core::store::{RowId, Store};

/// The rows that stand at these places, in their order. At a place without a row, one that is not there.
///
/// # Errors
/// When the store fails.
pub async fn rows_at<S: Store + ?Sized>(store: &S, seqs: &[i64]) -> Result<Vec<RowId>, StoreError> {
    let there = store.identify(seqs).await?;
    let row = |seq: &i64| {
        let row = there.iter().find(|row| row.seq == *seq).cloned();
        row.unwrap_or_else(|| RowId { seq: *seq, event_id: EventId::from_stored("not there"), handler: None })
    };
    Ok(seqs.iter().map(row).collect())
}

/// That the rows at these places, on which no attempt has failed yet, are DONE.
///
/// # Errors
/// When the store fails.
pub async fn done_at<S: Store + ?Sized>(store: &S, seqs: &[i64]) -> Result<Vec<Verdict>, StoreError> {
    let done = |row| Verdict { row, expected: Expected::FIRST, change: Change::Done };
    Ok(rows_at(store, seqs).await?.into_iter().map(done).collect())
}
