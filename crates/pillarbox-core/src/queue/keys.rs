use std::collections::VecDeque;
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use foldhash::HashMap;
use tokio::sync::Notify;
use tokio::time::Instant;

use super::Item;
use super::lanes::PASSED_OVER;
use crate::handle::Path;
use crate::ownership::{Partitions, Past};
use crate::run::FailingKey;
use crate::settle::{Change, Status};
use crate::store::{OrderKey, Row};

/// The bounded queue between the table and the workers where the events of a key are delivered in their order.
///
/// ```text
///              push                    pop                     ended
///   table ───────────▶ key: 4 7 9 ───────────▶ 4 runs, 7 and 9 wait ───────▶ 7 is ready, or 7 and 9 are dropped
/// ```
///
/// Of each key one event runs at a time, and the lowest `seq` is next. A key that has much waiting in the table gets a share of
/// the memory and no more, so that it cannot keep the others out: then it is *behind*, and read by itself.
///
/// What makes a key wait is in the table: a failing event that is recorded there. Until it is, and until every fetch that
/// began before is over, the key is *blocked* here.
#[derive(Debug)]
pub(crate) struct KeyLanes {
    state: Mutex<State>,
    capacity: usize,
    per_key: usize,
    failing: FailingKey,
    /// Rung when there is something to pop, or never will be.
    items: Notify,
    /// Rung when the reader has something to do: there is room again, a key has to be read, partitions came or went.
    wanted: Notify,
}

/// A key by its hash. Two keys of the same hash are delivered one at a time as well, which is slower and not wrong.
type KeyHash = u64;

#[derive(Debug, Default)]
struct State {
    keys: HashMap<KeyHash, Key>,
    /// Keys that have an event for a worker, and events without a key.
    ready: VecDeque<Ready>,
    running: HashMap<i64, Running>,
    /// Keys of which the table has more than memory holds.
    behind: HashMap<KeyHash, Behind>,
    /// Verdicts to be recorded that matter to their key.
    watched: HashMap<i64, Watched>,
    /// Blocked keys whose failure is recorded, in the order of the fetches since then.
    recorded: VecDeque<(u64, KeyHash)>,
    /// Events waiting.
    queued: usize,
    active: Partitions,
    /// How often partitions came or went.
    assignment: u64,
    /// The fetch that was under way, or over, when partitions last came or went.
    assigned_during: u64,
    /// Partitions whose last owner died, and how many of their events are still suspected of being the cause.
    suspected: (Partitions, usize),
    /// The lowest event that has ended of those that others waited behind, since the last fetch began.
    freed: Option<i64>,
    /// The last fetch that was found to have seen no failed event in the table.
    headless: u64,
    /// The last fetch that may not have seen a failure of this node.
    failed_during: u64,
    /// Fetches begun so far.
    fetch: u64,
    closed: bool,
}

#[derive(Debug)]
enum Ready {
    Key(KeyHash),
    Lone(Item),
}

#[derive(Debug, Default)]
struct Key {
    /// Ascending by `seq`. Most keys have one event waiting: a tree would take room for eleven.
    waiting: VecDeque<Item>,
    running: bool,
    ready: bool,
    blocked: Option<Blocked>,
}

impl Key {
    fn is_idle(&self) -> bool {
        self.waiting.is_empty() && !self.running && self.blocked.is_none()
    }
}

#[derive(Debug)]
struct Blocked {
    head: i64,
    /// The last fetch that began before the failure was recorded; `None` while it is not.
    recorded: Option<u64>,
}

#[derive(Debug)]
struct Running {
    key: Option<KeyHash>,
    partition: u8,
    /// In the table, the rest of its key waits for it.
    head: bool,
    /// Its partition was given away: what becomes of it is not this node's to say any more.
    revoked: bool,
}

#[derive(Debug)]
enum Watched {
    /// Once it is recorded, the table keeps the key waiting.
    Blocks(KeyHash),
    /// Once it is recorded, the table has more of the key to deliver.
    Frees(KeyHash),
}

/// A key of which the table has more than memory holds.
#[derive(Debug, Clone)]
pub(crate) struct Behind {
    pub(crate) key: OrderKey,
    pub(crate) partition: u8,
    /// Everything of the key at or below it was in memory when it fell behind.
    pub(crate) floor: i64,
}

/// Where the rows of a fetch come from.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Source {
    /// Which fetch, as [`KeyLanes::begin_fetch`] numbered it.
    pub(crate) fetch: u64,
    /// All rows at or below it were known before.
    pub(crate) floor: i64,
    /// Whether it read a key that is behind.
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
        Self { state: Mutex::default(), capacity, per_key, failing, items: Notify::new(), wanted: Notify::new() }
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
                key.blocked.take_if(|blocked| blocked.recorded == Some(fetch));
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

    /// How many events there is room for; as long as it is less than half, a fetch is not worth it.
    pub(crate) fn room(&self) -> Option<usize> {
        let queued = self.lock().queued;
        (queued <= self.capacity / 2).then(|| self.capacity - queued)
    }

    /// Waits until the reader may have something to do.
    pub(crate) async fn wanted(&self) {
        self.wanted.notified().await;
    }

    /// The keys of which memory holds enough.
    pub(crate) fn behind(&self) -> Vec<OrderKey> {
        self.lock().behind.values().map(|behind| behind.key.clone()).collect()
    }

    /// A key that is behind and of which little is left in memory, and how many of its events to read.
    pub(crate) fn hungry(&self) -> Option<(Behind, usize)> {
        let state = self.lock();
        let waiting = |hash| state.keys.get(hash).map_or(0, |key| key.waiting.len());
        let hungry = state.behind.iter().map(|(hash, behind)| (waiting(hash), behind));
        let (waiting, behind) = hungry.filter(|(waiting, _)| *waiting <= self.per_key / 2).min_by_key(|(n, _)| *n)?;
        Some((behind.clone(), self.per_key - waiting))
    }

    /// Memory holds everything of a key that was behind.
    pub(crate) fn caught_up(&self, behind: &Behind) {
        self.lock().behind.remove(&hash(&behind.key));
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
        let is_low = |hash: KeyHash| state.keys.get(&hash).map_or(0, |key| key.waiting.len()) == self.per_key / 2;
        state.queued == self.capacity / 2
            || (!state.behind.is_empty()
                && hash_of(&item.row).is_some_and(|hash| state.behind.contains_key(&hash) && is_low(hash)))
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
                let key = state.keys.entry(hash).or_default();
                key.blocked = Some(Blocked { head: seq, recorded: None });
                ended.dropped = key.waiting.drain(..).map(|item| item.row.seq).collect();
                state.queued -= ended.dropped.len();
                state.behind.remove(&hash);
                state.watched.insert(seq, Watched::Blocks(hash));
                state.failed_during = state.fetch;
            } else if head {
                // The table shows the rest of the key as soon as this is recorded, and the reader has gone on above it: until
                // it has come back, nothing of the key is taken.
                state.keys.entry(hash).or_default().blocked = Some(Blocked { head: seq, recorded: None });
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
        let waiting = state.keys.entry(hash).or_default();
        if waiting.blocked.as_ref().is_some_and(|blocked| blocked.head < seq) {
            return Vec::new();
        }
        waiting.blocked = Some(Blocked { head: seq, recorded: None });
        let behind = waiting.waiting.partition_point(|item| item.row.seq < seq);
        let dropped: Vec<i64> = waiting.waiting.drain(behind..).map(|item| item.row.seq).collect();
        state.queued -= dropped.len();
        state.behind.remove(&hash);
        state.watched.insert(seq, Watched::Blocks(hash));
        dropped
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
        let mut freed = None;
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
                        blocked.recorded = Some(state.fetch);
                        state.recorded.push_back((state.fetch, hash));
                    }
                }
            }
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

impl State {
    /// Takes a row in, unless there is a reason not to.
    fn take(&mut self, mut item: Item, source: Source, per_key: usize) -> bool {
        let row = &item.row;
        let (seq, partition) = (row.seq, partition_of(row));
        if self.closed || source.fetch <= self.assigned_during || !self.active.contains(partition) {
            return false;
        }
        if let Some(hash) = hash_of(row) {
            let known = self.keys.get(&hash);
            if known.and_then(|key| key.blocked.as_ref()).is_some_and(|blocked| seq > blocked.head) {
                return false;
            }
            let full = known.is_some_and(|key| key.waiting.len() >= per_key);
            if full || (!source.refill && self.behind.contains_key(&hash)) {
                if let Some(key) = row.order_key() {
                    let behind = Behind { key, partition, floor: source.floor };
                    self.behind.entry(hash).or_insert(behind);
                }
                return false;
            }
            self.suspect(&mut item, partition);
            let key = self.keys.entry(hash).or_default();
            // Nearly always the last place: rows come in their order, but for those that were due only now.
            let place = key.waiting.partition_point(|other| other.row.seq < seq);
            key.waiting.insert(place, item);
            if !key.running && !std::mem::replace(&mut key.ready, true) {
                self.ready.push_back(Ready::Key(hash));
            }
        } else {
            self.suspect(&mut item, partition);
            self.ready.push_back(Ready::Lone(item));
        }
        self.queued += 1;
        true
    }

    /// After an owner died, the first rows read of its partitions are suspected of having killed it: as many as it can
    /// have had in memory.
    fn suspect(&mut self, item: &mut Item, partition: u8) {
        let (partitions, left) = &mut self.suspected;
        if *left > 0 && partitions.contains(partition) {
            *left -= 1;
            if item.past == Past::Clean {
                item.past = Past::Suspect;
            }
            if *left == 0 {
                *partitions = Partitions::NONE;
            }
        }
    }

    /// The event that [`next`](Self::next) would return.
    fn peek(&mut self) -> Option<&Item> {
        loop {
            match self.ready.front()? {
                Ready::Key(hash) if self.keys.get(hash).is_none_or(|key| key.waiting.is_empty()) => {
                    let hash = *hash;
                    self.ready.pop_front();
                    if let Some(key) = self.keys.get_mut(&hash) {
                        key.ready = false;
                        if key.is_idle() {
                            self.keys.remove(&hash);
                        }
                    }
                }
                _ => break,
            }
        }
        match self.ready.front()? {
            Ready::Lone(item) => Some(item),
            Ready::Key(hash) => self.keys.get(hash).and_then(|key| key.waiting.front()),
        }
    }

    fn next(&mut self) -> Option<Item> {
        self.peek()?;
        let (item, key) = match self.ready.pop_front()? {
            Ready::Lone(item) => (item, None),
            Ready::Key(hash) => {
                let key = self.keys.get_mut(&hash)?;
                (key.ready, key.running) = (false, true);
                (key.waiting.pop_front()?, Some(hash))
            }
        };
        self.queued -= 1;
        let head = item.row.status == Status::Retry;
        let running = Running { key, partition: partition_of(&item.row), head, revoked: false };
        self.running.insert(item.row.seq, running);
        Some(item)
    }

    /// No event of the key runs any more.
    fn released(&mut self, hash: KeyHash) {
        let Some(key) = self.keys.get_mut(&hash) else { return };
        key.running = false;
        if !key.waiting.is_empty() && !std::mem::replace(&mut key.ready, true) {
            self.ready.push_back(Ready::Key(hash));
        }
        if key.is_idle() {
            self.keys.remove(&hash);
        }
    }
}

/// Notes what is not kept.
fn keep(dropped: &mut Vec<i64>, kept: bool, seq: i64) -> bool {
    if !kept {
        dropped.push(seq);
    }
    kept
}

/// The reader stamps rows before it queues them.
fn partition_of(row: &Row) -> u8 {
    row.partition.unwrap_or_default()
}

fn hash_of(row: &Row) -> Option<KeyHash> {
    let key = row.key.as_deref().or(row.aggregate_id.as_deref())?;
    Some(hash_parts(row.handler.as_deref(), key))
}

fn hash(key: &OrderKey) -> KeyHash {
    hash_parts(key.handler.as_deref(), &key.key)
}

fn hash_parts(handler: Option<&str>, key: &str) -> KeyHash {
    let mut hasher = DefaultHasher::new();
    (handler, key).hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Timestamp;
    use crate::event::Envelope;
    use crate::write::NewRow;

    const CAPACITY: usize = 64;

    fn lanes(failing: FailingKey) -> KeyLanes {
        let lanes = KeyLanes::new(CAPACITY, 2, failing);
        lanes.assign(Partitions::ALL, Partitions::NONE);
        lanes
    }

    fn row(seq: i64, key: &str) -> Row {
        let event = Envelope::builder("t").key(key).payload_json("{}").build().expect("valid");
        Row::fresh(&NewRow::new(event), seq, Timestamp::from_micros(0))
    }

    /// Reads rows as one fetch, and returns those that were refused.
    fn read(lanes: &KeyLanes, rows: &[(i64, &str)]) -> Vec<i64> {
        let source = Source { fetch: lanes.begin_fetch().number, floor: 0, refill: false };
        lanes.push(rows.iter().map(|(seq, key)| (row(*seq, key), Past::Clean)), source)
    }

    /// All that can run now.
    fn running(lanes: &KeyLanes) -> Vec<i64> {
        lanes.pop_more(usize::MAX, |_| true).iter().map(|item| item.row.seq).collect()
    }

    fn dead() -> Change {
        Change::Dead { attempts: 1, error: String::new() }
    }

    #[test]
    fn of_each_key_the_lowest_runs_and_the_others_wait() {
        let lanes = lanes(FailingKey::Wait);
        assert!(read(&lanes, &[(2, "a"), (3, "b"), (4, "a")]).is_empty());
        assert!(read(&lanes, &[(1, "a")]).is_empty(), "one that was committed late");
        assert_eq!(running(&lanes), [1, 3]);
        assert!(running(&lanes).is_empty());
        lanes.ended(1, Some(&Change::Done));
        assert_eq!(running(&lanes), [2]);
        lanes.ended(2, Some(&Change::Done));
        lanes.ended(3, Some(&Change::Done));
        assert_eq!(running(&lanes), [4]);
        lanes.ended(4, Some(&Change::Done));
        assert!(
            lanes.lock().keys.is_empty() && lanes.lock().running.is_empty(),
            "nothing is remembered of what is over"
        );
    }

    #[test]
    fn behind_one_that_fails_nothing_is_taken_until_the_table_knows() {
        let lanes = lanes(FailingKey::Wait);
        read(&lanes, &[(1, "a"), (2, "a"), (3, "a"), (4, "b")]);
        assert_eq!(running(&lanes), [1, 4]);
        assert_eq!(lanes.ended(1, Some(&dead())).dropped, [2, 3]);
        assert_eq!(lanes.depth(), 0);
        assert_eq!(read(&lanes, &[(2, "a")]), [2], "not recorded yet");
        let under_way = Source { fetch: lanes.begin_fetch().number, floor: 0, refill: false };
        assert_eq!(lanes.recorded([(1, true)]), None);
        assert_eq!(lanes.push([(row(2, "a"), Past::Clean)], under_way), [2], "read before it was recorded");
        assert!(read(&lanes, &[(2, "a")]).is_empty(), "read after: the table would have kept it back");
    }

    #[test]
    fn behind_a_row_that_is_no_event_nothing_is_taken_until_the_table_knows() {
        let lanes = lanes(FailingKey::Wait);
        read(&lanes, &[(1, "a"), (2, "a"), (4, "a"), (5, "b")]);
        let key = row(3, "a").order_key().expect("a key");
        assert_eq!(lanes.failed(&key, 3, &dead()), [4]);
        assert_eq!(read(&lanes, &[(4, "a"), (6, "a")]), [4, 6], "not recorded yet");
        assert_eq!(running(&lanes), [1, 5]);
        lanes.ended(1, Some(&Change::Done));
        assert_eq!(running(&lanes), [2], "it stands before");
        lanes.ended(2, Some(&Change::Done));
        lanes.recorded([1, 2, 3].map(|seq| (seq, true)));
        assert!(read(&lanes, &[(4, "a")]).is_empty(), "the table would have kept it back");
        assert!(KeyLanes::new(CAPACITY, 2, FailingKey::Continue).failed(&key, 3, &dead()).is_empty());
    }

    #[test]
    fn the_table_has_no_heads_if_it_was_seen_to_have_none_and_nothing_failed_since() {
        let lanes = lanes(FailingKey::Wait);
        let begin = || lanes.begin_fetch();
        let first = begin();
        assert!(first.heads, "nothing is known");
        lanes.push(
            [(row(1, "a"), Past::Clean), (row(2, "b"), Past::Clean)],
            Source { fetch: first.number, floor: 0, refill: false },
        );
        lanes.saw_heads(first.number, false);
        assert!(!begin().heads);
        assert_eq!(running(&lanes), [1, 2]);
        let under_way = begin();
        lanes.ended(1, Some(&dead()));
        lanes.saw_heads(under_way.number, false);
        let unrecorded = begin();
        assert!(unrecorded.heads, "one has failed since that fetch began");
        lanes.saw_heads(unrecorded.number, false);
        lanes.recorded([(1, true)]);
        assert!(begin().heads, "it was recorded since that fetch began");
        let after = begin();
        lanes.saw_heads(after.number, false);
        assert!(!begin().heads, "it was replayed meanwhile");
        lanes.ended(2, Some(&Change::Done));
        assert!(!begin().heads);
        let unnoticed = begin();
        lanes.saw_heads(unnoticed.number, true);
        assert!(begin().heads, "whoever made it one");
        let after = begin();
        lanes.saw_heads(after.number, false);
        assert!(!begin().heads);
        lanes.assign(Partitions::from(0..=127), Partitions::NONE);
        assert!(begin().heads, "others may have failed before");
    }

    #[test]
    fn one_that_was_waited_for_makes_the_table_be_read_when_it_is_done() {
        let lanes = lanes(FailingKey::Wait);
        let retried = Row { status: Status::Retry, attempts: 1, timed: true, ..row(1, "a") };
        let source = Source { fetch: lanes.begin_fetch().number, floor: 0, refill: false };
        lanes.push([(retried, Past::Clean)], source);
        assert_eq!(running(&lanes), [1]);
        lanes.ended(1, Some(&Change::Done));
        assert_eq!(lanes.recorded([(7, true), (1, true)]), Some(1));
        assert_eq!(lanes.recorded([(1, true)]), None, "once");
    }

    /// Its row is gone, or the database does not take the verdict: then nothing in the table keeps the key waiting.
    #[test]
    fn a_failure_that_is_not_recorded_makes_the_table_be_read_from_there() {
        let lanes = lanes(FailingKey::Wait);
        read(&lanes, &[(1, "a"), (2, "a")]);
        assert_eq!(running(&lanes), [1]);
        assert_eq!(lanes.ended(1, Some(&dead())).dropped, [2]);
        assert_eq!(lanes.recorded([(1, false)]), Some(1));
        let begun = lanes.begin_fetch();
        assert_eq!(begun.freed, Some(1));
        let source = Source { fetch: begun.number, floor: 0, refill: false };
        assert!(lanes.push([(row(2, "a"), Past::Clean)], source).is_empty());
    }

    /// However small the memory is, one key takes no more than its share.
    #[test]
    fn a_small_memory_is_shared_as_well() {
        let lanes = KeyLanes::new(20, 8, FailingKey::Wait);
        lanes.assign(Partitions::ALL, Partitions::NONE);
        let refused = read(&lanes, &[(1, "slow"), (2, "slow"), (3, "slow"), (4, "other")]);
        assert_eq!(refused, [2, 3]);
        assert_eq!(running(&lanes), [1, 4]);
        assert!(lanes.room().is_some());
    }

    #[test]
    fn what_a_failure_means_for_the_key_is_a_setting() {
        let retry = Change::Retry { attempts: 1, delay: std::time::Duration::ZERO, error: None };
        let table = [
            (FailingKey::Wait, &retry, false),
            (FailingKey::SkipDead, &retry, false),
            (FailingKey::SkipDead, &dead(), true),
            (FailingKey::Continue, &retry, true),
            (FailingKey::Continue, &dead(), true),
        ];
        for (policy, change, goes_on) in table {
            let lanes = lanes(policy);
            read(&lanes, &[(1, "a"), (2, "a")]);
            assert_eq!(running(&lanes), [1]);
            lanes.ended(1, Some(change));
            assert_eq!(running(&lanes).len(), usize::from(goes_on), "{policy:?} {change:?}");
        }
    }

    #[test]
    fn a_key_with_much_to_do_leaves_room_for_others() {
        let lanes = lanes(FailingKey::Wait);
        let hot: Vec<(i64, &str)> = (1..=40).map(|seq| (seq, "hot")).collect();
        let refused = read(&lanes, &hot);
        assert_eq!(refused, (17..=40).collect::<Vec<_>>(), "a quarter of the room");
        assert_eq!(lanes.behind().len(), 1);
        assert_eq!(read(&lanes, &[(41, "hot"), (42, "cold")]), [41], "nothing above what was left behind");
        assert!(lanes.hungry().is_none());
        for seq in 1..=8 {
            assert!(running(&lanes).contains(&seq));
            lanes.ended(seq, Some(&Change::Done));
        }
        let (behind, wanted) = lanes.hungry().expect("half of it is gone");
        assert_eq!((&*behind.key.key, behind.floor, wanted), ("hot", 0, 8));
        let source = Source { fetch: lanes.begin_fetch().number, floor: 0, refill: true };
        assert!(lanes.push((17..=24).map(|seq| (row(seq, "hot"), Past::Clean)), source).is_empty());
        lanes.caught_up(&behind);
        assert!(lanes.behind().is_empty());
    }

    #[test]
    fn what_is_not_ours_any_more_is_dropped_and_not_taken() {
        let lanes = lanes(FailingKey::Wait);
        read(&lanes, &[(1, "a"), (2, "a")]);
        assert_eq!(running(&lanes), [1]);
        let of_a = row(1, "a").partition.expect("stamped");
        let mut rest = Partitions::ALL;
        rest.remove(of_a);
        let under_way = Source { fetch: lanes.begin_fetch().number, floor: 0, refill: false };
        assert_eq!(lanes.assign(rest, Partitions::NONE), [2]);
        assert_eq!(lanes.assign(Partitions::ALL, Partitions::NONE), [0; 0]);
        assert_eq!(lanes.push([(row(3, "a"), Past::Clean)], under_way), [3], "what was read before it was given away");
        assert!(read(&lanes, &[(2, "a")]).is_empty());
        assert!(running(&lanes).is_empty(), "row 1 still runs");
        lanes.revoke(Partitions::from(of_a..=of_a));
        assert!(lanes.ended(1, Some(&Change::Done)).revoked);
        assert_eq!(running(&lanes), [2]);
    }

    #[test]
    fn after_a_crash_the_first_rows_of_the_dead_owner_are_suspected() {
        let lanes = KeyLanes::new(CAPACITY, 2, FailingKey::Wait);
        let of_a = row(1, "a").partition.expect("stamped");
        lanes.assign(Partitions::ALL, Partitions::from(of_a..=of_a));
        read(&lanes, &[(1, "a"), (2, "b")]);
        let items = lanes.pop_more(2, |_| true);
        assert_eq!(items.iter().map(|item| item.past).collect::<Vec<_>>(), [Past::Suspect, Past::Clean]);
    }

    #[test]
    fn a_batch_takes_what_is_wanted_and_leaves_the_rest_in_its_order() {
        let lanes = lanes(FailingKey::Wait);
        read(&lanes, &[(1, "a"), (2, "b"), (3, "a"), (4, "c"), (5, "d")]);
        let odd = lanes.pop_more(usize::MAX, |item| item.row.seq % 2 == 1);
        assert_eq!(odd.iter().map(|item| item.row.seq).collect::<Vec<_>>(), [1, 5], "3 waits for 1");
        assert_eq!(running(&lanes), [2, 4]);
        lanes.ended(1, Some(&Change::Done));
        assert_eq!(running(&lanes), [3]);
    }
}
