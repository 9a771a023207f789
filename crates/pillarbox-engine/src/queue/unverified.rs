use pillarbox_core::lock::Mutex;
use pillarbox_core::store::Store;
use pillarbox_core::write::{Found, Written};
use tokio::sync::Notify;

use super::Intake;

/// Receipts of which somebody says that they are committed, until the table says so too.
///
/// The word of a caller is not enough to deliver an event: PostgreSQL answers the `COMMIT` of a transaction in which a statement
/// has failed by rolling it back, and drivers take that for success. While one look-up is under way the next receipts
/// gather, so that many share a statement.
#[derive(Debug, Default)]
pub(crate) struct Unverified {
    waiting: Mutex<Waiting>,
    /// Notified when a receipt is queued.
    queued: Notify,
}

#[derive(Debug, Default)]
struct Waiting {
    receipts: Vec<Receipt>,
    rows: usize,
}

#[derive(Debug)]
struct Receipt {
    written: Written,
    /// The rows to look up.
    rows: Vec<i64>,
}

impl Unverified {
    /// Queues a receipt, of which `rows` are to be looked up; false if more than `capacity` rows would wait.
    pub(super) fn push(&self, written: &Written, rows: Vec<i64>, capacity: usize) -> bool {
        let mut waiting = self.waiting.lock();
        if waiting.rows + rows.len() > capacity {
            return false;
        }
        waiting.rows += rows.len();
        waiting.receipts.push(Receipt { written: written.clone(), rows });
        drop(waiting);
        self.queued.notify_one();
        true
    }

    /// A term ends: what waits is delivered from the table.
    pub(super) fn clear(&self) {
        self.take();
    }

    fn take(&self) -> Vec<Receipt> {
        std::mem::take(&mut *self.waiting.lock()).receipts
    }

    /// Looks receipts up for as long as it is polled.
    pub(crate) async fn verify(&self, store: &dyn Store, intake: &Intake) {
        loop {
            let receipts = self.take();
            if receipts.is_empty() {
                self.queued.notified().await;
                continue;
            }
            let rows: Vec<i64> = receipts.iter().flat_map(|receipt| receipt.rows.iter().copied()).collect();
            match store.identify(&rows).await {
                Ok(found) => {
                    let found = Found::new(found);
                    for Receipt { written, rows } in &receipts {
                        intake.verified(written, rows, &found);
                    }
                }
                Err(error) => {
                    tracing::debug!(%error, "reported events cannot be looked up; they are delivered from the table");
                    if let Some(lowest) = rows.iter().min() {
                        intake.poll_schedule.wake_for(*lowest);
                    }
                }
            }
        }
    }
}
