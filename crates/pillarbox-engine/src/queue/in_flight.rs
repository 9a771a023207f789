use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use pillarbox_core::clock::Random;
use pillarbox_core::hash::HashSet;
use pillarbox_core::lock::Mutex;
use pillarbox_core::ownership::{Fence, NodeId, Partitions};
use pillarbox_core::row::{Change, Verdict};
use pillarbox_core::store::{OrderKey, Row, RowId, Store};
use tokio::sync::watch;
use tokio::time::Instant;

use super::keyed_queue::key_of;
use super::quarantine::Quarantine;
use super::registry::FetchGuard;
use super::{Class, Intake, Item, PendingVerdicts, WorkQueue};
use crate::operator_pauses::OperatorPauses;
use crate::poll_schedule::PollSchedule;

/// The key of all events where the table's order is kept.
const ONE_KEY: u64 = 0;
/// About as long as it takes to record a verdict.
const CHECK_INTERVAL: Duration = Duration::from_millis(1);

/// The rows in flight of a term: those that this node holds, from the moment that one enters its memory until its verdict is
/// recorded or it is left to the table.
///
/// Each step of a row changes more than one thing, in an order that matters: the register that lets it in only once, the queue in which
/// others of its key wait behind it, the quarantine, the rows to be released, and the next poll of the table. Tasks call one
/// method a step, and know none of these parts.
///
/// ```text
///                ┌── leave_in_table, leave_to_others, leave_unqueued ───────────▶ the table
///   begin_fetch ─┴─▶ next ─▶ note_decision ─▶ recorded ─┬───────────────────────▶ done with
///                                  │                    └▶ quarantine ─▶ …      ▶ the table, in a minute
///                                  └▶ leave_without_verdict ────────────────────▶ the table
/// ```
#[derive(Debug)]
pub(crate) struct InFlight {
    intake: Arc<Intake>,
    queue: WorkQueue,
    fence: Fence,
    quarantine: Mutex<Quarantine>,
    /// The verdicts on their way to the table; `None` unless events keep their order and handlers commit by themselves.
    pending_verdicts: Option<PendingVerdicts>,
    /// True if the last failure of an event that keeps its place is recorded, false if it was refused; `None` until that is known.
    retry_in_place: watch::Sender<Option<bool>>,
    /// True once the term is over. A handler that blocks its thread may end later, when the next term holds the same row: it changes
    /// nothing of that.
    over: AtomicBool,
}

impl InFlight {
    /// The rows of a term. `verdicts_are_awaited` says that a handler may wait until [earlier verdicts are
    /// recorded](Self::wait_for_earlier_verdicts).
    pub(crate) fn new(intake: Arc<Intake>, queue: WorkQueue, fence: Fence, verdicts_are_awaited: bool) -> Self {
        let pending_verdicts = verdicts_are_awaited.then(PendingVerdicts::default);
        let (quarantine, retry_in_place, over) = (Mutex::default(), watch::Sender::new(None), AtomicBool::new(false));
        Self { intake, queue, fence, quarantine, pending_verdicts, retry_in_place, over }
    }

    /// The queue from which workers take.
    pub(crate) fn queue(&self) -> &WorkQueue {
        &self.queue
    }

    fn poll_schedule(&self) -> &PollSchedule {
        &self.intake.poll_schedule
    }

    /// Begins a fetch. One at a time.
    pub(crate) fn begin_fetch(&self) -> FetchGuard<'_> {
        self.intake.registry.begin_fetch()
    }

    /// Leaves rows in the table that were read and have no place in memory. If they are this node's own there, any node may claim them.
    pub(crate) fn leave_unqueued(&self, rows: impl IntoIterator<Item = RowId>) {
        self.intake.leave_in_table(rows, self.fence);
    }

    /// Drops the waiting events and rereads them, since operators may have changed their rows. Discards the fetch under way.
    pub(crate) fn invalidate(&self, in_order: bool) {
        self.intake.invalidate(&self.queue, in_order);
    }

    /// The operators' pauses.
    pub(crate) fn pauses(&self) -> &Arc<OperatorPauses> {
        &self.intake.pauses
    }

    /// The number of times that memory was [invalidated](Self::invalidate).
    pub(crate) fn invalidations(&self) -> u64 {
        self.intake.registry.invalidations()
    }

    /// True if no row is in flight.
    pub(crate) fn is_empty(&self) -> bool {
        self.intake.registry.taken() == 0
    }

    /// Waits until an operator of this process has changed pending rows, or what is paused.
    pub(crate) async fn intervened(&self) {
        self.intake.intervened.notified().await;
    }

    /// Removes rows from memory that were waiting there and are left in the table.
    pub(crate) fn remove(&self, seqs: Vec<i64>) {
        if !seqs.is_empty() && !self.is_over() {
            self.intake.registry.remove(seqs);
        }
    }

    /// A row of a key that makes no event has failed: `change` is to be recorded. What was waiting behind it is left to the table.
    ///
    /// Returns false if nothing is to be recorded: an earlier verdict on the row may be recorded at this moment, and it is read again afterwards.
    #[must_use = "a verdict on a row that is left to the table must not be recorded"]
    pub(crate) fn failed(&self, key: &OrderKey, seq: i64, change: &Change) -> bool {
        let WorkQueue::Keyed(keyed) = &self.queue else { return true };
        let dropped = keyed.failed(key, seq, change);
        let is_taken = dropped.is_some();
        self.remove(dropped.unwrap_or_else(|| vec![seq]));
        is_taken
    }

    /// The next event; `None` once the queue is closed and empty.
    pub(crate) async fn next(&self) -> Option<Item> {
        self.queue.pop().await
    }

    /// Up to `max` of the events of a class that would be next and are `wanted`.
    pub(crate) fn more(&self, class: Class, max: usize, wanted: impl Fn(&Item) -> bool) -> Vec<Item> {
        self.queue.pop_more(class, max, wanted)
    }

    /// An event has been decided about: `change` is to be recorded, or it is `None` and the row was found to have changed. What was
    /// waiting behind one that failed is left to the table.
    ///
    /// Returns false if nothing is to be recorded, since its handler was told to stop: then the row has to be [left in the
    /// table](Self::leave_without_verdict).
    #[must_use = "a row whose verdict does not count has to be left in the table"]
    pub(crate) fn note_decision(&self, seq: i64, change: Option<&Change>) -> bool {
        if let (Some(pending_verdicts), Some(_)) = (&self.pending_verdicts, change) {
            let key = match &self.queue {
                WorkQueue::Ready(_) => Some(ONE_KEY),
                WorkQueue::Keyed(keyed) => keyed.key_of_running(seq),
            };
            // Before the next event of the key can begin.
            key.inspect(|key| pending_verdicts.add(seq, *key));
        }
        let ended = self.queue.ended(seq, change);
        self.remove(ended.dropped);
        if ended.left {
            self.no_longer_pending([seq]);
        }
        !ended.left
    }

    /// The transaction of an event's handler is about to commit, and with it that the event is DONE.
    pub(crate) fn completing(&self, seq: i64) {
        if let WorkQueue::Keyed(keyed) = &self.queue {
            keyed.completing(seq);
        }
    }

    /// Begins a retry in place: the failure of an event that keeps its place is to be recorded. One event at a time.
    pub(crate) fn begin_retry_in_place(&self) {
        self.retry_in_place.send_replace(None);
    }

    /// Waits until the failure of an event that [is retried in place](Self::begin_retry_in_place) is recorded, and returns true, or is refused.
    pub(crate) async fn wait_for_retry_in_place_recorded(&self) -> bool {
        // The sender lives in `self`, so waiting ends only when it is known.
        let known = self.retry_in_place.subscribe().wait_for(Option::is_some).await.map(|known| *known);
        matches!(known, Ok(Some(true)))
    }

    /// Waits until the verdicts on earlier events of the key are recorded: an event's own verdict must not overtake them.
    pub(crate) async fn wait_for_earlier_verdicts(&self, row: &Row) {
        if let (Some(pending_verdicts), Some(key)) = (&self.pending_verdicts, self.key(row)) {
            pending_verdicts.all_recorded(key).await;
        }
    }

    /// Waits until the previous suspect row's verdict is recorded or quarantined, then registers `seq` as the previous row. Polls, because
    /// such waits are rare. One caller at a time.
    pub(crate) async fn wait_for_previous_suspect(&self, seq: i64) {
        let Intake { registry, .. } = &*self.intake;
        // In order, a row may be tried again in its place.
        while registry.awaited_removal().is_some_and(|last| last != seq && !self.quarantine.lock().holds(last)) {
            tokio::time::sleep(CHECK_INTERVAL).await;
        }
        registry.await_removal(seq);
    }

    /// The key by which an event keeps its order; where all of them keep it, they have one.
    fn key(&self, row: &Row) -> Option<u64> {
        match &self.queue {
            WorkQueue::Ready(_) => Some(ONE_KEY),
            WorkQueue::Keyed(_) => key_of(row),
        }
    }

    /// Verdicts are recorded, or never will be.
    fn no_longer_pending(&self, seqs: impl IntoIterator<Item = i64>) {
        if let Some(pending_verdicts) = &self.pending_verdicts {
            pending_verdicts.remove(seqs);
        }
    }

    /// Leaves a row in the table whose verdict does not count: it is there as it was, for the node that owns it.
    pub(crate) fn leave_without_verdict(&self, seq: i64) {
        if self.is_over() {
            return;
        }
        self.intake.registry.remove([seq]);
        self.queue.recorded([(seq, false)]);
        self.poll_schedule().wake_for(seq);
    }

    /// Leaves an event that was deferred, and what waits behind it, in the table as they are.
    pub(crate) fn leave_in_table(&self, row: &Row) {
        if self.is_over() {
            return;
        }
        let ended = self.queue.left(row.seq);
        let others = !ended.dropped.is_empty();
        self.remove(ended.dropped);
        if self.fence == Fence::Row {
            // Other nodes may reach what this one does not.
            return self.intake.queue_release(row.id());
        }
        self.intake.registry.remove([row.seq]);
        self.queue.recorded([(row.seq, false)]);
        if others {
            self.poll_schedule().wake_for(row.seq);
        }
    }

    /// Leaves an event that is paused, and what waits behind it, in the table as they are. One that its last node may have died of still
    /// says so there: any node may take the others.
    pub(crate) fn leave_paused(&self, item: &Item) {
        if self.fence == Fence::Row && item.is_announced() {
            self.remove(vec![item.row.seq]);
        } else {
            self.leave_in_table(&item.row);
        }
    }

    /// Has this node not take a row for so long, if other nodes may; false if none may, or too many rows are left to others.
    pub(crate) fn leave_to_others(&self, seq: i64, delay: Duration) -> bool {
        self.fence == Fence::Row && !self.is_over() && self.intake.registry.skip_until(seq, Instant::now(), delay)
    }

    /// The partitions of rows in flight, in the order of `seqs`.
    pub(crate) fn partitions(&self, seqs: &[i64]) -> Vec<Option<u8>> {
        self.intake.registry.partitions(seqs)
    }

    /// Verdicts were recorded, except for those on the rows `refused`. `certainly` says that these were refused by the first try,
    /// and not because an earlier one had been recorded. `went_back` says, once they are released, that the database may have lost what it has
    /// just confirmed.
    pub(crate) fn recorded(
        &self,
        batch: &[Verdict],
        refused: &HashSet<i64>,
        certainly: bool,
        went_back: impl FnOnce() -> bool,
    ) {
        if self.is_over() {
            return;
        }
        let is_in_place = |verdict: &&Verdict| matches!(verdict.change, Change::RetryInPlace { .. });
        if let Some(verdict) = batch.iter().find(is_in_place) {
            self.retry_in_place.send_replace(Some(!refused.contains(&verdict.row.seq)));
        }
        // An event that is retried in place is still in memory.
        let ended = batch.iter().filter(|verdict| !is_in_place(verdict));
        let seqs = ended.clone().map(|verdict| verdict.row.seq);
        // Should a refused row be found pending again, it would only be refused again.
        let stays = |seq: &i64| certainly && refused.contains(seq) && self.quarantine.lock().add(*seq);
        let gone: Vec<i64> = seqs.clone().filter(|seq| !stays(seq)).collect();
        self.intake.registry.remove(gone);
        let is_recorded = |seq: &i64| !refused.contains(seq);
        // Only now: a poller that starts over later leaves none of them out, and one that did before left them out as taken.
        let lost = if went_back() { seqs.clone().min() } else { None };
        let freed = self.queue.recorded(seqs.map(|seq| (seq, is_recorded(&seq))));
        self.no_longer_pending(batch.iter().map(|verdict| verdict.row.seq));
        let (mut lowest, mut soonest) = (lost.into_iter().chain(freed).min(), None::<Duration>);
        for verdict in batch.iter().filter(|verdict| is_recorded(&verdict.row.seq)) {
            match verdict.change {
                // An operator may have replayed it before this node had the answer, and a poll at that moment left it out.
                Change::Dead { .. } => lowest = lowest.into_iter().chain([verdict.row.seq]).min(),
                Change::Retry { delay, .. } => soonest = soonest.into_iter().chain([delay]).min(),
                _ => {}
            }
        }
        if let Some(lowest) = lowest {
            self.poll_schedule().wake_for(lowest);
        }
        if let Some(soonest) = soonest {
            self.poll_schedule().due_in(soonest);
        }
    }

    /// The database refuses to record a verdict: the row stays pending, and is delivered again when its quarantine ends. If the event has
    /// failed, its key waits for that in memory, since the table says nothing of the failure. Beside very many of them the one that has waited
    /// longest is delivered sooner, so that recording waits for none.
    pub(crate) fn quarantine(&self, seq: i64) {
        if self.is_over() {
            return;
        }
        if !self.queue.waits_for_failed(seq)
            && let Some(freed) = self.queue.recorded([(seq, false)])
        {
            self.poll_schedule().wake_for(freed);
        }
        self.no_longer_pending([seq]);
        let mut quarantine = self.quarantine.lock();
        let oldest = quarantine.make_room();
        let is_added = quarantine.add(seq);
        drop(quarantine);
        debug_assert!(is_added, "there is room");
        self.end_quarantine_of(oldest);
    }

    /// The database refuses to record a failure of an event that keeps its place: its worker has it still, and tries it again.
    pub(crate) fn retry_in_place_not_recorded(&self) {
        self.retry_in_place.send_replace(Some(false));
    }

    /// Waits for the end of the next quarantine, for ever while there is none, and leaves its row to the table.
    pub(crate) async fn end_quarantine(&self) {
        let next = self.quarantine.lock().next();
        match next {
            Some(end) => tokio::time::sleep_until(end).await,
            None => std::future::pending().await,
        }
        let ended = self.quarantine.lock().take_ended(Instant::now());
        self.end_quarantine_of(ended);
    }

    /// Leaves rows whose quarantine has ended to the table.
    fn end_quarantine_of(&self, ended: impl IntoIterator<Item = i64>) {
        for seq in ended {
            // Asked before it can be read again, and fail again.
            let waits = self.queue.waits_for_failed(seq);
            self.intake.registry.remove([seq]);
            let freed = if waits { self.queue.recorded([(seq, false)]) } else { None };
            self.poll_schedule().wake_for(freed.map_or(seq, |freed| freed.min(seq)));
        }
    }

    /// Releases rows that this node holds and does not deliver, for as long as it is polled.
    pub(crate) async fn run_releases(&self, store: &dyn Store, node: &NodeId, random: &dyn Random) {
        let Intake { release_queue, registry, poll_schedule, .. } = &*self.intake;
        release_queue.run_releases(store, node, registry, poll_schedule, random).await;
    }

    /// The rows in flight.
    pub(crate) fn rows(&self) -> Vec<RowId> {
        self.intake.registry.taken_rows()
    }

    /// The partitions that have rows in flight.
    pub(crate) fn busy_partitions(&self) -> Partitions {
        self.intake.registry.busy()
    }

    /// Throws away what is queued and takes nothing more in: the table still has it. Returns the number of events.
    pub(crate) fn abandon(&self) -> usize {
        self.queue.abandon()
    }

    fn is_over(&self) -> bool {
        self.over.load(Ordering::Acquire)
    }

    /// Forgets everything: the term is over.
    pub(crate) fn clear(&self) {
        self.over.store(true, Ordering::Release);
        self.intake.registry.clear();
    }

    /// Takes nothing more in; what is queued is still delivered.
    pub(crate) fn close(&self) {
        self.queue.close();
    }
}
