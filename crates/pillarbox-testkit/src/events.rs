use pillarbox_core::error::BoxError;
use pillarbox_core::event::{Envelope, InvalidEvent};
use pillarbox_core::ownership::NodeId;
use pillarbox_core::settle::{Change, Verdict};
use pillarbox_core::store::{Fetch, FetchedRow, Store};

/// An event whose payload is of no interest.
pub(crate) fn event() -> Result<Envelope, InvalidEvent> {
    Envelope::json("test.event", "{}")
}

/// So many of them.
pub(crate) fn events(count: usize) -> Result<Vec<Envelope>, InvalidEvent> {
    std::iter::repeat_with(event).take(count).collect()
}

/// An event that is due in an hour, so for no test's patience.
pub(crate) fn delayed() -> Result<Envelope, InvalidEvent> {
    Envelope::builder("test.delayed").payload_json("{}").deliver_after(HOUR).build()
}

pub(crate) const HOUR: std::time::Duration = std::time::Duration::from_secs(3600);

/// The ids of rows that all can be delivered.
pub(crate) fn ids(rows: &[FetchedRow]) -> Result<Vec<&str>, BoxError> {
    rows.iter().map(id).collect()
}

fn id(row: &FetchedRow) -> Result<&str, BoxError> {
    match row {
        FetchedRow::Row(row) => Ok(row.event_id.as_str()),
        FetchedRow::Broken(row) => Err(format!("row {} cannot be decoded: {}", row.seq, row.reason).into()),
    }
}

/// Everything that is due.
pub(crate) fn all() -> Fetch {
    some(10_000)
}

/// The first `limit` rows that are due.
pub(crate) fn some(limit: usize) -> Fetch {
    Fetch { above: 0, exclude: Vec::new(), limit }
}

/// Records the same change in rows that no attempt has failed on yet; fails if a verdict was refused.
pub(crate) async fn settle_all(
    store: &dyn Store,
    node: &NodeId,
    seqs: &[i64],
    change: &Change,
) -> Result<(), BoxError> {
    let verdict = |seq: &i64| Verdict { seq: *seq, expected_attempts: 0, change: change.clone() };
    let refused = store.settle(node, &seqs.iter().map(verdict).collect::<Vec<_>>()).await?;
    if refused.is_empty() { Ok(()) } else { Err(format!("the verdicts on {refused:?} were refused").into()) }
}

/// Settles and returns the refused in ascending order; a store may return them in any.
pub(crate) async fn refused(store: &dyn Store, node: &NodeId, verdicts: &[Verdict]) -> Result<Vec<i64>, BoxError> {
    let mut refused = store.settle(node, verdicts).await?;
    refused.sort_unstable();
    Ok(refused)
}
