use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use super::Registry;
use crate::claim::Lookout;
use crate::clock::Random;
use crate::ownership::NodeId;
use crate::retry::Pause;
use crate::store::Store;

/// Rows to remember at most; what is beyond that this node finds by itself, as it finds whatever it forgot.
const MAX_ROWS: usize = 100_000;
/// Rows given back by one statement.
const BATCH: usize = 5_000;

/// Rows that are this node's own in the table and that it does not deliver now: they found the hot lane full, their type is held
/// back, or they are left to other nodes. They are given back, so that any node may claim them. Until they are, they stay registered as held: a row
/// that this node claimed again meanwhile would be given away under its hands.
#[derive(Debug, Default)]
pub(crate) struct Surplus {
    rows: Mutex<Vec<i64>>,
    bell: Notify,
}

impl Surplus {
    fn lock(&self) -> MutexGuard<'_, Vec<i64>> {
        self.rows.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether there is room to remember a row that is to be given back.
    pub(crate) fn push(&self, seq: i64) -> bool {
        let mut rows = self.lock();
        let has_room = rows.len() < MAX_ROWS;
        if has_room {
            rows.push(seq);
        }
        drop(rows);
        self.bell.notify_one();
        has_room
    }

    /// A term begins: what an earlier one left names a node that is gone.
    pub(crate) fn clear(&self) {
        self.lock().clear();
    }

    /// Gives rows back for as long as it is polled.
    pub(crate) async fn give_back(
        &self,
        store: &dyn Store,
        node: &NodeId,
        registry: &Registry,
        lookout: &Lookout,
        random: &dyn Random,
    ) {
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
                    registry.release(rows.iter().copied());
                    lookout.wake_for(*lowest);
                }
                Err(error) => {
                    if pause.is_first() {
                        tracing::warn!(%error, "what this node does not deliver now cannot be given back; trying again");
                    }
                    tokio::time::sleep(pause.next(random)).await;
                }
            }
        }
    }
}
