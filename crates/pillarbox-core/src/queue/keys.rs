mod behind;
mod state;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;
use tokio::time::Instant;

use behind::MOST_BEHIND;
pub(crate) use behind::Refill;
use state::{KeyHash, Ready, Running, State, Watched, hash, hash_of, partition_of};

use super::Item;
use super::lanes::PASSED_OVER;
use crate::handle::Path;
use crate::ownership::{Partitions, Past};
use crate::run::FailingKey;
use crate::settle::Change;
use crate::store::{OrderKey, Row};

/// The bounded queue between the table and the workers where the events of a key are delivered in their order.
///
/// ```text
///              push                    pop                     ended
///   table ───────────▶ key: 4 7 9 ───────────▶ 4 runs, 7 and 9 wait ───────▶ 7 is ready, or 7 and 9 are dropped
/// ```
///
/// Of each key one event runs at a time, and the lowest `seq` is next. A key that has much waiting in the table gets a share of
/// the memory and no more, so that it cannot keep the others out: then it is *behind*, and read apart from the others,
/// together with all that are behind.
///
/// What makes a key wait is in the table: a failing event that is recorded there. Until it is, and until every fetch that
/// began before is over, the key is *blocked* here.
#[derive(Debug)]
pub(crate) struct KeyLanes {
    state: Mutex<State>,
    capacity: usize,
    per_key: usize,
    most_behind: usize,
    failing: FailingKey,
    /// Rung when there is something to pop, or never will be.
    items: Notify,
    /// Rung when the reader has something to do: there is room again, a key has to be read, partitions came or went.
    wanted: Notify,
}

/// Where the rows of a fetch come from.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Source {
    /// Which fetch, as [`KeyLanes::begin_fetch`] numbered it.
    pub(crate) fetch: u64,
    /// All rows at or below it were known before.
    pub(crate) floor: i64,
    /// Whether it read keys that are behind.
    pub(crate) refill: bool,
}

/// What there is to know when a fetch begins.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Begun {
    /// The number of the fetch.
    pub(crate) number: u64,
    /// The lowest row from which on it has to read, since the rest of its key was freed.
    pub(crate) freed: Option<i64>,
    /// Whether the table may have failed events behind which others wait.
    pub(crate) heads: bool,
}

/// What an event's end means for those behind it.
#[derive(Debug, Default)]
pub(crate) struct Ended {
    /// Its verdict does not count: its partition was given away.
    pub(crate) revoked: bool,
    /// Events of its key that were waiting in memory and are left to the table.
    pub(crate) dropped: Vec<i64>,
}

impl KeyLanes {
    pub(crate) fn new(capacity: usize, workers: usize, failing: FailingKey) -> Self {
        // So small that it takes more keys than there are workers to fill the memory: then those are what holds all up.
        let per_key = (capacity / (2 * workers)).clamp(1, (capacity / 4).max(1));
        Self {
            state: Mutex::default(),
            capacity,
            per_key,
            most_behind: workers.max(MOST_BEHIND),
            failing,
            items: Notify::new(),
            wanted: Notify::new(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// From now on this node delivers the events of `active` and of no other partition. Of those in `unclean` the last
    /// owner died. Returns the events that were waiting and are not its own any more.
    pub(crate) fn assign(&self, active: Partitions, unclean: Partitions) -> Vec<i64> {
        let mut state = self.lock();
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
        state.behind.retain(|_, behind| active.contains(behind.partition));
        if !unclean.is_empty() {
            state.suspected = (state.suspected.0.union(unclean), self.capacity);
        }
        state.active = active;
        state.assignment += 1;
        // A fetch under way may have read rows that were just dropped; to take what follows them would break the order.
        state.assigned_during = state.fetch;
        state.failed_during = state.fetch;
        self.wanted.notify_one();
        dropped
    }

    /// The partitions whose events are delivered here, and a number that changes with them.
    pub(crate) fn assignment(&self) -> (u64, Partitions) {
        let state = self.lock();
        (state.assignment, state.active)
    }

    /// Whether events of this partition are delivered here, or may be: before the first share, any may.
    pub(crate) fn is_ours(&self, partition: u8) -> bool {
        let state = self.lock();
        state.assignment == 0 || state.active.contains(partition)
    }

    /// Says of running events that their verdicts do not count: their partitions are given away before they have ended.
    pub(crate) fn revoke(&self, partitions: Partitions) {
        for running in self.lock().running.values_mut() {
            running.revoked |= partitions.contains(running.partition);
        }
    }

    /// A fetch begins.
    pub(crate) fn begin_fetch(&self) -> Begun {
        let mut state = self.lock();
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
        let heads = state.headless <= state.failed_during || !state.watched.is_empty();
        Begun { number: state.fetch, freed: state.freed.take(), heads }
    }

    /// A fetch has seen whether any event in the table is RETRY or DEAD. Nobody but this node makes one so of those it owns.
    pub(crate) fn saw_heads(&self, fetch: u64, heads: bool) {
        let mut state = self.lock();
        if heads {
            state.failed_during = state.failed_during.max(fetch);
        } else {
            state.headless = fetch;
        }
    }

    /// How many events there is room for; as long as it is less than half, a fetch is not worth it. None is made for further
    /// keys while too many are behind.
    pub(crate) fn room(&self) -> Option<usize> {
        let state = self.lock();
        let takes = state.queued <= self.capacity / 2 && state.behind.len() < self.most_behind;
        takes.then(|| self.capacity.saturating_sub(state.queued))
    }

    /// Waits until the reader may have something to do.
    pub(crate) async fn wanted(&self) {
        self.wanted.notified().await;
    }

    /// Queues rows in ascending order of `seq`, and returns those that it has no place for; they are in the table still.
    pub(crate) fn push(&self, rows: impl IntoIterator<Item = (Row, Past)>, source: Source) -> Vec<i64> {
        let mut state = self.lock();
        let since = Instant::now();
        let mut refused = Vec::new();
        for (row, past) in rows {
            let seq = row.seq;
            if !state.take(Item { row: Arc::new(row), path: Path::Cold, since, past }, source, self.per_key) {
                refused.push(seq);
            }
        }
        drop(state);
        self.items.notify_one();
        refused
    }

    /// The next event; `None` once the lanes are closed and empty.
    pub(crate) async fn pop(&self) -> Option<Item> {
        loop {
            let rung = self.items.notified();
            {
                let mut state = self.lock();
                if let Some(item) = state.next() {
                    let more = !state.ready.is_empty();
                    let wanted = self.wants(&state, &item);
                    drop(state);
                    if more {
                        self.items.notify_one();
                    }
                    if wanted {
                        self.wanted.notify_one();
                    }
                    return Some(item);
                }
                if state.closed && state.queued == 0 {
                    drop(state);
                    self.items.notify_one();
                    return None;
                }
            }
            rung.await;
        }
    }

    /// Up to `max` of the events that are ready and are `wanted`, of each key one. Others stay where they are, as in
    /// [`Lanes::pop_more`](super::Lanes::pop_more).
    pub(crate) fn pop_more(&self, max: usize, wanted: impl Fn(&Item) -> bool) -> Vec<Item> {
        let mut state = self.lock();
        let (mut items, mut passed) = (Vec::new(), Vec::new());
        while items.len() < max && passed.len() < PASSED_OVER {
            match state.peek().map(&wanted) {
                Some(true) => items.extend(state.next()),
                Some(false) => passed.extend(state.ready.pop_front()),
                None => break,
            }
        }
        for ready in passed.into_iter().rev() {
            state.ready.push_front(ready);
        }
        let hungry = items.iter().any(|item| self.wants(&state, item));
        drop(state);
        if hungry || !items.is_empty() {
            self.wanted.notify_one();
        }
        items
    }

    /// Whether taking `item` has left something for the reader to do.
    fn wants(&self, state: &State, item: &Item) -> bool {
        let is_low =
            |hash: KeyHash| state.behind.get(&hash).is_some_and(|behind| state.waiting(hash) == behind.share / 2);
        state.queued == self.capacity / 2 || (!state.behind.is_empty() && hash_of(&item.row).is_some_and(is_low))
    }

    /// An event has been decided about: `change` is to be recorded, or it is `None` and the row was found to have changed.
    pub(crate) fn ended(&self, seq: i64, change: Option<&Change>) -> Ended {
        let mut state = self.lock();
        let Some(Running { key: hash, head, revoked, .. }) = state.running.remove(&seq) else {
            return Ended::default();
        };
        let mut ended = Ended { revoked, dropped: Vec::new() };
        if let (false, Some(hash), Some(change)) = (revoked, hash, change) {
            if self.failing.blocks(change) {
                state.block(hash, seq).unrecorded += 1;
                ended.dropped = state.drop_above(hash, seq);
                state.watched.insert(seq, Watched::Blocks(hash));
                state.failed_during = state.fetch;
            } else if head {
                // The table shows the rest of the key as soon as this is recorded, and the reader has gone on above it: until
                // it has come back, nothing of the key is taken.
                state.block(hash, seq).unrecorded += 1;
                state.watched.insert(seq, Watched::Frees(hash));
            }
        }
        if let Some(hash) = hash {
            state.released(hash);
        }
        let (ready, over) = (!state.ready.is_empty(), state.closed && state.queued == 0);
        drop(state);
        if ready || over {
            self.items.notify_one();
        }
        if !ended.dropped.is_empty() {
            self.wanted.notify_one();
        }
        ended
    }

    /// An event is left in the table as it is, to be read again when its type is: so are those that were waiting behind it in
    /// memory, which are returned, and nothing of its key is taken that a fetch has read which is under way.
    pub(crate) fn left(&self, seq: i64) -> Ended {
        let mut state = self.lock();
        let state = &mut *state;
        let Some(Running { key: hash, revoked, .. }) = state.running.remove(&seq) else {
            return Ended::default();
        };
        let mut ended = Ended { revoked, dropped: Vec::new() };
        if let (false, Some(hash)) = (revoked, hash) {
            state.block(hash, seq);
            state.table_answers_for(hash);
            ended.dropped = state.drop_above(hash, seq);
        }
        if !revoked {
            state.freed = Some(state.freed.map_or(seq, |other| other.min(seq)));
        }
        if let Some(hash) = hash {
            state.released(hash);
        }
        let over = state.closed && state.queued == 0;
        if over {
            self.items.notify_one();
        }
        self.wanted.notify_one();
        ended
    }

    /// The row `seq` of a key has failed without having been an event: `change` is to be recorded. Returns the events that
    /// were waiting behind it in memory, and are left to the table.
    pub(crate) fn failed(&self, key: &OrderKey, seq: i64, change: &Change) -> Vec<i64> {
        if !self.failing.blocks(change) {
            return Vec::new();
        }
        let mut state = self.lock();
        let state = &mut *state;
        let hash = hash(key);
        state.failed_during = state.fetch;
        state.block(hash, seq).unrecorded += 1;
        state.watched.insert(seq, Watched::Blocks(hash));
        state.drop_above(hash, seq)
    }

    /// That an event which still runs has failed is to be recorded, and that it is done right after: in between, the table
    /// keeps the rest of its key waiting for it.
    pub(crate) fn held(&self, seq: i64) {
        if let Some(running) = self.lock().running.get_mut(&seq) {
            running.head = true;
        }
    }

    /// These verdicts are recorded, or, if not `true`, never will be. Returns the lowest row whose key the table has more of
    /// now.
    pub(crate) fn recorded(&self, verdicts: impl IntoIterator<Item = (i64, bool)>) -> Option<i64> {
        let mut state = self.lock();
        let state = &mut *state;
        if state.watched.is_empty() {
            return None;
        }
        let (mut freed, mut answered) = (None, false);
        for (seq, recorded) in verdicts {
            match state.watched.remove(&seq) {
                None => {}
                Some(watched) => {
                    let hash = match watched {
                        Watched::Blocks(hash) if recorded => {
                            state.failed_during = state.fetch;
                            hash
                        }
                        // What was to keep the key waiting does not: what was dropped behind it has to be read again.
                        Watched::Blocks(hash) | Watched::Frees(hash) => {
                            freed = Some(freed.map_or(seq, |other: i64| other.min(seq)));
                            state.freed = Some(state.freed.map_or(seq, |other| other.min(seq)));
                            hash
                        }
                    };
                    if let Some(blocked) = state.keys.get_mut(&hash).and_then(|key| key.blocked.as_mut()) {
                        blocked.unrecorded = blocked.unrecorded.saturating_sub(1);
                        answered |= state.table_answers_for(hash);
                    }
                }
            }
        }
        if answered {
            // With the next fetch the key is not blocked any more: if it is behind, it may be read.
            self.wanted.notify_one();
        }
        freed
    }

    /// How many events wait.
    pub(crate) fn depth(&self) -> usize {
        self.lock().queued
    }

    /// Takes nothing more in; what is queued can still be popped.
    pub(crate) fn close(&self) {
        self.lock().closed = true;
        self.items.notify_one();
    }

    /// Closes and throws away what is queued: the table still has it.
    pub(crate) fn abandon(&self) -> usize {
        let mut state = self.lock();
        state.closed = true;
        state.ready.clear();
        for key in state.keys.values_mut() {
            key.waiting.clear();
        }
        let abandoned = std::mem::take(&mut state.queued);
        drop(state);
        self.items.notify_one();
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
