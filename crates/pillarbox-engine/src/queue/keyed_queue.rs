mod backlogged;
mod state;

use std::collections::BTreeMap;
use std::sync::Arc;

use pillarbox_core::hash::HashMap;
use pillarbox_core::lock::Mutex;
use tokio::time::Instant;

use backlogged::MAX_BACKLOGGED;

pub(crate) use backlogged::Refill;
pub(super) use state::hash_of as key_of;
use state::{
    Admission, AwaitedVerdict, Effect, KeyHash, Ready, Running, State, Suspected, hash, hash_of, partition_of,
};

use super::dispatch_queue::DispatchKey;
use super::{Class, FairShares, Item, Limits, MAX_PASSED_OVER};
use crate::config::FailingKey;
use crate::operator_pauses::OperatorPauses;
use crate::queue::Suspects;
use pillarbox_core::handle::{DeliveringNode, Path};
use pillarbox_core::ownership::{Partitions, PriorAttempt};
use pillarbox_core::planted_bug;
use pillarbox_core::row::{Change, Status};
use pillarbox_core::store::{OrderKey, Row};

/// The bounded queue between the table and the workers where the events of a key are delivered in their order.
///
/// ```text
///              push                    pop                     ended
///   table ───────────▶ key: 4 7 9 ───────────▶ 4 runs, 7 and 9 wait ───────▶ 7 is ready, or 7 and 9 are dropped
/// ```
///
/// Of each key one event runs at a time, and the lowest `seq` is next. A key that has much waiting in the table gets a share of
/// the memory and no more, so that it cannot keep the others out: then it is *backlogged*, and read apart from the others,
/// together with all backlogged ones.
///
/// A key waits because of the table: a failing event that is recorded there. Until it is, and until every fetch that
/// began before is over, the key is *blocked* here.
///
/// The events that wait behind another one count as waiting for the class of that one. If a class has [its share](FairShares), its events are left in
/// the table and with them what follows in their keys: then the key *is waited for*, until the table has been read anew for that class.
/// In the same way a key *is paused* behind an event that is, until an operator resumes it.
#[derive(Debug)]
pub(crate) struct KeyedQueue {
    state: Mutex<State>,
    shares: Arc<FairShares>,
    pauses: Arc<OperatorPauses>,
    /// The deliverer of the node, from which those of the partitions are derived.
    deliverer: Arc<DeliveringNode>,
    capacity: usize,
    per_key: usize,
    max_backlogged: usize,
    failing: FailingKey,
}

/// Maximum number of keys whose events wait in the table for room of their class. Beyond it nothing is read until some go on.
const MAX_WAITED_FOR: usize = 100_000;
/// Maximum number of keys kept back behind a paused event. Beyond it nothing is read until a type is resumed.
const MAX_PAUSED_KEYS: usize = 1_000_000;

/// The origin of the rows of a fetch.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Source {
    /// The number of the fetch, as given by [`KeyedQueue::begin_fetch`].
    pub(crate) fetch: u64,
    /// All rows at or below it were known before.
    pub(crate) floor: i64,
    /// True if it read backlogged keys.
    pub(crate) refill: bool,
    /// The class that it reads for, if it reads what was left in the table of one.
    pub(crate) class: Option<Class>,
    /// The time of which the types are that it left in the table.
    pub(crate) since: Instant,
}

/// The state of the queue when a fetch begins.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FetchStart {
    /// The number of the fetch.
    pub(crate) number: u64,
    /// The lowest row from which on it has to read, since the rest of its key was freed.
    pub(crate) freed: Option<i64>,
    /// True if the table may have failed events behind which others wait.
    pub(crate) heads: bool,
}

/// The effect of an event's end on the events behind it.
#[derive(Debug, Default)]
pub(crate) struct Decided {
    /// No verdict is to be recorded: its handler was told to stop, and did not succeed.
    pub(crate) left: bool,
    /// Events of its key that were waiting in memory and are left to the table.
    pub(crate) dropped: Vec<i64>,
}

impl KeyedQueue {
    pub(crate) fn new(
        capacity: usize,
        workers: usize,
        failing: FailingKey,
        shares: Arc<FairShares>,
        pauses: Arc<OperatorPauses>,
        deliverer: Arc<DeliveringNode>,
    ) -> Self {
        // So small that it takes more keys than there are workers to fill the memory: then those are what holds all up.
        let per_key = (capacity / (2 * workers)).clamp(1, (capacity / 4).max(1));
        let max_backlogged = workers.max(MAX_BACKLOGGED);
        Self { state: Mutex::default(), shares, pauses, deliverer, capacity, per_key, max_backlogged, failing }
    }

    /// The division of workers and memory.
    pub(crate) fn shares(&self) -> &Arc<FairShares> {
        &self.shares
    }

    /// Suspects rows of partitions whose last owner died: the first ones read up to `highest`, the end of the table when they
    /// were taken over, and no more than that owner can have had in memory.
    pub(crate) fn suspect(&self, unclean: Partitions, highest: i64) {
        let mut state = self.state.lock();
        let Suspected { partitions, rows } = &mut state.suspected;
        *partitions = partitions.union(unclean);
        *rows = Suspects { left: self.capacity, up_to: highest.max(rows.up_to) };
    }

    /// From now on this node delivers the events of `active` and of no other partition. Returns the events that were waiting
    /// and are not its own any more.
    pub(crate) fn assign(&self, active: Partitions) -> Vec<i64> {
        let mut state = self.state.lock();
        let state = &mut *state;
        if state.active == active {
            return Vec::new();
        }
        let mut dropped = Vec::new();
        for key in state.keys.values_mut() {
            key.waiting.retain(|item| keep(&mut dropped, active.contains(partition_of(&item.row)), item.row.seq));
        }
        state.ready.retain(|ready| match ready {
            Ready::Key(_) => true,
            Ready::Lone(item) => keep(&mut dropped, active.contains(partition_of(&item.row)), item.row.seq),
        });
        state.queued -= dropped.len();
        state.backlogged.retain(|_, backlogged| active.contains(backlogged.partition));
        // Handlers that were told to stop stay told; those that begin from now on are not.
        state.deliverers.retain(|partition, deliverer| !active.contains(*partition) || !deliverer.lost.is_cancelled());
        state.active = active;
        state.assignment += 1;
        // A fetch under way may have read rows that were just dropped; taking the rows that follow them would break the order.
        state.assigned_during = state.fetch;
        state.failed_during = state.fetch;
        self.shares.room.notify_one();
        dropped
    }

    /// Drops the waiting events and returns them. An [announced](Item::is_announced) event stays, unless it or an earlier one of its key is
    /// paused. The dropped events are read again from the lowest on, and nothing that a fetch under way brings is taken: it would overtake
    /// them.
    pub(crate) fn drop_waiting(&self) -> Vec<i64> {
        let mut state = self.state.lock();
        let state = &mut *state;
        let mut dropped = Vec::new();
        let is_paused = |item: &Item| self.pauses.is_row_paused(&item.row);
        for key in state.keys.values_mut() {
            let mut is_behind_pause = false;
            key.waiting.retain(|item| {
                is_behind_pause |= is_paused(item);
                keep(&mut dropped, item.is_announced() && !is_behind_pause, item.row.seq)
            });
        }
        state.ready.retain(|ready| match ready {
            Ready::Key(_) => true,
            Ready::Lone(item) => keep(&mut dropped, item.is_announced() && !is_paused(item), item.row.seq),
        });
        state.list_anew();
        state.queued -= dropped.len();
        // Keys that were to be read apart are read with the others now.
        let floors = state.backlogged.drain().map(|(_, backlogged)| backlogged.floor.saturating_add(1));
        let lowest = floors.chain(dropped.iter().copied()).min();
        if let Some(lowest) = lowest {
            state.free_from(lowest);
        }
        if !state.paused_keys.is_empty() {
            // The events that they wait behind may be over, or resumed.
            state.paused_keys.clear();
            state.free_from(1);
        }
        state.assigned_during = state.fetch;
        state.failed_during = state.fetch;
        // The listed events may be of another class than before, and a closed queue may be empty.
        self.shares.items.notify_one();
        self.shares.room.notify_one();
        dropped
    }

    /// The partitions whose events are delivered here, and a number that changes with them.
    pub(crate) fn assignment(&self) -> (u64, Partitions) {
        let state = self.state.lock();
        (state.assignment, state.active)
    }

    /// True if events of this partition are delivered here, or may be: before the first rebalance, any may.
    pub(crate) fn is_ours(&self, partition: u8) -> bool {
        let state = self.state.lock();
        state.assignment == 0 || state.active.contains(partition)
    }

    /// Tells the handlers of these partitions to stop: another node waits for them. Says how many run.
    pub(crate) fn request_stop(&self, partitions: Partitions) -> usize {
        let mut state = self.state.lock();
        let mut stopped = 0;
        for running in state.running.values_mut().filter(|running| partitions.contains(running.partition)) {
            running.stop_requested = true;
            stopped += 1;
        }
        for (_, deliverer) in state.deliverers.iter().filter(|(partition, _)| partitions.contains(**partition)) {
            deliverer.lost.cancel();
        }
        stopped
    }

    /// A fetch begins.
    pub(crate) fn begin_fetch(&self) -> FetchStart {
        let mut state = self.state.lock();
        let state = &mut *state;
        // No fetch from before their failure was recorded is under way any more: the table answers for these keys.
        while let Some((fetch, hash)) = state.recorded.front().copied().filter(|(fetch, _)| *fetch <= state.fetch) {
            state.recorded.pop_front();
            if let Some(key) = state.keys.get_mut(&hash) {
                key.blocked.take_if(|blocked| blocked.unrecorded == 0 && blocked.fetch == fetch);
                if key.is_idle() {
                    state.keys.remove(&hash);
                }
            }
        }
        state.fetch += 1;
        let heads = state.headless <= state.failed_during || !state.awaited.is_empty();
        FetchStart { number: state.fetch, freed: state.freed.take(), heads }
    }

    /// A fetch has seen that operators have replayed or discarded events.
    pub(crate) fn intervened(&self) {
        let mut state = self.state.lock();
        state.intervened_during = state.fetch;
    }

    /// A fetch has seen if any event in the table is RETRY or DEAD (`heads`). Of the events that this node owns, no other node makes one so.
    pub(crate) fn saw_heads(&self, fetch: u64, heads: bool) {
        let mut state = self.state.lock();
        if heads {
            state.failed_during = state.failed_during.max(fetch);
        } else {
            state.headless = fetch;
        }
    }

    /// The limits of the next fetch, if one is worth it. None is made for further keys while too many are backlogged, or waited for.
    pub(crate) fn room(&self) -> Option<Limits> {
        if self.takes_keys() { self.shares.fetch_room() } else { None }
    }

    fn takes_keys(&self) -> bool {
        let state = self.state.lock();
        state.backlogged.len() < self.max_backlogged
            && state.waited_for.len() < MAX_WAITED_FOR
            && state.paused_keys.len() < MAX_PAUSED_KEYS
    }

    /// Waits until the reader may have something to do, which may want room.
    pub(crate) async fn wanted(&self, room: bool) {
        self.shares.freed(room && self.takes_keys()).await;
    }

    /// Nothing is passed over any more: all of it is read again.
    pub(crate) fn pass_nothing(&self) {
        let mut state = self.state.lock();
        state.waited_for.clear();
        state.paused_keys.clear();
        drop(state);
        self.shares.pass_nothing();
    }

    /// All that was left in the table of a class has been read.
    pub(crate) fn caught_up(&self, class: Class) {
        let mut state = self.state.lock();
        state.waited_for.retain(|_, waited_for| *waited_for != class);
        drop(state);
        self.shares.caught_up(class);
    }

    /// Queues rows in ascending order of `seq`. Returns those that it has no place for, which are in the table still; and of each class
    /// that has its share, and of what [is paused](Class::PAUSED), the rows which wait for it there, in ascending order as well.
    pub(crate) fn push(
        &self,
        rows: impl IntoIterator<Item = (Arc<Row>, PriorAttempt)>,
        source: Source,
    ) -> (Vec<i64>, BTreeMap<Class, Vec<i64>>) {
        let mut state = self.state.lock();
        let since = source.since;
        let (mut refused, mut left, mut left_keys) =
            (Vec::new(), BTreeMap::<Class, Vec<i64>>::new(), HashMap::default());
        for (row, prior_attempt) in rows {
            let seq = row.seq;
            let class = self.shares.class(&row, Path::Cold);
            let item = Item { row, path: Path::Cold, since, prior_attempt, class, charge: None, deliverer: None };
            match state.take(item, source, self.per_key, &self.shares, &self.pauses, &mut left_keys) {
                Admission::Queued => continue,
                Admission::Refused => {}
                Admission::WaitsFor(class) => {
                    left.entry(class).or_default().push(seq);
                }
            }
            refused.push(seq);
        }
        drop(state);
        self.shares.items.notify_one();
        (refused, left)
    }

    /// The next event; `None` once the queue is closed and empty.
    pub(crate) async fn pop(&self) -> Option<Item> {
        loop {
            let opens_at = {
                let mut state = self.state.lock();
                if let Some(mut item) = state.next(&self.deliverer, &self.shares) {
                    let more = !state.ready.is_empty();
                    let wanted = self.wants(&state, &item);
                    item.begin(true);
                    drop(state);
                    if more {
                        self.shares.items.notify_one();
                    }
                    if wanted {
                        self.shares.room.notify_one();
                    }
                    return Some(item);
                }
                if state.closed && state.queued == 0 {
                    drop(state);
                    self.shares.items.notify_one();
                    return None;
                }
                self.shares.opens_at(state.ready.classes())
            };
            self.shares.wait_for_item(opens_at).await;
        }
    }

    /// Up to `max` events of a class that are ready and are `wanted`, of each key one. Others stay where they are, as in
    /// [`ReadyQueue::pop_more`](super::ReadyQueue::pop_more).
    pub(crate) fn pop_more(&self, class: Class, max: usize, wanted: impl Fn(&Item) -> bool) -> Vec<Item> {
        let mut state = self.state.lock();
        let (mut items, mut passed) = (Vec::new(), Vec::new());
        let (dispatch_key, max) = (DispatchKey::of(class), self.shares.take(class, max));
        while items.len() < max && passed.len() < MAX_PASSED_OVER {
            let Some((number, ready)) = state.pop_ready(dispatch_key) else { break };
            if state.item_of(&ready).is_some_and(&wanted) {
                if let Some(mut item) = state.run(ready, &self.deliverer) {
                    item.begin(false);
                    items.push(item);
                }
            } else {
                passed.push((number, ready));
            }
        }
        state.ready.put_back(dispatch_key, passed);
        self.shares.refund(class, max - items.len());
        let is_wanted = items.iter().any(|item| self.wants(&state, item));
        drop(state);
        if is_wanted || !items.is_empty() {
            self.shares.room.notify_one();
        }
        items
    }

    /// True if taking `item` has left something for the reader to do.
    fn wants(&self, state: &State, item: &Item) -> bool {
        let is_low = |hash: KeyHash| {
            state.backlogged.get(&hash).is_some_and(|backlogged| state.waiting(hash) == backlogged.share / 2)
        };
        state.queued == self.capacity / 2 || (!state.backlogged.is_empty() && hash_of(&item.row).is_some_and(is_low))
    }

    /// The key of an event that runs.
    pub(crate) fn key_of_running(&self, seq: i64) -> Option<u64> {
        self.state.lock().running.get(&seq).and_then(|running| running.key)
    }

    /// The transaction of an event's handler is about to commit, and with it that the event is DONE. It runs on until it is [decided
    /// about](Self::ended).
    pub(crate) fn completing(&self, seq: i64) {
        let mut state = self.state.lock();
        let Some(Running { key: Some(hash), head: true, .. }) = state.running.get(&seq) else { return };
        // As if it had ended: the table shows the rest of its key from the commit on.
        let awaited = AwaitedVerdict::frees(*hash);
        state.await_verdict(seq, awaited);
    }

    /// An event has been decided about: `change` is to be recorded, or it is `None` and the row was found to have changed.
    pub(crate) fn ended(&self, seq: i64, change: Option<&Change>) -> Decided {
        let mut state = self.state.lock();
        let fails = change.is_some_and(|change| change.status() != Status::Done);
        if fails && state.running.get(&seq).is_some_and(|running| running.stop_requested) {
            drop(state);
            return self.left(seq);
        }
        let mut ended = Decided::default();
        let Some(Running { key: hash, head, .. }) = state.running.remove(&seq) else { return ended };
        if let (Some(hash), Some(change)) = (hash, change) {
            if self.failing.blocks(change) && !planted_bug::is_active("key_goes_on_while_its_head_retries") {
                let fetch = state.fetch;
                state.await_verdict(seq, AwaitedVerdict::blocks(hash, change, fetch));
                state.failed_during = fetch;
                if !planted_bug::is_active("failed_head_drops_nothing") {
                    ended.dropped = state.drop_above(hash, seq);
                }
            } else if head {
                // The table shows the rest of the key as soon as this is recorded, and the reader has gone on above it: until
                // it has come back, nothing of the key is taken.
                state.await_verdict(seq, AwaitedVerdict::frees(hash));
            }
        }
        if let Some(hash) = hash {
            state.released(hash);
        }
        let (ready, over) = (!state.ready.is_empty(), state.closed && state.queued == 0);
        drop(state);
        if ready || over {
            self.shares.items.notify_one();
        }
        if !ended.dropped.is_empty() {
            self.shares.room.notify_one();
        }
        ended
    }

    /// An event is left in the table as it is, to be read again when its type is: so are those that were waiting behind it in
    /// memory, which are returned. Nothing of its key is taken until [`recorded`](Self::recorded) says that it did not change: a fetch
    /// leaves out what the registry holds, so all of them have to be removed there first, or later ones would overtake them.
    pub(crate) fn left(&self, seq: i64) -> Decided {
        let mut state = self.state.lock();
        let state = &mut *state;
        let mut ended = Decided { left: true, dropped: Vec::new() };
        let Some(Running { key: hash, .. }) = state.running.remove(&seq) else { return ended };
        if let Some(hash) = hash {
            state.await_verdict(seq, AwaitedVerdict::frees(hash));
            ended.dropped = state.drop_above(hash, seq);
            state.released(hash);
        } else {
            state.free_from(seq);
        }
        if state.closed && state.queued == 0 {
            self.shares.items.notify_one();
        }
        self.shares.room.notify_one();
        ended
    }

    /// The row `seq` of a key has failed without having been an event: `change` is to be recorded. Returns the events that
    /// were waiting behind it in memory, and are left to the table. `None` if the row is not taken, and `change` not to be recorded: it
    /// is not known yet if an earlier verdict on it was.
    pub(crate) fn failed(&self, key: &OrderKey, seq: i64, change: &Change) -> Option<Vec<i64>> {
        if !self.failing.blocks(change) {
            return Some(Vec::new());
        }
        let mut state = self.state.lock();
        let state = &mut *state;
        if state.notes_reading_again(seq) {
            return None;
        }
        let hash = hash(key);
        state.failed_during = state.fetch;
        state.await_verdict(seq, AwaitedVerdict::blocks(hash, change, state.fetch));
        Some(state.drop_above(hash, seq))
    }

    /// These verdicts are recorded, or, if not `true`, never will be. Returns the lowest row whose key the table has more of
    /// now.
    pub(crate) fn recorded(&self, verdicts: impl IntoIterator<Item = (i64, bool)>) -> Option<i64> {
        let mut state = self.state.lock();
        let state = &mut *state;
        if state.awaited.is_empty() {
            return None;
        }
        let (mut freed, mut answered) = (None, false);
        for (seq, recorded) in verdicts {
            let Some(AwaitedVerdict { key: hash, effect, read_again }) = state.awaited.remove(&seq) else { continue };
            if matches!(effect, Effect::Blocks { .. }) {
                // Even if it was refused: a first try, whose answer was lost, may have been recorded.
                state.failed_during = state.fetch;
            }
            let mut free_from = |state: &mut State, seq: i64| {
                freed = Some(freed.map_or(seq, |other: i64| other.min(seq)));
                state.free_from(seq);
            };
            match effect {
                Effect::Blocks { dead } if recorded && !read_again => {
                    if dead.is_some_and(|since| state.intervened_during >= since) {
                        // It may have been replayed before the answer was here, while fetches left it out.
                        state.free_from(seq);
                    }
                }
                // The event does not keep the key waiting, or was not taken: it has to be read again, with the events dropped behind it.
                Effect::Blocks { .. } | Effect::Frees => free_from(state, seq),
            }
            if let Some(blocked) = state.keys.get_mut(&hash).and_then(|key| key.blocked.as_mut()) {
                blocked.unrecorded = blocked.unrecorded.saturating_sub(1);
                let head = blocked.head;
                if head < seq {
                    // An earlier event of the key was decided about too. Rows between the two were refused for as long as
                    // the later verdict was unrecorded, even if the key does not wait for the earlier one any more.
                    free_from(state, head);
                }
                answered |= state.table_answers_for(hash);
            }
        }
        if answered {
            // With the next fetch the key is not blocked any more: if it is backlogged, it may be read.
            self.shares.room.notify_one();
        }
        freed
    }

    /// True if a key waits for this event, which has failed, until that [is recorded](Self::recorded).
    pub(crate) fn waits_for_failed(&self, seq: i64) -> bool {
        let state = self.state.lock();
        state.awaited.get(&seq).is_some_and(|awaited| matches!(awaited.effect, Effect::Blocks { .. }))
    }

    /// The number of events that wait.
    pub(crate) fn depth(&self) -> usize {
        self.state.lock().queued
    }

    /// Takes nothing more in; what is queued can still be popped, but for events that wait for the rate of their handler, and those behind
    /// them: the table has them.
    pub(crate) fn close(&self) {
        let mut state = self.state.lock();
        state.closed = true;
        if self.shares.has_limits() {
            state.drop_from(|class| self.shares.has_rate(class));
        }
        drop(state);
        self.shares.items.notify_one();
    }

    /// Closes and throws away what is queued: the table still has it.
    pub(crate) fn abandon(&self) -> usize {
        let mut state = self.state.lock();
        state.closed = true;
        state.ready.clear();
        for key in state.keys.values_mut() {
            key.waiting.clear();
        }
        let abandoned = std::mem::take(&mut state.queued);
        drop(state);
        self.shares.items.notify_one();
        abandoned
    }
}

/// Notes what is not kept.
fn keep(dropped: &mut Vec<i64>, kept: bool, seq: i64) -> bool {
    if !kept {
        dropped.push(seq);
    }
    kept
}

#[cfg(test)]
mod tests;
