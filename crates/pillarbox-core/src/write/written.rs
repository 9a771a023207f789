use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::probe::{Found, Presence};
use super::unique::Inserted;
use super::{CommitSink, NewRow, Skipped, WriterHooks};
use crate::event::{Envelope, EventId};
use crate::planted_bug;
use crate::store::Store;

/// The receipt of a write: the ids of its events, in order, and what the hot path needs to deliver them from memory.
///
/// A guard keeps it by itself. For a transaction of your own, commit by `Outbox::commit`, or
/// pass it to `Outbox::notify_committed` after the commit; dropping it is fine too,
/// and only means that the events are delivered from the table.
#[derive(Debug, Clone)]
pub struct Written {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    /// The rows; all of one event, one for each of its handlers, are adjacent and share it.
    rows: Vec<NewRow>,
    /// Ascending.
    seqs: Vec<i64>,
    skipped: Vec<Skipped>,
    store: Arc<dyn Store>,
    sink: Arc<dyn CommitSink>,
    hooks: WriterHooks,
    /// The end of the transaction was reported.
    reported: AtomicBool,
    /// A guard has the receipt, and reports that end.
    is_kept: AtomicBool,
}

impl Written {
    /// The receipt of a write.
    #[must_use]
    pub fn new(
        Inserted { rows, seqs, skipped }: Inserted,
        store: &Arc<dyn Store>,
        sink: Arc<dyn CommitSink>,
        hooks: &WriterHooks,
    ) -> Self {
        sink.announce(&rows, &seqs);
        let (store, hooks) = (Arc::clone(store), hooks.clone());
        let (reported, is_kept) = (AtomicBool::new(false), AtomicBool::new(false));
        Self { inner: Arc::new(Inner { rows, seqs, skipped, store, sink, hooks, reported, is_kept }) }
    }

    /// The ids of the events that were written, in write order. Empty when a hook suppressed the write, no handler accepts the event, or
    /// one with its unique key is [pending](Self::skipped).
    pub fn ids(&self) -> impl ExactSizeIterator<Item = &EventId> {
        self.events().into_iter().map(Envelope::id)
    }

    /// The id of the first event, which for a write of one event is its id; `None` if it was not written; see
    /// [`ids`](Self::ids).
    #[must_use]
    pub fn id(&self) -> Option<&EventId> {
        self.inner.rows.first().map(|row| row.envelope().id())
    }

    /// The number of events that were written. An event of several named handlers counts once.
    #[must_use]
    pub fn len(&self) -> usize {
        self.each().count()
    }

    /// True if nothing was written; see [`ids`](Self::ids).
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.inner.rows.is_empty()
    }

    /// The rows that were not written, since one with their [unique key](Envelope::unique_key) is pending for the same handler. An event of
    /// several named handlers may be written for some of them alone.
    #[must_use]
    pub fn skipped(&self) -> &[Skipped] {
        &self.inner.skipped
    }

    /// The events, each once.
    #[must_use]
    pub fn events(&self) -> Vec<&Envelope> {
        self.each().collect()
    }

    /// The events that were written, each once however many handlers have a row of it.
    fn each(&self) -> impl Iterator<Item = &Envelope> {
        let of_one = self.inner.rows.chunk_by(|a, b| Arc::ptr_eq(a.event(), b.event()));
        of_one.filter_map(|rows| rows.first().map(NewRow::envelope))
    }

    /// The rows and their `seq`.
    #[must_use]
    pub fn rows(&self) -> (&[NewRow], &[i64]) {
        (&self.inner.rows, &self.inner.seqs)
    }

    /// A guard keeps the receipt. Nobody else reports the end of its transaction: what ends before is a transaction that is nested in it.
    pub(super) fn keep(&self) {
        self.inner.is_kept.store(true, Ordering::Release);
    }

    /// Adds the rows that the hot path could deliver to `rows`, which are of the same transaction, if its commit `is_final`. For hooks at least
    /// one, which stands for all: a write stands or falls as a whole, by a savepoint where it takes several statements.
    pub(super) fn verify(&self, rows: &mut Vec<i64>, is_final: bool) {
        let Inner { rows: written, seqs, sink, hooks, .. } = &*self.inner;
        let asked = rows.len();
        if is_final {
            sink.verify(written, seqs, rows);
        }
        if rows.len() == asked && !hooks.is_empty() {
            rows.extend(seqs.first());
        }
    }

    /// The query for those of its rows that are there.
    pub(super) fn query(&self, seqs: &[i64]) -> Option<String> {
        if seqs.is_empty() { None } else { self.inner.store.identify_sql(seqs) }
    }

    /// The transaction has committed; of the rows `probed`, those that were `found` are there. Unless the commit `is_final`, the transaction may have
    /// been nested in another one that is still open.
    pub(super) fn committed(&self, probed: &[i64], found: &Found, is_final: bool) {
        let Inner { rows, seqs, sink, is_kept, .. } = &*self.inner;
        if (!is_final && is_kept.load(Ordering::Acquire)) || self.is_reported() {
            return;
        }
        if self.is_gone(probed, found) {
            let (event_id, events) = (self.id().map(EventId::as_str), self.len());
            tracing::debug!(event_id, events, "events were rolled back before their transaction committed");
            return self.after_rollback();
        }
        if is_final {
            sink.committed(rows, seqs, &|row, seq| found.presence(probed, seq, row.event_id()));
        } else {
            sink.notify_committed(self);
        }
        self.after_commit();
    }

    /// True if rows of it were asked for, and none was found.
    pub fn is_gone(&self, probed: &[i64], found: &Found) -> bool {
        let fates =
            self.inner.rows.iter().zip(&self.inner.seqs).map(|(row, seq)| found.presence(probed, *seq, row.event_id()));
        let mut known = fates.filter(|fate| *fate != Presence::Unknown).peekable();
        known.peek().is_some()
            && known.all(|fate| fate == Presence::Gone)
            && !planted_bug::is_active("rolled_back_rows_go_hot")
    }

    /// Somebody says that the transaction has committed.
    pub fn notify_committed(&self) {
        if self.inner.is_kept.load(Ordering::Acquire) || self.is_reported() {
            return;
        }
        self.inner.sink.notify_committed(self);
        self.after_commit();
    }

    /// The transaction was rolled back.
    pub(super) fn rolled_back(&self) {
        if !self.is_reported() {
            self.after_rollback();
        }
    }

    /// Marks the end of the transaction as reported; true if it was before.
    fn is_reported(&self) -> bool {
        self.inner.reported.swap(true, Ordering::AcqRel)
    }

    fn after_commit(&self) {
        self.inner.hooks.after("after_commit", self, |hook, events| hook.after_commit(events));
    }

    fn after_rollback(&self) {
        self.inner.hooks.after("after_rollback", self, |hook, events| hook.after_rollback(events));
    }

    /// Asks the cold path to look for the events soon: they may be committed without anybody saying so.
    pub fn look_for(&self) {
        self.inner.sink.look_for(&self.inner.rows, &self.inner.seqs);
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.sink.forget(&self.seqs);
    }
}
