use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use pillarbox_core::lock::Mutex;
use pillarbox_core::store::Store;
use pillarbox_core::write::{Found, Presence, Written};
use tokio::sync::Notify;

use super::Intake;

/// Receipts that one look-up asks for at most; more of them are not looked up.
const MAX_RECEIPTS: usize = 256;
/// The shortest distance between two look-ups.
const MIN_LOOKUP_INTERVAL: Duration = Duration::from_secs(1);

/// Receipts that are reported as committed and delivered from the table, until it is known that their events are there.
///
/// Nothing waits for the answer, which is only for the log: the event of a transaction that was rolled back cannot be found by
/// anybody. A look-up a second asks for the first row of each receipt.
#[derive(Debug, Default)]
pub(crate) struct Reported {
    /// True while somebody looks receipts up.
    is_on: AtomicBool,
    waiting: Mutex<Vec<First>>,
    /// Notified when a receipt is queued.
    queued: Notify,
}

/// The first row of a receipt, which stands for all: a write stands or falls as a whole.
#[derive(Debug)]
struct First {
    seq: i64,
    event_id: Box<str>,
    event_type: Box<str>,
}

impl Reported {
    /// Queues a receipt, if there is room.
    pub(super) fn push(&self, written: &Written) {
        let (rows, seqs) = written.rows();
        let (Some(row), Some(seq), true) = (rows.first(), seqs.first(), self.is_on.load(Relaxed)) else { return };
        let mut waiting = self.waiting.lock();
        if waiting.len() >= MAX_RECEIPTS {
            return;
        }
        let (event_id, event_type) = (row.event_id().into(), row.envelope().event_type().into());
        waiting.push(First { seq: *seq, event_id, event_type });
        drop(waiting);
        self.queued.notify_one();
    }

    /// Looks receipts up for as long as it is polled.
    pub(crate) async fn look_up(&self, store: &dyn Store, intake: &Intake) {
        self.is_on.store(true, Relaxed);
        loop {
            self.queued.notified().await;
            let receipts = std::mem::take(&mut *self.waiting.lock());
            let mut seqs: Vec<i64> = receipts.iter().map(|first| first.seq).collect();
            seqs.sort_unstable();
            // A look-up that fails says nothing, and what was reported is delivered from the table all the same.
            if let Ok(found) = store.identify(&seqs).await {
                let found = Found::new(found);
                for First { seq, event_id, event_type } in receipts {
                    if found.presence(&seqs, seq, &event_id) == Presence::Gone {
                        intake.log_rolled_back_receipt(&event_id, &event_type);
                    }
                }
            }
            tokio::time::sleep(MIN_LOOKUP_INTERVAL).await;
        }
    }
}
