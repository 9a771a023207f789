use pillarbox_core::error::StoreError;
use pillarbox_core::row::Status;
use pillarbox_core::store::{Admin, DeadEvent, DeadFilter, FIRST_PAGE, OperatorAction, Record};

use super::dead_reasons::{DeadReasons, Grouping};
use crate::queue::Intake;

/// Events listed by one statement.
const PAGE_SIZE: usize = OperatorAction::PAGE;

/// The DEAD events, those that were given up: to list, replay and discard.
///
/// Get it from a running [`Outbox`](crate::run::Outbox::dead_events), or from a store alone.
///
/// An event has one row, or one for each of its handlers if they have names, and each row is given up by itself. What is
/// listed and counted are rows, whose `seq` names one of them. An event's id names all of its rows, so that more than one may
/// be DEAD under it: [`replay`](Self::replay) and [`discard`](Self::discard) take all of those, and
/// [`replay_for`](Self::replay_for) and [`discard_for`](Self::discard_for) the one of a single handler.
///
/// ```
/// # let runtime = tokio::runtime::Builder::new_current_thread().build()?;
/// # runtime.block_on(async {
/// use pillarbox_engine::maintain::DeadEvents;
/// use pillarbox_core::store::DeadFilter;
/// use pillarbox_memory::MemoryStore;
///
/// let store = MemoryStore::new();
/// let dead = DeadEvents::of(&store);
/// let placed = DeadFilter::new().event_type("order.placed");
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

impl<'a, S: Admin + ?Sized> DeadEvents<'a, S> {
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
        self.store.dead(filter, after.unwrap_or(FIRST_PAGE), limit).await
    }

    /// Counts the events that match, each once for every handler that gave it up.
    ///
    /// # Errors
    /// The database's.
    pub async fn count(&self, filter: &DeadFilter) -> Result<u64, StoreError> {
        self.store.count_dead(filter).await
    }

    /// The reasons for which matching events were given up: events of one type, handler and error counted together, of the oldest `limit`
    /// events at most.
    ///
    /// # Errors
    /// The database's.
    pub async fn reasons(&self, filter: &DeadFilter, limit: usize) -> Result<DeadReasons, StoreError> {
        let (mut grouping, mut above, mut left) = (Grouping::default(), FIRST_PAGE, limit);
        loop {
            // One more than may be read tells whether there are more.
            let page = self.store.dead(filter, above, left.saturating_add(1).min(PAGE_SIZE)).await?;
            let (is_last, has_more) = (page.len() < PAGE_SIZE, page.len() > left);
            above = page.last().map_or(above, |last| last.seq);
            let taken = page.len().min(left);
            page.into_iter().take(taken).for_each(|event| grouping.add(event));
            left -= taken;
            if is_last || has_more {
                return Ok(grouping.finish(has_more));
            }
        }
    }

    /// The `seq` of every row that matches now, oldest first: for a change that somebody confirms before it is made. Pass them to
    /// [`replay_rows`](Self::replay_rows) or [`discard_rows`](Self::discard_rows), some hundreds at a time. A row that goes DEAD later is
    /// not among them.
    ///
    /// # Errors
    /// The database's.
    pub async fn matching(&self, filter: &DeadFilter) -> Result<Vec<i64>, StoreError> {
        let (mut seqs, mut above) = (Vec::new(), FIRST_PAGE);
        loop {
            let page = self.store.dead(filter, above, PAGE_SIZE).await?;
            seqs.extend(page.iter().map(|event| event.seq));
            match page.last() {
                Some(last) if page.len() == PAGE_SIZE => above = last.seq,
                _ => return Ok(seqs),
            }
        }
    }

    /// Everything the table holds about an event, DEAD or not: a record for each of its rows, which are one, or one for each
    /// of its handlers if they have names. Nothing if there is no such event.
    ///
    /// # Errors
    /// The database's.
    pub async fn show(&self, event_id: &str) -> Result<Vec<Record>, StoreError> {
        self.store.records(event_id).await
    }

    /// Makes a DEAD event NEW: without attempts and error, due now.
    ///
    /// If it was written for several handlers, it is replayed to all of those that gave it up, and the others are left alone.
    /// For one of them there is [`replay_for`](Self::replay_for).
    ///
    /// # Errors
    /// The database's.
    pub async fn replay(&self, event_id: &str) -> Result<Changed, StoreError> {
        self.change(event_id, None, OperatorAction::Replay).await
    }

    /// As [`replay`](Self::replay), for the handler of this name alone.
    ///
    /// # Errors
    /// The database's.
    pub async fn replay_for(&self, event_id: &str, handler: &str) -> Result<Changed, StoreError> {
        self.change(event_id, Some(handler), OperatorAction::Replay).await
    }

    /// Replays all that match when it is called, oldest first, some hundreds per transaction, and returns how many, as
    /// [`count`](Self::count) counts them. Calls `progress` with the number so far after each. An event that goes DEAD meanwhile is left
    /// alone, and one that dies again is not replayed twice.
    ///
    /// # Errors
    /// The database's; what was replayed by then stays so.
    pub async fn replay_all(&self, filter: &DeadFilter, progress: impl FnMut(u64) + Send) -> Result<u64, StoreError> {
        self.change_all(filter, progress, OperatorAction::Replay).await
    }

    /// Deletes a DEAD event.
    ///
    /// If it was written for several handlers, the rows of all of those that gave it up are deleted, and the others are left
    /// alone. For one of them there is [`discard_for`](Self::discard_for).
    ///
    /// # Errors
    /// The database's.
    pub async fn discard(&self, event_id: &str) -> Result<Changed, StoreError> {
        self.change(event_id, None, OperatorAction::Discard).await
    }

    /// As [`discard`](Self::discard), for the handler of this name alone.
    ///
    /// # Errors
    /// The database's.
    pub async fn discard_for(&self, event_id: &str, handler: &str) -> Result<Changed, StoreError> {
        self.change(event_id, Some(handler), OperatorAction::Discard).await
    }

    /// Replays those of the rows with these numbers that are DEAD, and no other row of their events. Returns how many.
    ///
    /// # Errors
    /// The database's.
    pub async fn replay_rows(&self, seqs: &[i64]) -> Result<u64, StoreError> {
        self.apply(OperatorAction::Replay, seqs).await
    }

    /// Deletes those of the rows with these numbers that are DEAD, and no other row of their events. Returns how many.
    ///
    /// # Errors
    /// The database's.
    pub async fn discard_rows(&self, seqs: &[i64]) -> Result<u64, StoreError> {
        self.apply(OperatorAction::Discard, seqs).await
    }

    async fn change(
        &self,
        event_id: &str,
        handler: Option<&str>,
        action: OperatorAction,
    ) -> Result<Changed, StoreError> {
        let mut records = self.store.records(event_id).await?;
        records.retain(|record| handler.is_none_or(|handler| record.handler.as_deref() == Some(handler)));
        if records.is_empty() {
            return Ok(Changed::Unknown);
        }
        let dead = records.iter().filter(|record| Status::from_code(record.status) == Some(Status::Dead));
        // The statement asks again whether they are.
        let changed = self.apply(action, &dead.map(|record| record.seq).collect::<Vec<_>>()).await?;
        Ok(if changed == 0 { Changed::NotDead } else { Changed::Rows(changed) })
    }

    /// Deletes all that match when it is called, and returns how many, as [`count`](Self::count) counts them. Calls `progress` with the
    /// number so far. An event that goes DEAD meanwhile is left alone.
    ///
    /// # Errors
    /// The database's; what was deleted by then stays so.
    pub async fn discard_all(&self, filter: &DeadFilter, progress: impl FnMut(u64) + Send) -> Result<u64, StoreError> {
        self.change_all(filter, progress, OperatorAction::Discard).await
    }

    /// Changes the rows that match at the beginning. What goes DEAD meanwhile was in no list that the caller has seen.
    async fn change_all(
        &self,
        filter: &DeadFilter,
        mut progress: impl FnMut(u64) + Send,
        action: OperatorAction,
    ) -> Result<u64, StoreError> {
        let mut total = 0;
        for seqs in self.matching(filter).await?.chunks(PAGE_SIZE) {
            total += self.apply(action, seqs).await?;
            progress(total);
        }
        Ok(total)
    }

    /// Changes those of the rows that are DEAD, and returns how many were.
    async fn apply(&self, action: OperatorAction, seqs: &[i64]) -> Result<u64, StoreError> {
        let changed = action.apply(self.store, seqs).await?;
        self.wake_for(&changed);
        Ok(changed.len() as u64)
    }

    /// Has the outbox look at what an operator has changed, which may stand far below what is read now: the row itself, or those of
    /// its key that waited for it.
    fn wake_for(&self, changed: &[i64]) {
        if let (Some(intake), Some(lowest)) = (self.intake, changed.iter().min()) {
            intake.poll_schedule.wake_for(*lowest);
            intake.notifier.committed();
        }
    }
}

/// The answer to the replay or the discard of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[must_use = "an event that is not DEAD, or not there, is left alone without an error"]
pub enum Changed {
    /// Number of DEAD rows changed: one, or one for each handler that gave the event up.
    Rows(u64),
    /// It is there, for this handler if one was named, and not DEAD: nothing was changed.
    NotDead,
    /// There is no such event, or no row of it for this handler.
    Unknown,
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use futures_util::FutureExt as _;
    use pillarbox_core::event::{EventId, Stamp};
    use pillarbox_core::ownership::{Fence, NodeId, NodeMode, NodeName};
    use pillarbox_core::row::{Change, Expected, RowId, Verdict};
    use pillarbox_core::store::Store as _;
    use pillarbox_memory::MemoryStore;

    use super::*;

    /// The owner of a table.
    struct Owner(MemoryStore, NodeId);

    impl Owner {
        async fn new() -> Self {
            let (store, node) = (MemoryStore::new(), NodeId::incarnate(&NodeName::of_host(), Stamp::system()));
            store.join(&node, NodeMode::SingleNode, Duration::from_secs(3600)).await.expect("joins");
            store.acquire(&node).await.expect("owns the table");
            Self(store, node)
        }

        /// Writes an event, and gives it up.
        async fn dead(&self, id: &str) -> i64 {
            let Self(store, node) = self;
            let seq = store.inspect().insert_three_columns(id, "t", "{}").expect("inserts");
            let row = RowId { seq, event_id: EventId::from_stored(id), handler: None };
            let change = Change::Dead { attempts: 1, error: "no".to_owned() };
            let verdict = Verdict { row, expected: Expected::FIRST, change };
            let refused = store.settle(node, Fence::Table, &[verdict]).await.expect("settles");
            assert!(refused.is_empty());
            seq
        }
    }

    #[tokio::test]
    async fn events_that_go_dead_while_all_matches_are_changed_are_left_alone() {
        for action in [OperatorAction::Replay, OperatorAction::Discard] {
            let owner = Owner::new().await;
            let mut seqs = Vec::new();
            for number in 0..=PAGE_SIZE {
                seqs.push(owner.dead(&number.to_string()).await);
            }
            let dead = DeadEvents::of(&owner.0);
            assert_eq!(dead.matching(&DeadFilter::new()).await.expect("lists"), seqs);
            let (mut progress, mut late) = (Vec::new(), Vec::new());
            let die = |so_far| {
                progress.push(so_far);
                // No more than a few, so that a change which goes on with them ends.
                if late.len() < 5 {
                    late.extend(owner.dead(&format!("late {so_far}")).now_or_never());
                }
            };
            assert_eq!(dead.change_all(&DeadFilter::new(), die, action).await.expect("changes"), 501);
            assert_eq!((progress.as_slice(), late.len()), ([500, 501].as_slice(), 2));
            assert_eq!(dead.matching(&DeadFilter::new()).await.expect("lists"), late, "{action:?}");
        }
    }

    #[tokio::test]
    async fn reasons_are_those_of_the_oldest_events_up_to_the_limit() {
        let owner = Owner::new().await;
        for number in 0..=PAGE_SIZE {
            owner.dead(&number.to_string()).await;
        }
        let dead = DeadEvents::of(&owner.0);
        for (limit, read, has_more) in [(1, 1, true), (500, 500, true), (501, 501, false), (2_000, 501, false)] {
            let found = dead.reasons(&DeadFilter::new(), limit).await.expect("reads");
            let counted: Vec<u64> = found.reasons.iter().map(|reason| reason.events).collect();
            assert_eq!((counted, found.read, found.has_more), (vec![read], read, has_more), "{limit}");
        }
        let none = dead.reasons(&DeadFilter::new().event_type("u"), 10).await.expect("reads");
        assert_eq!(none, DeadReasons::default());
    }
}
