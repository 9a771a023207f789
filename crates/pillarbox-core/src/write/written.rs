use std::sync::Arc;

use super::NewRow;
use crate::event::{Envelope, EventId};
use crate::queue::Intake;

/// The receipt of a write: the ids of its events, in order, and what the hot path needs to deliver them from memory.
///
/// Pass it to [`Outbox::committed`](crate::run::Outbox::committed) after the commit; dropping it is fine too, and only
/// means that the events are delivered from the table.
#[derive(Debug, Clone)]
pub struct Written {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    /// What was written, each event once however many handlers have a row of it.
    events: Vec<Arc<Envelope>>,
    rows: Vec<NewRow>,
    seqs: Vec<i64>,
    intake: Arc<Intake>,
}

impl Written {
    pub(crate) fn new(rows: Vec<NewRow>, seqs: Vec<i64>, intake: Arc<Intake>) -> Self {
        intake.announce(&rows, &seqs);
        let mut events: Vec<Arc<Envelope>> = rows.iter().map(|row| Arc::clone(row.event())).collect();
        events.dedup_by(|a, b| Arc::ptr_eq(a, b));
        Self { inner: Arc::new(Inner { events, rows, seqs, intake }) }
    }

    /// The events' ids, in write order. Empty when a hook suppressed the write.
    pub fn ids(&self) -> impl ExactSizeIterator<Item = &EventId> {
        self.inner.events.iter().map(|event| event.id())
    }

    /// The id of the first event, which for a write of one event is its id; `None` when a hook suppressed it.
    #[must_use]
    pub fn id(&self) -> Option<&EventId> {
        self.ids().next()
    }

    /// How many events were written. One that several named handlers have counts once.
    #[must_use]
    pub fn len(&self) -> usize {
        self.inner.events.len()
    }

    /// Whether a hook suppressed the write.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.inner.events.is_empty()
    }

    pub(crate) fn events(&self) -> Vec<&Envelope> {
        self.inner.events.iter().map(|event| &**event).collect()
    }

    /// Hands the events to the hot path of the outbox they were written through.
    pub(crate) fn deliver(&self) {
        self.inner.intake.committed(&self.inner.rows, &self.inner.seqs);
    }

    /// Asks the cold path to look for the events soon: they may be committed without anybody saying so.
    pub(crate) fn look_for(&self) {
        self.inner.intake.look_for(&self.inner.rows, &self.inner.seqs);
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.intake.forget(&self.seqs);
    }
}
