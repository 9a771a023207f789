use pillarbox_core::error::StoreError;
use pillarbox_core::store::{PendingEvent, PendingFilter, Record, Upkeep};

/// The most events on a page.
const MOST_LISTED: usize = 10_000;

/// The events that still have to be delivered, to look at.
///
/// Get it from a running [`Outbox`](crate::run::Outbox::pending_events), or from a store alone.
///
/// An event has one row, or one for each of its handlers if they have names. What is listed and counted are rows, whose
/// `seq` names one of them.
///
/// ```
/// # let runtime = tokio::runtime::Builder::new_current_thread().build()?;
/// # runtime.block_on(async {
/// use pillarbox_core::store::{PendingFilter, PendingState};
/// use pillarbox_engine::maintain::PendingEvents;
/// use pillarbox_memory::MemoryStore;
///
/// let store = MemoryStore::new();
/// let pending = PendingEvents::of(&store);
/// let retrying = PendingFilter::new().state(PendingState::Retrying);
/// for event in pending.list(&retrying, None, 20).await? {
///     println!("{}: {}", event.event_id, event.last_error.unwrap_or_default());
/// }
/// # assert_eq!(pending.count(&retrying).await?, 0);
/// # Ok::<(), pillarbox_core::error::BoxError>(())
/// # })?;
/// # Ok::<(), pillarbox_core::error::BoxError>(())
/// ```
#[derive(Debug, Clone, Copy)]
pub struct PendingEvents<'a, S: ?Sized> {
    store: &'a S,
}

impl<'a, S: Upkeep + ?Sized> PendingEvents<'a, S> {
    /// The pending events of a store.
    pub fn of(store: &'a S) -> Self {
        Self { store }
    }

    /// Up to `limit` matching events in the order of `seq`, at most 10,000; pass the last one's `seq` as `after` to get the
    /// next page.
    ///
    /// # Errors
    /// The database's. An empty list means that there are none.
    pub async fn list(
        &self,
        filter: &PendingFilter,
        after: Option<i64>,
        limit: usize,
    ) -> Result<Vec<PendingEvent>, StoreError> {
        self.store.pending(filter, after.unwrap_or(0), limit.min(MOST_LISTED)).await
    }

    /// Counts the events that match, each once for every handler that it waits for. It reads all pending rows.
    ///
    /// # Errors
    /// The database's.
    pub async fn count(&self, filter: &PendingFilter) -> Result<u64, StoreError> {
        self.store.count_pending(filter).await
    }

    /// Everything the table holds about an event, pending or not, its payload included: a record for each of its rows. Nothing
    /// if there is no such event.
    ///
    /// # Errors
    /// The database's.
    pub async fn show(&self, event_id: &str) -> Result<Vec<Record>, StoreError> {
        self.store.records(event_id).await
    }
}
