use crate::claim::Lookout;
use crate::error::StoreError;
use crate::queue::Intake;
use crate::store::{DeadEvent, DeadFilter, Record, Upkeep};

/// Events replayed or discarded by one statement.
const PAGE: usize = 500;

/// The events that were given up: to look at, to deliver again, to throw away.
///
/// Get it from a running [`Outbox`](crate::run::Outbox::dead_events), or from a store alone.
///
/// ```
/// # let runtime = tokio::runtime::Builder::new_current_thread().build()?;
/// # runtime.block_on(async {
/// use pillarbox_core::maintain::DeadEvents;
/// use pillarbox_core::store::DeadFilter;
/// use pillarbox_core::stores::memory::MemoryStore;
///
/// let store = MemoryStore::new();
/// let dead = DeadEvents::of(&store);
/// let placed = DeadFilter { event_type: Some("order.placed".into()), ..DeadFilter::default() };
/// for event in dead.list(&placed, None, 20).await? {
///     println!("{}: {}", event.event_id, event.last_error.unwrap_or_default());
/// }
/// let replayed = dead.replay_all(&placed, |_so_far| {}).await?;
/// # assert_eq!(replayed, 0);
/// # Ok::<(), pillarbox_core::error::BoxError>(())
/// # })?;
/// # Ok::<(), pillarbox_core::error::BoxError>(())
/// ```
#[derive(Debug, Clone, Copy)]
pub struct DeadEvents<'a, S: ?Sized> {
    store: &'a S,
    /// The outbox that runs here, to deliver what is replayed at once.
    intake: Option<&'a Intake>,
}

impl<'a, S: Upkeep + ?Sized> DeadEvents<'a, S> {
    /// The DEAD events of a store.
    pub fn of(store: &'a S) -> Self {
        Self { store, intake: None }
    }

    pub(crate) fn of_outbox(store: &'a S, intake: &'a Intake) -> Self {
        Self { store, intake: Some(intake) }
    }

    /// Up to `limit` matching events, oldest first; pass the last one's `seq` as `after` to get the next page.
    ///
    /// # Errors
    /// The database's. An empty list means that there are none.
    pub async fn list(
        &self,
        filter: &DeadFilter,
        after: Option<i64>,
        limit: usize,
    ) -> Result<Vec<DeadEvent>, StoreError> {
        self.store.dead(filter, after.unwrap_or(0), limit).await
    }

    /// How many match.
    ///
    /// # Errors
    /// The database's.
    pub async fn count(&self, filter: &DeadFilter) -> Result<u64, StoreError> {
        self.store.count_dead(filter).await
    }

    /// Everything the table holds about an event, DEAD or not; `None` if there is no such event.
    ///
    /// # Errors
    /// The database's.
    pub async fn show(&self, event_id: &str) -> Result<Option<Record>, StoreError> {
        self.store.record(event_id).await
    }

    /// Makes a DEAD event NEW: without attempts and error, due now. False if it is not DEAD or does not exist.
    ///
    /// # Errors
    /// The database's.
    pub async fn replay(&self, event_id: &str) -> Result<bool, StoreError> {
        let Some(record) = self.store.record(event_id).await? else { return Ok(false) };
        let replayed = self.store.replay(&[record.seq]).await?;
        self.wake();
        Ok(!replayed.is_empty())
    }

    /// Replays all that match, oldest first, some hundreds per transaction, and returns how many. Calls `progress` with
    /// the number so far after each. An event that dies again meanwhile is not replayed twice.
    ///
    /// # Errors
    /// The database's; what was replayed by then stays so.
    pub async fn replay_all(&self, filter: &DeadFilter, progress: impl FnMut(u64) + Send) -> Result<u64, StoreError> {
        self.each_page(filter, progress, Fate::Replay).await
    }

    /// Deletes a DEAD event. False if it is not DEAD or does not exist.
    ///
    /// # Errors
    /// The database's.
    pub async fn discard(&self, event_id: &str) -> Result<bool, StoreError> {
        let Some(record) = self.store.record(event_id).await? else { return Ok(false) };
        Ok(!self.store.discard(&[record.seq]).await?.is_empty())
    }

    /// Deletes all that match, and returns how many. Calls `progress` with the number so far.
    ///
    /// # Errors
    /// The database's; what was deleted by then stays so.
    pub async fn discard_all(&self, filter: &DeadFilter, progress: impl FnMut(u64) + Send) -> Result<u64, StoreError> {
        self.each_page(filter, progress, Fate::Discard).await
    }

    async fn each_page(
        &self,
        filter: &DeadFilter,
        mut progress: impl FnMut(u64) + Send,
        fate: Fate,
    ) -> Result<u64, StoreError> {
        let (mut above, mut total) = (0, 0);
        loop {
            let page = self.store.dead(filter, above, PAGE).await?;
            let Some(last) = page.last() else { return Ok(total) };
            above = last.seq;
            let seqs: Vec<i64> = page.iter().map(|event| event.seq).collect();
            let changed = match fate {
                Fate::Replay => self.store.replay(&seqs).await?,
                Fate::Discard => self.store.discard(&seqs).await?,
            };
            total += changed.len() as u64;
            progress(total);
            self.wake();
        }
    }

    fn wake(&self) {
        if let Some(intake) = self.intake {
            intake.lookout.wake_for(Lookout::ANY);
            intake.herald.committed();
        }
    }
}

#[derive(Debug, Clone, Copy)]
enum Fate {
    Replay,
    Discard,
}
