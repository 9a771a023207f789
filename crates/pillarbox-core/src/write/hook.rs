use std::fmt;
use std::sync::Arc;

use super::Written;
use crate::error::BoxError;
use crate::event::Envelope;

/// Sees every batch of events on its way into the table.
///
/// `before_write` → insert → `after_write` → commit or rollback → `after_commit` or `after_rollback`. There is one call
/// of each per batch. Nothing after the insert can be vetoed, so those calls return nothing.
///
/// The end of a transaction is known for the guard of `Outbox::begin` and for
/// `Outbox::commit`, which also tell what was rolled back to a savepoint. For a receipt passed
/// to `Outbox::notify_committed`, `after_commit` is called without a check, although delivery looks the rows up: it may
/// run for a transaction that was rolled back. Otherwise neither
/// `after_commit` nor `after_rollback` is called. Each receipt is reported once.
///
/// MySQL and MariaDB commit a transaction by themselves before a statement such as DDL. If that was run in a guard which is then dropped or rolled
/// back, `after_rollback` is called for events that are committed, and delivered.
pub trait WriterHook: Send + Sync + 'static {
    /// May change events, by [`Envelope::into_builder`], drop or add some; an empty answer suppresses the write.
    ///
    /// # Errors
    /// An error aborts the write before any SQL.
    fn before_write(&self, events: Vec<Envelope>) -> Result<Vec<Envelope>, BoxError> {
        Ok(events)
    }

    /// The events are in the table, not yet committed.
    fn after_write(&self, _events: &[&Envelope]) {}

    /// Their transaction committed.
    fn after_commit(&self, _events: &[&Envelope]) {}

    /// Their transaction was rolled back. On MySQL and MariaDB it may have been committed before, by a statement such as DDL.
    fn after_rollback(&self, _events: &[&Envelope]) {}
}

/// A hook that somebody else holds as well, to ask it later.
impl<H: WriterHook + ?Sized> WriterHook for Arc<H> {
    fn before_write(&self, events: Vec<Envelope>) -> Result<Vec<Envelope>, BoxError> {
        (**self).before_write(events)
    }

    fn after_write(&self, events: &[&Envelope]) {
        (**self).after_write(events);
    }

    fn after_commit(&self, events: &[&Envelope]) {
        (**self).after_commit(events);
    }

    fn after_rollback(&self, events: &[&Envelope]) {
        (**self).after_rollback(events);
    }
}

/// All hooks of an outbox: before in registration order, after in reverse.
#[derive(Clone, Default)]
pub struct WriterHooks(Arc<Vec<Arc<dyn WriterHook>>>);

impl WriterHooks {
    /// Adds a hook behind the others.
    pub fn push(&mut self, hook: impl WriterHook) {
        Arc::make_mut(&mut self.0).push(Arc::new(hook));
    }

    /// True if there are no hooks.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Asks every hook in turn.
    ///
    /// # Errors
    /// The first error of a hook.
    pub fn before_write(&self, mut events: Vec<Envelope>) -> Result<Vec<Envelope>, BoxError> {
        for hook in &*self.0 {
            if events.is_empty() {
                break;
            }
            events = hook.before_write(events)?;
        }
        Ok(events)
    }

    /// Calls `stage` on each hook. A hook that panics is logged and does not disturb the write, which is done by now.
    pub fn after(&self, stage: &'static str, written: &Written, call: impl Fn(&dyn WriterHook, &[&Envelope])) {
        if self.0.is_empty() || written.is_empty() {
            return;
        }
        let events = written.events();
        for hook in self.0.iter().rev() {
            let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| call(&**hook, &events)));
            if outcome.is_err() {
                tracing::error!(stage, "a writer hook panicked; the write stands");
            }
        }
    }
}

impl fmt::Debug for WriterHooks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} writer hooks", self.0.len())
    }
}
