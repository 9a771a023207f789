use pillarbox_core::error::StoreError;
use pillarbox_core::row::Status;
use pillarbox_core::store::{Admin, FIRST_PAGE, OperatorAction, PendingEvent, PendingFilter, PendingState, Record};

use crate::queue::Intake;

/// The most events on a page.
const MAX_PAGE_SIZE: usize = 10_000;
/// The states of events that wait for a time.
const WAITING: [PendingState; 2] = [PendingState::Delayed, PendingState::Retrying];

/// The events that still have to be delivered: to look at, to try now, to cancel.
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
/// let due_now = pending.retry_all_now(&retrying, |_so_far| {}).await?;
/// let cancelled = pending.cancel_all(&PendingFilter::new().tenant("gone"), |_so_far| {}).await?;
/// # assert_eq!((due_now, cancelled), (0, 0));
/// # Ok::<(), pillarbox_core::error::BoxError>(())
/// # })?;
/// # Ok::<(), pillarbox_core::error::BoxError>(())
/// ```
#[derive(Debug, Clone, Copy)]
pub struct PendingEvents<'a, S: ?Sized> {
    store: &'a S,
    /// The outbox that runs here, to notice what is changed at once.
    intake: Option<&'a Intake>,
}

impl<'a, S: Admin + ?Sized> PendingEvents<'a, S> {
    /// The pending events of a store.
    pub fn of(store: &'a S) -> Self {
        Self { store, intake: None }
    }

    pub(crate) fn of_outbox(store: &'a S, intake: &'a Intake) -> Self {
        Self { store, intake: Some(intake) }
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
        self.store.pending(filter, after.unwrap_or(FIRST_PAGE), limit.min(MAX_PAGE_SIZE)).await
    }

    /// Counts the events that match, each once for every handler that it waits for. It reads all pending rows.
    ///
    /// # Errors
    /// The database's.
    pub async fn count(&self, filter: &PendingFilter) -> Result<u64, StoreError> {
        self.store.count_pending(filter).await
    }

    /// The `seq` of every row that matches now, ascending: for a change that somebody confirms before it is made. Pass them to
    /// [`cancel_rows`](Self::cancel_rows), some hundreds at a time. What is written later is not among them.
    ///
    /// # Errors
    /// The database's.
    pub async fn matching(&self, filter: &PendingFilter) -> Result<Vec<i64>, StoreError> {
        let (mut seqs, mut above) = (Vec::new(), FIRST_PAGE);
        // As many as there are at the beginning: with others that come meanwhile there would be no end.
        let mut left = self.store.count_pending(filter).await?;
        while left > 0 {
            // Each page reads all rows that wait for a time, so pages are large.
            let limit = MAX_PAGE_SIZE.min(usize::try_from(left).unwrap_or(MAX_PAGE_SIZE));
            let page = self.store.pending(filter, above, limit).await?;
            let Some(last) = page.last() else { break };
            above = last.seq;
            left = left.saturating_sub(page.len() as u64);
            seqs.extend(page.iter().map(|event| event.seq));
        }
        Ok(seqs)
    }

    /// As [`matching`](Self::matching), of those that wait for a time: pass them to [`retry_rows_now`](Self::retry_rows_now).
    ///
    /// # Errors
    /// The database's.
    pub async fn waiting(&self, filter: &PendingFilter) -> Result<Vec<i64>, StoreError> {
        let mut seqs = Vec::new();
        for state in WAITING.into_iter().filter(|state| filter.state.is_none_or(|wanted| wanted == *state)) {
            seqs.extend(self.matching(&PendingFilter { state: Some(state), ..filter.clone() }).await?);
        }
        // One that was delayed, and has failed between the two reads, is in both.
        seqs.sort_unstable();
        seqs.dedup();
        Ok(seqs)
    }

    /// Everything the table holds about an event, pending or not, its payload included: a record for each of its rows. Nothing
    /// if there is no such event.
    ///
    /// # Errors
    /// The database's.
    pub async fn show(&self, event_id: &str) -> Result<Vec<Record>, StoreError> {
        self.store.records(event_id).await
    }

    /// Makes an event due now that waits for a time: its delay is over, or it is tried again at once. Its attempts stay.
    ///
    /// If it was written for several handlers, that is so for all of those that it still waits for; for one of them there is
    /// [`retry_now_for`](Self::retry_now_for). A call that runs is not repeated: if it fails, the event waits as after any failure. Order
    /// stays: an event waits for earlier ones of its key. A running node tries it at once, or within two seconds; where its queue
    /// is full, when there is room.
    ///
    /// # Errors
    /// The database's.
    pub async fn retry_now(&self, event_id: &str) -> Result<PendingChange, StoreError> {
        self.change(event_id, None, OperatorAction::RetryNow).await
    }

    /// As [`retry_now`](Self::retry_now), for the handler of this name alone.
    ///
    /// # Errors
    /// The database's.
    pub async fn retry_now_for(&self, event_id: &str, handler: &str) -> Result<PendingChange, StoreError> {
        self.change(event_id, Some(handler), OperatorAction::RetryNow).await
    }

    /// Makes all events due now that match and wait for a time when it is called, some hundreds per transaction, and returns how many. Calls
    /// `progress` with the number so far after each. What is written meanwhile is left alone.
    ///
    /// # Errors
    /// The database's; what was changed by then stays so.
    pub async fn retry_all_now(
        &self,
        filter: &PendingFilter,
        progress: impl FnMut(u64) + Send,
    ) -> Result<u64, StoreError> {
        self.change_all(&self.waiting(filter).await?, progress, OperatorAction::RetryNow).await
    }

    /// Counts the events that [`retry_all_now`](Self::retry_all_now) would make due.
    ///
    /// # Errors
    /// The database's.
    pub async fn count_waiting(&self, filter: &PendingFilter) -> Result<u64, StoreError> {
        let mut waiting = 0;
        for state in WAITING.into_iter().filter(|state| filter.state.is_none_or(|wanted| wanted == *state)) {
            waiting += self.store.count_pending(&PendingFilter { state: Some(state), ..filter.clone() }).await?;
        }
        Ok(waiting)
    }

    /// Cancels an event: it is over without a delivery. Its row is DONE, says that it was cancelled, and is kept as long as those of
    /// delivered events; later events of its key go on.
    ///
    /// If it was written for several handlers, it is cancelled for all of those that it still waits for; for one of them there is
    /// [`cancel_for`](Self::cancel_for).
    ///
    /// A call that runs is not stopped, and its verdict is refused. Nodes that have the event in memory notice within two seconds, as long
    /// as they reach the database: until then, one of them may still begin it
    /// once more. In mode `ordered`, an event that fails in its place may be tried again for as long.
    ///
    /// # Errors
    /// The database's.
    pub async fn cancel(&self, event_id: &str) -> Result<PendingChange, StoreError> {
        self.change(event_id, None, OperatorAction::Cancel).await
    }

    /// As [`cancel`](Self::cancel), for the handler of this name alone.
    ///
    /// # Errors
    /// The database's.
    pub async fn cancel_for(&self, event_id: &str, handler: &str) -> Result<PendingChange, StoreError> {
        self.change(event_id, Some(handler), OperatorAction::Cancel).await
    }

    /// Cancels all events that match when it is called, some hundreds per transaction, and returns how many. Calls `progress` with the
    /// number so far after each. What is written meanwhile is left alone.
    ///
    /// # Errors
    /// The database's; what was cancelled by then stays so.
    pub async fn cancel_all(
        &self,
        filter: &PendingFilter,
        progress: impl FnMut(u64) + Send,
    ) -> Result<u64, StoreError> {
        self.change_all(&self.matching(filter).await?, progress, OperatorAction::Cancel).await
    }

    /// As [`retry_now`](Self::retry_now), of those of the rows with these numbers that wait, and of no other row of their events. Returns how
    /// many.
    ///
    /// # Errors
    /// The database's.
    pub async fn retry_rows_now(&self, seqs: &[i64]) -> Result<u64, StoreError> {
        self.apply(OperatorAction::RetryNow, seqs).await
    }

    /// As [`cancel`](Self::cancel), of those of the rows with these numbers that are pending, and of no other row of their events. Returns how
    /// many.
    ///
    /// # Errors
    /// The database's.
    pub async fn cancel_rows(&self, seqs: &[i64]) -> Result<u64, StoreError> {
        self.apply(OperatorAction::Cancel, seqs).await
    }

    async fn change(
        &self,
        event_id: &str,
        handler: Option<&str>,
        action: OperatorAction,
    ) -> Result<PendingChange, StoreError> {
        let mut records = self.store.records(event_id).await?;
        records.retain(|record| handler.is_none_or(|handler| record.handler.as_deref() == Some(handler)));
        if records.is_empty() {
            return Ok(PendingChange::Unknown);
        }
        let is_pending = |record: &&Record| Status::from_code(record.status).is_some_and(Status::is_pending);
        let seqs: Vec<i64> = records.iter().filter(is_pending).map(|record| record.seq).collect();
        // The statement asks again whether they are.
        let changed = self.apply(action, &seqs).await?;
        Ok(if changed == 0 { PendingChange::Nothing } else { PendingChange::Rows(changed) })
    }

    async fn change_all(
        &self,
        seqs: &[i64],
        mut progress: impl FnMut(u64) + Send,
        action: OperatorAction,
    ) -> Result<u64, StoreError> {
        let mut total = 0;
        for seqs in seqs.chunks(OperatorAction::PAGE) {
            total += self.apply(action, seqs).await?;
            progress(total);
        }
        Ok(total)
    }

    /// Changes those of the rows that the action is about, and returns how many were.
    async fn apply(&self, action: OperatorAction, seqs: &[i64]) -> Result<u64, StoreError> {
        let changed = action.apply(self.store, seqs).await?;
        if let (Some(intake), Some(lowest)) = (self.intake, changed.iter().min()) {
            intake.intervened.notify_one();
            intake.poll_schedule.wake_for(*lowest);
            intake.notifier.committed();
        }
        Ok(changed.len() as u64)
    }
}

/// The answer to the change of a pending event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[must_use = "an event that is not pending, or not there, is left alone without an error"]
pub enum PendingChange {
    /// The number of its rows that were changed: one, or one for each handler that it waits for.
    Rows(u64),
    /// It is there, for this handler if one was named, and there was nothing to change: it is over, or waits for no time.
    Nothing,
    /// There is no such event, or no row of it for this handler.
    Unknown,
}
