use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use crate::claim::Lookout;
use crate::clock::Random;
use crate::ownership::NodeId;
use crate::retry::Pause;
use crate::store::Store;

/// Rows to remember at most; what is beyond that this node finds by itself, as it finds whatever it forgot.
const MAX_ROWS: usize = 100_000;
/// Rows given back by one statement.
const BATCH: usize = 5_000;

/// Rows that were inserted as this node's own and found the hot lane full. They are given back, so that any node may
/// claim them.
#[derive(Debug, Default)]
pub(crate) struct Overflow {
    rows: Mutex<Vec<i64>>,
    bell: Notify,
}

impl Overflow {
    fn lock(&self) -> MutexGuard<'_, Vec<i64>> {
        self.rows.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn push(&self, seq: i64) {
        let mut rows = self.lock();
        if rows.len() < MAX_ROWS {
            rows.push(seq);
        }
        drop(rows);
        self.bell.notify_one();
    }

    /// What is not given back yet.
    pub(crate) fn all(&self) -> Vec<i64> {
        self.lock().clone()
    }

    /// A term begins: what an earlier one left names a node that is gone.
    pub(crate) fn clear(&self) {
        self.lock().clear();
    }

    /// Gives rows back for as long as it is polled.
    pub(crate) async fn give_back(&self, store: &dyn Store, node: &NodeId, lookout: &Lookout, random: &dyn Random) {
        let mut pause = Pause::default();
        loop {
            let rows: Vec<i64> = self.lock().iter().copied().take(BATCH).collect();
            let Some(lowest) = rows.iter().min() else {
                self.bell.notified().await;
                continue;
            };
            match store.release(node, &rows).await {
                Ok(()) => {
                    pause.is_over();
                    // Nobody else takes any out while a term is open.
                    let mut left = self.lock();
                    let given = rows.len().min(left.len());
                    left.drain(..given);
                    drop(left);
                    lookout.wake_for(*lowest);
                }
                Err(error) => {
                    if pause.is_first() {
                        tracing::warn!(%error, "what the hot queue has no room for cannot be given back; trying again");
                    }
                    tokio::time::sleep(pause.next(random)).await;
                }
            }
        }
    }
}
