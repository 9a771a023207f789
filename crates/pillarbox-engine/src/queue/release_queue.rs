use pillarbox_core::clock::Random;
use pillarbox_core::lock::Mutex;
use pillarbox_core::ownership::NodeId;
use pillarbox_core::planted_bug;
use pillarbox_core::store::{RowId, Store};
use tokio::sync::Notify;

use super::Registry;
use crate::backoff::Backoff;
use crate::poll_schedule::PollSchedule;

/// Rows to remember at most. A claim finds the others, as it finds all rows that this node forgot.
const MAX_ROWS: usize = 100_000;
/// Rows released by one statement at most.
pub(crate) const MAX_RELEASED_AT_ONCE: usize = 5_000;

/// Rows that are this node's own in the table and that it does not deliver now: they found the hot queue full, their class has its share of
/// the memory, their type is paused, or they are left to other nodes. They are released there, so that any node may claim them. Until they
/// are, they stay registered as taken: a row that this node claimed again meanwhile would be released under its hands.
#[derive(Debug, Default)]
pub(crate) struct ReleaseQueue {
    /// Each with whether this node looks for it when it is released.
    rows: Mutex<Vec<(RowId, bool)>>,
    /// Notified when a row is queued.
    queued: Notify,
}

impl ReleaseQueue {
    /// Remembers a row that is to be released; false if there is no room. `wanted` says that this node looks for it then.
    pub(crate) fn push(&self, row: RowId, wanted: bool) -> bool {
        let mut rows = self.rows.lock();
        let has_room = rows.len() < MAX_ROWS;
        if has_room {
            rows.push((row, wanted));
        }
        drop(rows);
        self.queued.notify_one();
        has_room
    }

    /// The number of rows that are to be released.
    pub(crate) fn len(&self) -> usize {
        self.rows.lock().len()
    }

    /// A term begins: what an earlier one left names a node that is gone.
    pub(crate) fn clear(&self) {
        self.rows.lock().clear();
    }

    /// Releases rows for as long as it is polled.
    pub(crate) async fn run_releases(
        &self,
        store: &dyn Store,
        node: &NodeId,
        registry: &Registry,
        poll_schedule: &PollSchedule,
        random: &dyn Random,
    ) {
        let mut backoff = Backoff::default();
        loop {
            let next: Vec<(RowId, bool)> = self.rows.lock().iter().take(MAX_RELEASED_AT_ONCE).cloned().collect();
            if next.is_empty() {
                self.queued.notified().await;
                continue;
            }
            let lowest = next.iter().filter(|(_, wanted)| *wanted).map(|(row, _)| row.seq).min();
            let rows: Vec<RowId> = next.into_iter().map(|(row, _)| row).collect();
            if planted_bug::is_active("given_back_row_is_forgotten_first") {
                registry.remove(rows.iter().map(|row| row.seq));
            }
            match store.release(node, &rows).await {
                Ok(()) => {
                    backoff.end();
                    // Nobody else takes any out while a term is open.
                    let mut left = self.rows.lock();
                    let released = rows.len().min(left.len());
                    left.drain(..released);
                    drop(left);
                    registry.remove(rows.iter().map(|row| row.seq));
                    if let Some(lowest) = lowest {
                        poll_schedule.wake_for(lowest);
                    }
                }
                Err(error) => {
                    if backoff.is_first() {
                        tracing::warn!(%error, "claimed rows that this node does not deliver now cannot be released; trying again");
                    }
                    tokio::time::sleep(backoff.next(random)).await;
                }
            }
        }
    }
}
