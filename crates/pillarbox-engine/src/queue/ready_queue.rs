use std::sync::Arc;

use pillarbox_core::handle::{DeliveringNode, Path};
use pillarbox_core::lock::Mutex;
use pillarbox_core::ownership::PriorAttempt;
use pillarbox_core::store::Row;
use tokio::time::Instant;

use super::dispatch_queue::{DispatchKey, DispatchQueue};
use super::{Charge, Class, Dropped, FairShares, MAX_PASSED_OVER};
use crate::operator_pauses::OperatorPauses;

/// The answer to cold events that were to be queued.
#[derive(Debug)]
pub(crate) enum Pushed {
    /// They are queued but for these, which are left to the table, with their class: it has its share of the memory, or is passed over.
    AllBut(Vec<(Arc<Row>, Class)>),
    /// None is: memory has begun anew since they were read.
    CalledOff(Vec<(Arc<Row>, PriorAttempt)>),
    /// None is: the term ends, which gives up everything that is in memory.
    Closed,
}

/// An event waiting for a worker.
#[derive(Debug)]
pub(crate) struct Item {
    pub(crate) row: Arc<Row>,
    pub(crate) path: Path,
    /// The time at which it was committed (hot) or had been read (cold).
    pub(crate) since: Instant,
    /// The record of earlier deliveries that the table had.
    pub(crate) prior_attempt: PriorAttempt,
    pub(crate) class: Class,
    /// The part of the workers and the memory that it takes up; `None` for a copy of one that has a charge.
    pub(crate) charge: Option<Charge>,
    /// The deliverer of the event, if it can be told to stop without the rest of the node.
    pub(crate) deliverer: Option<Arc<DeliveringNode>>,
}

impl Item {
    /// True if it is announced in the table before it begins, which refuses what has changed there.
    pub(crate) fn is_announced(&self) -> bool {
        self.prior_attempt != PriorAttempt::Clean
    }

    /// True if it has been through a crash, which it may have caused: no second such event runs beside it, so that no innocent one shares the
    /// next crash with its cause.
    pub(crate) fn runs_alone(&self) -> bool {
        match self.prior_attempt {
            PriorAttempt::Clean => false,
            PriorAttempt::Suspect => self.row.attempts > 0,
            PriorAttempt::Crashed => true,
        }
    }

    /// The dispatch key under which it waits.
    pub(super) fn dispatch_key(&self) -> DispatchKey {
        DispatchKey { class: self.class, alone: self.runs_alone() }
    }

    /// A worker takes it: as what it is called with, or beside that.
    pub(super) fn begin(&mut self, is_call: bool) {
        let alone = self.runs_alone();
        if let Some(charge) = &mut self.charge {
            charge.begin(self.class, is_call, alone);
        }
    }
}

/// The two bounded queues between the paths and the workers.
///
/// Workers wait on both at once. While both have work, two hot events are taken for each cold one, so that neither
/// starves. Events of a class that has its share of the workers are passed by.
#[derive(Debug)]
pub(crate) struct ReadyQueue {
    state: Mutex<State>,
    shares: Arc<FairShares>,
    hot_capacity: usize,
    cold_capacity: usize,
}

#[derive(Debug, Default)]
struct State {
    hot: DispatchQueue<Item>,
    cold: DispatchQueue<Item>,
    /// Hot events taken since the last cold one.
    hot_in_a_row: u8,
    closed: bool,
}

impl State {
    fn next(&mut self, shares: &FairShares) -> Option<Item> {
        let take = |queue: &mut DispatchQueue<Item>| queue.pop_first(|key| shares.may_dispatch(key));
        if self.hot_in_a_row < 2
            && let Some(item) = take(&mut self.hot)
        {
            self.hot_in_a_row += 1;
            return Some(item);
        }
        self.hot_in_a_row = 0;
        take(&mut self.cold).or_else(|| {
            let item = take(&mut self.hot);
            self.hot_in_a_row = u8::from(item.is_some());
            item
        })
    }
}

impl ReadyQueue {
    pub(crate) fn new(hot_capacity: usize, cold_capacity: usize, shares: Arc<FairShares>) -> Self {
        Self { state: Mutex::default(), shares, hot_capacity, cold_capacity }
    }

    /// The division of workers and memory.
    pub(crate) fn shares(&self) -> &Arc<FairShares> {
        &self.shares
    }

    /// The dispatch key of an event. A single worker runs nothing beside anything, so all events of a class share one key and keep their order.
    fn dispatch_key(&self, item: &Item) -> DispatchKey {
        if self.shares.workers() == 1 { DispatchKey::of(item.class) } else { item.dispatch_key() }
    }

    /// Queues a hot event that was committed at `since`; false if there is no room for it, or the queue is closed.
    pub(crate) fn push_hot(&self, row: Arc<Row>, since: Instant) -> bool {
        let class = self.shares.class(&row, Path::Hot);
        let mut state = self.state.lock();
        let free = self.hot_capacity.saturating_sub(state.hot.len());
        if state.closed || !self.shares.may_wait_hot(class, state.hot.len_of(class), free) {
            return false;
        }
        let charge = Some(Charge::new(&self.shares, class, &row, false));
        let prior_attempt = PriorAttempt::Clean;
        let item = Item { row, path: Path::Hot, since, prior_attempt, class, charge, deliverer: None };
        state.hot.push(self.dispatch_key(&item), item);
        drop(state);
        self.shares.items.notify_one();
        true
    }

    /// Queues cold events, no more than [there was room for](FairShares::fetch_room), unless what was read `is_called_off`. `reading` is the
    /// class that is read by itself.
    pub(crate) fn push_cold(
        &self,
        rows: Vec<(Arc<Row>, PriorAttempt)>,
        reading: Option<Class>,
        is_called_off: impl FnOnce() -> bool,
    ) -> Pushed {
        let since = Instant::now();
        let mut refused = Vec::new();
        let mut state = self.state.lock();
        if state.closed {
            return Pushed::Closed;
        }
        // Under the lock: a call-off that comes later finds these events in the queue, and drops them.
        if is_called_off() {
            return Pushed::CalledOff(rows);
        }
        for (row, prior_attempt) in rows {
            let class = self.shares.class(&row, Path::Cold);
            let passed = self.shares.is_passed(class) && reading != Some(class);
            if passed || !self.shares.may_wait(class) {
                refused.push((row, class));
                continue;
            }
            let charge = Some(Charge::new(&self.shares, class, &row, true));
            let item = Item { row, path: Path::Cold, since, prior_attempt, class, charge, deliverer: None };
            state.cold.push(self.dispatch_key(&item), item);
        }
        debug_assert!(state.cold.len() <= self.cold_capacity, "I7: a claim takes at most the free slots");
        drop(state);
        self.shares.items.notify_one();
        Pushed::AllBut(refused)
    }

    /// The next event; `None` once the queue is closed and empty.
    pub(crate) async fn pop(&self) -> Option<Item> {
        loop {
            let opens_at = {
                let mut state = self.state.lock();
                if let Some(mut item) = state.next(&self.shares) {
                    let more = !(state.hot.is_empty() && state.cold.is_empty());
                    // Within the lock: the next worker has to know that this one is busy.
                    item.begin(true);
                    drop(state);
                    // Each worker that finds work wakes the next one: a push notifies once, however much it brings.
                    if more {
                        self.shares.items.notify_one();
                    }
                    return Some(item);
                }
                if state.closed && state.hot.is_empty() && state.cold.is_empty() {
                    drop(state);
                    self.shares.items.notify_one();
                    return None;
                }
                self.shares.opens_at(state.hot.classes().chain(state.cold.classes()))
            };
            self.shares.wait_for_item(opens_at).await;
        }
    }

    /// Up to `max` events of a class that would be next and are `wanted`. Others stay where they are; after a number of them that
    /// is no more worth the time than the rest of a batch would be, the search ends.
    pub(crate) fn pop_more(&self, class: Class, max: usize, wanted: impl Fn(&Item) -> bool) -> Vec<Item> {
        let mut state = self.state.lock();
        let state = &mut *state;
        let (dispatch_key, max) = (DispatchKey::of(class), self.shares.take(class, max));
        let mut items = Vec::new();
        for queue in [&mut state.hot, &mut state.cold] {
            let mut passed = Vec::new();
            while items.len() < max && passed.len() < MAX_PASSED_OVER {
                match queue.pop(dispatch_key) {
                    Some((_, mut item)) if wanted(&item) => {
                        item.begin(false);
                        items.push(item);
                    }
                    Some(item) => passed.push(item),
                    None => break,
                }
            }
            queue.put_back(dispatch_key, passed);
        }
        self.shares.refund(class, max - items.len());
        items
    }

    /// The number of events that wait in the hot queue, and in the cold one.
    pub(crate) fn depths(&self) -> (usize, usize) {
        let state = self.state.lock();
        (state.hot.len(), state.cold.len())
    }

    /// Takes nothing more in; what is queued can still be popped, but for events that wait for the rate of their handler: the table has them.
    pub(crate) fn close(&self) {
        let mut state = self.state.lock();
        state.closed = true;
        if self.shares.has_limits() {
            state.hot.retain(|item| !self.shares.has_rate(item.class));
            state.cold.retain(|item| !self.shares.has_rate(item.class));
        }
        drop(state);
        self.shares.items.notify_one();
    }

    /// Drops the queued events and returns them. An [announced](Item::is_announced) event stays, unless it is paused or, if all events keep
    /// their order, behind a dropped one.
    pub(crate) fn drop_waiting(&self, in_order: bool, pauses: &OperatorPauses) -> Dropped {
        let mut dropped = Dropped::default();
        let mut state = self.state.lock();
        let State { hot, cold, .. } = &mut *state;
        for queue in [hot, cold] {
            queue.retain(|item| {
                let is_paused = pauses.is_row_paused(&item.row);
                let stays = item.is_announced() && !is_paused && (!in_order || dropped.is_empty());
                if !stays {
                    dropped.push(item, is_paused);
                }
                stays
            });
        }
        drop(state);
        // One that is closed may be empty now.
        self.shares.items.notify_one();
        self.shares.room.notify_one();
        dropped
    }

    /// Closes and throws away what is queued: the table still has it.
    pub(crate) fn abandon(&self) -> usize {
        let mut state = self.state.lock();
        state.closed = true;
        let abandoned = state.hot.len() + state.cold.len();
        state.hot.clear();
        state.cold.clear();
        drop(state);
        self.shares.items.notify_one();
        abandoned
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::timeout;

    use super::*;
    use crate::queue::{Classes, Limits};
    use pillarbox_core::clock::Timestamp;
    use pillarbox_core::event::Envelope;
    use pillarbox_core::write::NewRow;

    /// More than a search for more of a call passes over.
    const CAPACITY: usize = 2 * MAX_PASSED_OVER;

    fn queue() -> Arc<ReadyQueue> {
        let most = Limits { rows: CAPACITY, bytes: usize::MAX };
        Arc::new(ReadyQueue::new(CAPACITY, CAPACITY, Arc::new(FairShares::new(Classes::one(), CAPACITY, most))))
    }

    fn row(seq: i64) -> Row {
        let event = Envelope::json("t", "{}").expect("valid");
        Row::fresh(&NewRow::new(event), seq, Timestamp::from_micros(0))
    }

    fn read(seqs: std::ops::Range<i64>) -> Vec<(Arc<Row>, PriorAttempt)> {
        seqs.map(|seq| (Arc::new(row(seq)), PriorAttempt::Clean)).collect()
    }

    fn push(queue: &ReadyQueue, path: Path, seqs: std::ops::Range<i64>) {
        match path {
            Path::Hot => assert!(seqs.map(row).all(|row| queue.push_hot(Arc::new(row), Instant::now()))),
            Path::Cold => {
                let pushed = queue.push_cold(read(seqs), None, || false);
                assert!(matches!(&pushed, Pushed::AllBut(refused) if refused.is_empty()), "{pushed:?}");
            }
        }
    }

    /// The paths of the next events, as a letter each.
    async fn next(queue: &ReadyQueue, count: usize) -> String {
        let mut paths = String::new();
        for _ in 0..count {
            let item = timeout(Duration::from_secs(1), queue.pop()).await.expect("there is one").expect("it is open");
            paths.push(if item.path == Path::Hot { 'H' } else { 'C' });
        }
        paths
    }

    #[tokio::test(start_paused = true)]
    async fn of_events_that_have_been_through_a_crash_one_runs_at_a_time() {
        let queue = queue();
        let innocent_seq = i64::try_from(CAPACITY).expect("small") - 1;
        let prior_attempt = |seq| if seq < innocent_seq { PriorAttempt::Crashed } else { PriorAttempt::Clean };
        let pushed = queue.push_cold(
            (0..=innocent_seq).map(|seq| (Arc::new(row(seq)), prior_attempt(seq))).collect(),
            None,
            || false,
        );
        assert!(matches!(pushed, Pushed::AllBut(refused) if refused.is_empty()));
        let next = async || timeout(Duration::from_secs(1), queue.pop()).await.map(|item| item.expect("one waits"));
        let mut running = next().await.expect("the first");
        let innocent = next().await.expect("one that has not been through a crash");
        assert_eq!((running.row.seq, innocent.row.seq), (0, innocent_seq));
        drop(innocent);
        queue.close();
        for seq in 1..innocent_seq {
            assert!(next().await.is_err(), "the others wait for the one that runs");
            drop(running);
            running = next().await.expect("the next one");
            assert_eq!(running.row.seq, seq);
        }
        assert!(queue.pop().await.is_none(), "all are taken");
    }

    #[test]
    fn rows_read_before_memory_began_anew_are_not_queued() {
        let queue = queue();
        push(&queue, Path::Cold, 0..2);
        let pushed = queue.push_cold(read(2..5), None, || true);
        assert!(matches!(&pushed, Pushed::CalledOff(rows) if rows.len() == 3), "{pushed:?}");
        assert_eq!(queue.drop_waiting(false, &OperatorPauses::default()).read_anew, [0, 1]);
    }

    #[tokio::test(start_paused = true)]
    async fn two_hot_events_are_taken_for_each_cold_one_and_neither_lane_starves() {
        let queue = queue();
        push(&queue, Path::Hot, 0..6);
        push(&queue, Path::Cold, 6..12);
        assert_eq!(next(&queue, 9).await, "HHCHHCHHC");
        assert_eq!(next(&queue, 3).await, "CCC", "a queue alone has all the turns");
        // However much the one is filled up, the other has its turn.
        for round in 0..5 {
            let first = 100 + round * 10;
            push(&queue, Path::Hot, first..first + 4);
            push(&queue, Path::Cold, first + 4..first + 6);
            assert_eq!(next(&queue, 6).await, "HHCHHC");
        }
        push(&queue, Path::Hot, 200..203);
        assert_eq!(next(&queue, 3).await, "HHH");
    }

    #[tokio::test(start_paused = true)]
    async fn a_worker_waits_on_both_lanes() {
        for path in [Path::Hot, Path::Cold] {
            let queue = queue();
            let (taken, ()) = tokio::join!(next(&queue, 2), async {
                for seq in 0..2 {
                    tokio::time::sleep(Duration::from_millis(10)).await;
                    push(&queue, path, seq..seq + 1);
                }
            });
            assert_eq!(taken, if path == Path::Hot { "HH" } else { "CC" });
        }
    }

    /// One push of many events wakes every worker that waits: each wakes the next.
    #[tokio::test(start_paused = true)]
    async fn a_push_of_many_wakes_all_who_wait() {
        for path in [Path::Hot, Path::Cold] {
            let queue = queue();
            let (first, second, third, ()) =
                tokio::join!(next(&queue, 1), next(&queue, 1), next(&queue, 1), async { push(&queue, path, 0..3) });
            assert_eq!([first, second, third].concat().len(), 3);
        }
    }
}
