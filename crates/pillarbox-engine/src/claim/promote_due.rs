use pillarbox_core::error::StoreError;
use pillarbox_core::store::{FetchedRow, Row, RowId, Store};

use crate::poll_schedule::PollSchedule;

/// Puts due rows back into the order of the table that were read before rows below them.
///
/// A fetch reads rows without a due time in ascending order of `seq`, and rows whose time has come from anywhere. Where order
/// counts, a delayed or failed event takes its place when its time has come. If every row below it has been read, it goes on as
/// it is. If not, it is `early`: it loses its due time, is read again when its `seq` is reached, and leaves `rows`. True if there were any.
///
/// Rows of one key that are all due need no care: a failed one keeps the later ones of its key waiting, and a delayed one
/// waits for nobody before its time.
pub(super) async fn promote_due(
    store: &dyn Store,
    poll_schedule: &PollSchedule,
    rows: &mut Vec<FetchedRow>,
    early: impl Fn(&Row) -> bool,
) -> Result<bool, StoreError> {
    let is_early = |row: &FetchedRow| match row {
        FetchedRow::Row(row) => row.timed && early(row),
        FetchedRow::Broken(_) => false,
    };
    let ripe: Vec<RowId> = rows.iter().filter(|row| is_early(row)).map(FetchedRow::id).collect();
    let Some(lowest) = ripe.iter().map(|row| row.seq).min() else { return Ok(false) };
    store.promote_due(&ripe).await?;
    poll_schedule.wake_for(lowest);
    rows.retain(|row| !is_early(row));
    Ok(true)
}
