use std::sync::Arc;

use pillarbox_core::lock::Mutex;
use pillarbox_core::store::Store;
use pillarbox_core::write::{Found, NewRow, Written};
use tokio::sync::Notify;

use super::{Intake, Limits};

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

/// The receipts that wait, and the size of all that are held: their events stay in memory as long.
#[derive(Debug, Default)]
struct Waiting {
    receipts: Vec<Receipt>,
    /// Of all receipts, those that are looked up now among them.
    held: Limits,
}

#[derive(Debug)]
struct Receipt {
    written: Written,
    /// The rows to look up.
    rows: Vec<i64>,
    /// The content of all events of the receipt.
    bytes: usize,
}

/// Receipts that are looked up. They are held until this is dropped.
struct UnderWay<'a> {
    of: &'a Unverified,
    receipts: Vec<Receipt>,
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        let held = &mut self.of.waiting.lock().held;
        for Receipt { rows, bytes, .. } in &self.receipts {
            held.rows = held.rows.saturating_sub(rows.len());
            held.bytes = held.bytes.saturating_sub(*bytes);
        }
    }
}

impl Unverified {
    /// Queues a receipt, of which `rows` are to be looked up; false if more than `most` would be held.
    pub(super) fn push(&self, written: &Written, rows: Vec<i64>, most: Limits) -> bool {
        let bytes = content_bytes(written);
        let mut waiting = self.waiting.lock();
        let held = Limits { rows: waiting.held.rows + rows.len(), bytes: waiting.held.bytes.saturating_add(bytes) };
        if held.rows > most.rows || held.bytes > most.bytes {
            return false;
        }
        waiting.held = held;
        waiting.receipts.push(Receipt { written: written.clone(), rows, bytes });
        drop(waiting);
        self.queued.notify_one();
        true
    }

    /// A term ends: what waits is delivered from the table.
    pub(super) fn clear(&self) {
        self.take();
    }

    fn take(&self) -> UnderWay<'_> {
        UnderWay { of: self, receipts: std::mem::take(&mut self.waiting.lock().receipts) }
    }

    /// Looks receipts up for as long as it is polled.
    pub(crate) async fn verify(&self, store: &dyn Store, intake: &Intake) {
        loop {
            let under_way = self.take();
            let receipts = &under_way.receipts;
            if receipts.is_empty() {
                self.queued.notified().await;
                continue;
            }
            let rows: Vec<i64> = receipts.iter().flat_map(|receipt| receipt.rows.iter().copied()).collect();
            match store.identify(&rows).await {
                Ok(found) => {
                    let found = Found::new(found);
                    for Receipt { written, rows, .. } in receipts {
                        intake.queue_verified(written, rows, &found);
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

/// The bytes of the events of a receipt. The rows of one event lie together, and share it.
fn content_bytes(written: &Written) -> usize {
    let (mut bytes, mut before) = (0, None);
    for event in written.rows().0.iter().map(NewRow::event) {
        if !before.is_some_and(|before| Arc::ptr_eq(before, event)) {
            bytes += event.content_bytes();
        }
        before = Some(event);
    }
    bytes
}

#[cfg(test)]
mod tests {
    use pillarbox_core::event::Envelope;
    use pillarbox_memory::MemoryStore;

    use super::*;
    use crate::run::Outbox;

    #[tokio::test]
    async fn receipts_are_held_up_to_so_many_rows_and_bytes_until_they_are_looked_up() {
        let store = MemoryStore::new();
        let outbox = Outbox::writer_only(store.clone()).start().await.expect("starts");
        let mut tx = store.begin();
        let event = || Envelope::json("t", "123456").expect("valid");
        let written = outbox.write_all(&mut tx, [event(), event()]).await.expect("writes");
        let bytes = content_bytes(&written);
        assert!(bytes >= 12, "{bytes}");

        let unverified = Unverified::default();
        let push = |rows: usize, bytes: usize| unverified.push(&written, vec![1, 2], Limits { rows, bytes });
        assert!(!push(1, bytes) && !push(2, bytes - 1), "it would be too much");
        assert!(push(2, bytes) && !push(3, 2 * bytes) && !push(4, 2 * bytes - 1) && push(4, 2 * bytes));
        let under_way = unverified.take();
        assert_eq!(under_way.receipts.len(), 2);
        assert!(!push(4, 2 * bytes), "what is looked up is in memory too");
        drop(under_way);
        assert!(push(2, bytes));
        unverified.clear();
        assert!(push(2, bytes), "what was cleared is held no longer");
        outbox.shutdown().await;
    }
}
