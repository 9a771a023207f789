use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pillarbox_core::event::{Envelope, EventId};
use pillarbox_core::write::WriterHook;

/// A writer hook that remembers what was written, committed and rolled back. Clones share the memory.
///
/// ```
/// use pillarbox_testkit::{RecordingHook, TestOutbox};
/// use pillarbox_core::event::Envelope;
///
/// # let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
/// # runtime.block_on(async {
/// let hook = RecordingHook::new();
/// let test = TestOutbox::start(|outbox| outbox.writer_hook(hook.clone()).handle_all(async |_: pillarbox_core::handle::Delivery| ())).await?;
/// let mut tx = test.begin(test.store()).await?;
/// test.write(&mut tx, Envelope::json("order.placed", "{}")?).await?;
/// tx.rollback().await?;
/// assert_eq!((hook.written().len(), hook.committed().len(), hook.rolled_back().len()), (1, 0, 1));
/// # test.shutdown().await;
/// # Ok::<(), pillarbox_core::error::BoxError>(())
/// # })?;
/// # Ok::<(), pillarbox_core::error::BoxError>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct RecordingHook {
    seen: Arc<Mutex<Seen>>,
}

#[derive(Debug, Default)]
struct Seen {
    written: Vec<EventId>,
    committed: Vec<EventId>,
    rolled_back: Vec<EventId>,
}

impl RecordingHook {
    /// One that has seen nothing.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    fn lock(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The events that were written, in order, whatever became of their transactions.
    #[must_use]
    pub fn written(&self) -> Vec<EventId> {
        self.lock().written.clone()
    }

    /// The events whose commit the outbox learned of: through a guard, or by `notify_committed`.
    #[must_use]
    pub fn committed(&self) -> Vec<EventId> {
        self.lock().committed.clone()
    }

    /// The events whose guard was rolled back or dropped.
    #[must_use]
    pub fn rolled_back(&self) -> Vec<EventId> {
        self.lock().rolled_back.clone()
    }
}

impl WriterHook for RecordingHook {
    fn after_write(&self, events: &[&Envelope]) {
        self.lock().written.extend(events.iter().map(|event| event.id().clone()));
    }
    fn after_commit(&self, events: &[&Envelope]) {
        self.lock().committed.extend(events.iter().map(|event| event.id().clone()));
    }
    fn after_rollback(&self, events: &[&Envelope]) {
        self.lock().rolled_back.extend(events.iter().map(|event| event.id().clone()));
    }
}
