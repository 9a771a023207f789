use std::collections::VecDeque;
use std::collections::hash_map::Entry;
use std::hash::BuildHasher as _;
use std::sync::{Arc, LazyLock};

use pillarbox_core::handle::DeliveringNode;
use pillarbox_core::hash::HashMap;
use pillarbox_core::hash::RandomState;
use pillarbox_core::ownership::Partitions;
use pillarbox_core::planted_bug;
use pillarbox_core::row::{Change, Status};
use pillarbox_core::store::{OrderKey, Row};

use super::Source;
use super::backlogged::Backlogged;
use crate::operator_pauses::{OperatorPauses, PausedKeys};
use crate::queue::dispatch_queue::{DispatchKey, DispatchQueue};
use crate::queue::{Charge, Class, FairShares, Item, Suspects};

/// Seeded anew in each process, so that nobody can choose keys that wait for each other.
static KEYS: LazyLock<RandomState> = LazyLock::new(RandomState::default);

/// A key by its hash. Two keys of the same hash are delivered one at a time as well, which is slower and not wrong.
pub(super) type KeyHash = u64;

/// The rows that are suspected of having killed their last owner.
#[derive(Debug, Default)]
pub(super) struct Suspected {
    /// Partitions whose last owner died.
    pub(super) partitions: Partitions,
    pub(super) rows: Suspects,
}

#[derive(Debug, Default)]
pub(super) struct State {
    pub(super) keys: HashMap<KeyHash, Key>,
    /// Keys that have an event for a worker, and events without a key.
    pub(super) ready: DispatchQueue<Ready>,
    pub(super) running: HashMap<i64, Running>,
    /// Keys of which the table has more than memory holds.
    pub(super) backlogged: HashMap<KeyHash, Backlogged>,
    /// Keys of which the table has events that were read and left there, and the class that they wait for.
    pub(super) waited_for: HashMap<KeyHash, Class>,
    /// Keys that have a paused event in the table.
    pub(super) paused_keys: PausedKeys<KeyHash>,
    /// Events, by their `seq`, with a verdict to be recorded that matters to their key.
    pub(super) awaited: HashMap<i64, AwaitedVerdict>,
    /// Blocked keys whose failure is recorded, in the order of the fetches since then.
    pub(super) recorded: VecDeque<(u64, KeyHash)>,
    /// Events waiting.
    pub(super) queued: usize,
    pub(super) active: Partitions,
    /// The deliverers of the partitions that had events, each of which may be told to stop.
    pub(super) deliverers: HashMap<u8, Arc<DeliveringNode>>,
    /// The number of times that partitions came or went.
    pub(super) assignment: u64,
    /// The fetch that was under way, or over, when partitions last came or went.
    pub(super) assigned_during: u64,
    pub(super) suspected: Suspected,
    /// The lowest `seq` from which on the table has to be read again, for the sake of keys whose events failed or ended since the
    /// last fetch began.
    pub(super) freed: Option<i64>,
    /// The last fetch that was found to have seen no failed event in the table.
    pub(super) headless: u64,
    /// The last fetch that may not have seen a failure of this node.
    pub(super) failed_during: u64,
    /// The last fetch that was known to have seen an operator intervene.
    pub(super) intervened_during: u64,
    /// Fetches begun so far.
    pub(super) fetch: u64,
    pub(super) closed: bool,
}

#[derive(Debug)]
pub(super) enum Ready {
    Key(KeyHash),
    Lone(Item),
}

#[derive(Debug, Default)]
pub(super) struct Key {
    /// Ascending by `seq`. Most keys have one event waiting: a tree would take room for eleven.
    pub(super) waiting: VecDeque<Item>,
    pub(super) running: bool,
    /// The dispatch key under which it is listed as ready: that of its first event.
    pub(super) listed: Option<DispatchKey>,
    pub(super) blocked: Option<Blocked>,
    /// The class of the event that the others wait for.
    pub(super) charged_class: Option<Class>,
}

/// The result of taking a row in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Admission {
    /// It is in memory.
    Queued,
    /// It has no place: its key has to be read apart, or may not be read now.
    Refused,
    /// It has no place until there is room for this class, or what is [paused](Class::PAUSED) is resumed.
    WaitsFor(Class),
}

impl Key {
    pub(super) fn is_idle(&self) -> bool {
        // One that is still listed as ready would be listed twice when it comes back, and two of its events would run at once.
        self.waiting.is_empty() && !self.running && self.listed.is_none() && self.blocked.is_none()
    }

    fn is_blocked_at(&self, seq: i64) -> bool {
        self.blocked.as_ref().is_some_and(|blocked| seq > blocked.head)
    }

    /// Lists the key as ready, once, under the dispatch key of its first event; under another one it would be served when that is.
    pub(super) fn list(&mut self, hash: KeyHash, ready: &mut DispatchQueue<Ready>) {
        let Some(dispatch_key) = self.waiting.front().map(Item::dispatch_key).filter(|_| !self.running) else { return };
        let listed = self.listed.replace(dispatch_key);
        if listed == Some(dispatch_key) {
            return;
        }
        if let Some(listed) = listed {
            ready.remove(listed, |other| matches!(other, Ready::Key(other) if *other == hash));
        }
        ready.push(dispatch_key, Ready::Key(hash));
    }

    /// Makes the waiting events of the key wait for an event of this class from now on.
    fn wait_for(&mut self, class: Class) {
        if self.charged_class.replace(class) != Some(class) {
            self.waiting.iter_mut().filter_map(|item| item.charge.as_mut()).for_each(|charge| charge.move_to(class));
        }
    }
}

#[derive(Debug, Default)]
pub(super) struct Blocked {
    /// Nothing of the key above it is taken.
    pub(super) head: i64,
    /// Verdicts on events of the key that are still to be recorded.
    pub(super) unrecorded: usize,
    /// The last fetch that began before the table showed what the key has to wait for.
    pub(super) fetch: u64,
}

#[derive(Debug)]
pub(super) struct Running {
    pub(super) key: Option<KeyHash>,
    pub(super) partition: u8,
    /// In the table, the rest of its key waits for it.
    pub(super) head: bool,
    /// Its handler was told to stop, since another node waits for its partition.
    pub(super) stop_requested: bool,
}

/// An event of which others of its key may wait for the verdict, from the moment that it is decided about until it is known here if the
/// verdict was recorded.
#[derive(Debug)]
pub(super) struct AwaitedVerdict {
    pub(super) key: KeyHash,
    pub(super) effect: Effect,
    /// The row was read again in the meantime: it is released a moment before this is known here. It was not taken, since a second
    /// verdict would be counted in the place of this one.
    pub(super) read_again: bool,
}

/// The effect of a verdict once it is recorded.
#[derive(Debug, Clone, Copy)]
pub(super) enum Effect {
    /// The table keeps the key waiting. If the event is DEAD, an operator may replay it; `dead` is the fetch that was under way, or over,
    /// when it was given up.
    Blocks { dead: Option<u64> },
    /// The table has more of the key to deliver.
    Frees,
}

impl AwaitedVerdict {
    /// The event has failed, and its key waits for it once `change` is recorded.
    pub(super) fn blocks(key: KeyHash, change: &Change, fetch: u64) -> Self {
        let effect = Effect::Blocks { dead: matches!(change, Change::Dead { .. }).then_some(fetch) };
        Self { key, effect, read_again: false }
    }

    /// The rest of the key is to be read again.
    pub(super) fn frees(key: KeyHash) -> Self {
        Self { key, effect: Effect::Frees, read_again: false }
    }
}

impl State {
    /// Takes a row in, unless there is a reason not to.
    ///
    /// `left` are the keys of which this fetch has brought an event that has no place until there is room for a class.
    pub(super) fn take(
        &mut self,
        mut item: Item,
        source: Source,
        per_key: usize,
        shares: &Arc<FairShares>,
        pauses: &OperatorPauses,
        left: &mut HashMap<KeyHash, Class>,
    ) -> Admission {
        let row = &item.row;
        let (seq, partition) = (row.seq, partition_of(row));
        if self.closed || source.fetch <= self.assigned_during || !self.active.contains(partition) {
            return Admission::Refused;
        }
        if self.notes_reading_again(seq) {
            return Admission::Refused;
        }
        let hash = hash_of(row);
        if self.keep_behind_pause(hash, seq, pauses.is_row_paused(row)) {
            return Admission::WaitsFor(Class::PAUSED);
        }
        if shares.is_divided()
            && let Some(class) = self.waits_for(&item, hash, source, shares, left)
        {
            shares.pass(class);
            if let Some(hash) = hash {
                left.insert(hash, class);
                self.waited_for.insert(hash, class);
            }
            return Admission::WaitsFor(class);
        }
        let Some(hash) = hash else {
            self.suspect(&mut item, partition);
            item.charge = Some(Charge::new(shares, item.class, &item.row, true));
            self.ready.push(item.dispatch_key(), Ready::Lone(item));
            self.queued += 1;
            return Admission::Queued;
        };
        if self.is_refused(hash, seq, source, per_key) || (source.refill && !self.has_room(hash, &item, shares)) {
            self.add_to_backlog(hash, &item, source, per_key);
            return Admission::Refused;
        }
        if source.refill
            && let Some(backlogged) = self.backlogged.get_mut(&hash)
        {
            backlogged.in_memory += 1;
        }
        self.suspect(&mut item, partition);
        self.queue(hash, item, shares);
        Admission::Queued
    }

    /// Keeps a row in the table that `is_paused`, or that stands behind a paused one of its key. True if the row is kept.
    fn keep_behind_pause(&mut self, hash: Option<KeyHash>, seq: i64, is_paused: bool) -> bool {
        if !is_paused && self.paused_keys.is_empty() {
            return false;
        }
        let Some(hash) = hash else { return is_paused };
        let is_kept = self.paused_keys.keep(hash, seq, is_paused);
        // Read apart from the others, a key would be read for ever in vain; unless there is something below that found no place.
        if is_kept && self.backlogged.get(&hash).is_some_and(|backlogged| backlogged.refused.is_none()) {
            self.backlogged.remove(&hash);
        }
        is_kept
    }

    /// Queues an event of a key.
    fn queue(&mut self, hash: KeyHash, mut item: Item, shares: &Arc<FairShares>) {
        let (class, seq) = (item.class, item.row.seq);
        let key = self.keys.entry(hash).or_default();
        // Nearly always the last place: rows come in their order, but for those that were due only now.
        let place = key.waiting.partition_point(|other| other.row.seq < seq);
        let is_first = place == 0 && !key.running;
        let charged_class = key.charged_class.filter(|_| !is_first).unwrap_or(class);
        item.charge = Some(Charge::new(shares, charged_class, &item.row, true));
        key.waiting.insert(place, item);
        if is_first {
            key.wait_for(class);
        }
        key.list(hash, &mut self.ready);
        self.queued += 1;
    }

    /// Notes that the table has a row of a key for which there is no place: from now on the key is read apart from the others.
    fn add_to_backlog(&mut self, hash: KeyHash, item: &Item, source: Source, per_key: usize) {
        let is_unblocked = !self.is_blocked_at(hash, item.row.seq);
        let in_memory = self.waiting(hash);
        match (self.backlogged.entry(hash), item.row.order_key()) {
            (Entry::Occupied(mut backlogged), _) if source.refill => {
                backlogged.get_mut().refused.get_or_insert(item.row.seq);
            }
            (Entry::Vacant(place), Some(key)) if is_unblocked => {
                let (floor, since, share, class) = (source.floor, item.since, per_key, item.class);
                let partition = partition_of(&item.row);
                place.insert(Backlogged { key, partition, floor, share, since, in_memory, refused: None, class });
                self.waited_for.remove(&hash);
            }
            _ => {}
        }
        if let Some(backlogged) = self.backlogged.get_mut(&hash) {
            backlogged.class = item.class;
        }
    }

    /// The class for which a row has to wait, if it has to; a backlogged key is read apart, and waits there.
    fn waits_for(
        &self,
        item: &Item,
        hash: Option<KeyHash>,
        source: Source,
        shares: &FairShares,
        left: &HashMap<KeyHash, Class>,
    ) -> Option<Class> {
        let is_own = |class: Class| source.class == Some(class);
        if let Some(hash) = hash {
            if source.refill || self.backlogged.contains_key(&hash) || self.is_blocked_at(hash, item.row.seq) {
                return None;
            }
            if let Some(class) = left.get(&hash) {
                return Some(*class);
            }
            if let Some(class) = self.waited_for.get(&hash).filter(|class| !is_own(**class)) {
                return Some(*class);
            }
        }
        let class = item.class;
        if shares.is_passed(class) && !is_own(class) {
            return Some(class);
        }
        let charged_class = hash.map_or(class, |hash| self.charged_class(hash, class));
        (!shares.may_wait(charged_class)).then_some(charged_class)
    }

    /// The class that an event of this class waits for in its key.
    pub(super) fn charged_class(&self, hash: KeyHash, class: Class) -> Class {
        let key = self.keys.get(&hash).filter(|key| key.running || !key.waiting.is_empty());
        key.and_then(|key| key.charged_class).unwrap_or(class)
    }

    fn has_room(&self, hash: KeyHash, item: &Item, shares: &FairShares) -> bool {
        shares.may_wait(self.charged_class(hash, item.class))
    }

    /// True if memory has no place for this row of a key.
    fn is_refused(&self, hash: KeyHash, seq: i64, source: Source, per_key: usize) -> bool {
        let key = self.keys.get(&hash);
        let share = match self.backlogged.get(&hash) {
            // The rows behind one that has no place have none either, or they would overtake it.
            Some(backlogged) if source.refill && backlogged.refused.is_none() => backlogged.share,
            Some(_) => 0,
            None => per_key,
        };
        key.is_some_and(|key| key.is_blocked_at(seq)) || key.map_or(0, |key| key.waiting.len()) >= share
    }

    pub(super) fn waiting(&self, hash: KeyHash) -> usize {
        self.keys.get(&hash).map_or(0, |key| key.waiting.len())
    }

    /// Nothing of the key above `seq` is taken, until every fetch that began before the table knows of it is over.
    fn block(&mut self, hash: KeyHash, seq: i64) -> &mut Blocked {
        let key = self.keys.entry(hash).or_default();
        let blocked = key.blocked.get_or_insert(Blocked { head: seq, ..Blocked::default() });
        blocked.head = blocked.head.min(seq);
        blocked
    }

    /// A verdict on the event `seq` is to be recorded. Until it is, nothing of its key above it is taken. A row [whose
    /// verdict is awaited](Self::notes_reading_again) is not taken, so an earlier verdict on it is only one that its handler tried to record
    /// itself.
    pub(super) fn await_verdict(&mut self, seq: i64, awaited: AwaitedVerdict) {
        let key = awaited.key;
        if self.awaited.insert(seq, awaited).is_none() {
            self.block(key, seq).unrecorded += 1;
        }
    }

    /// True if a verdict on a row that was read is still awaited. Then the row is not taken, but read again afterwards.
    pub(super) fn notes_reading_again(&mut self, seq: i64) -> bool {
        let awaited = self.awaited.get_mut(&seq);
        awaited.map(|awaited| awaited.read_again = true).is_some()
    }

    /// Drops the events of a key that wait in memory above `seq`, and returns them: they are left to the table.
    pub(super) fn drop_above(&mut self, hash: KeyHash, seq: i64) -> Vec<i64> {
        if let Some(backlogged) = self.backlogged.remove(&hash)
            && backlogged.floor < seq
        {
            // Its rows that were to be read apart, those below this event as well, are read with the others now.
            self.free_from(backlogged.floor.saturating_add(1));
        }
        let Some(key) = self.keys.get_mut(&hash) else { return Vec::new() };
        let above = key.waiting.partition_point(|item| item.row.seq < seq);
        let dropped: Vec<i64> = key.waiting.drain(above..).map(|item| item.row.seq).collect();
        self.queued -= dropped.len();
        dropped
    }

    /// Drops the events of classes that are `unwanted`, and those behind them in their keys.
    pub(super) fn drop_from(&mut self, unwanted: impl Fn(Class) -> bool) {
        for key in self.keys.values_mut() {
            let kept = key.waiting.iter().position(|item| unwanted(item.class)).unwrap_or(key.waiting.len());
            self.queued -= key.waiting.drain(kept..).len();
        }
        let queued = &mut self.queued;
        self.ready.retain(|ready| match ready {
            Ready::Lone(item) if unwanted(item.class) => {
                *queued -= 1;
                false
            }
            _ => true,
        });
    }

    /// Lists keys anew whose first events were dropped.
    pub(super) fn list_anew(&mut self) {
        self.keys.iter_mut().for_each(|(hash, key)| key.list(*hash, &mut self.ready));
    }

    /// The next fetch has to read the table from this row on.
    pub(super) fn free_from(&mut self, seq: i64) {
        self.freed = Some(self.freed.map_or(seq, |other| other.min(seq)));
    }

    /// With the next fetch the table answers for a blocked key, unless a verdict on it is still to be recorded; says which.
    pub(super) fn table_answers_for(&mut self, hash: KeyHash) -> bool {
        let blocked = self.keys.get_mut(&hash).and_then(|key| key.blocked.as_mut());
        let Some(blocked) = blocked.filter(|blocked| blocked.unrecorded == 0) else { return false };
        if planted_bug::is_active("key_unblocked_during_a_fetch") {
            return self.keys.get_mut(&hash).and_then(|key| key.blocked.take()).is_some();
        }
        blocked.fetch = self.fetch;
        self.recorded.push_back((self.fetch, hash));
        true
    }

    /// True if nothing of the key may be read, since the table does not know yet for which event it has to wait.
    pub(super) fn is_blocked(&self, hash: KeyHash) -> bool {
        let blocked = self.keys.get(&hash).and_then(|key| key.blocked.as_ref());
        blocked.is_some_and(|blocked| blocked.unrecorded > 0)
    }

    fn is_blocked_at(&self, hash: KeyHash, seq: i64) -> bool {
        self.keys.get(&hash).is_some_and(|key| key.is_blocked_at(seq))
    }

    /// Marks a row that was read if it is among those that the last owner of its partition may have died of.
    fn suspect(&mut self, item: &mut Item, partition: u8) {
        let Suspected { partitions, rows } = &mut self.suspected;
        if rows.left == 0 || !partitions.contains(partition) {
            return;
        }
        item.prior_attempt = rows.check(item.row.seq, item.prior_attempt);
        if rows.left == 0 {
            self.suspected = Suspected::default();
        }
    }

    /// Takes the first ready item that may begin.
    pub(super) fn next(&mut self, deliverer: &DeliveringNode, shares: &FairShares) -> Option<Item> {
        loop {
            let dispatch_key = self.ready.first(|key| shares.may_dispatch(key))?;
            // A dispatch key may have had nothing but keys whose events were dropped.
            if let Some((_, ready)) = self.pop_ready(dispatch_key) {
                return self.run(ready, deliverer);
            }
        }
    }

    /// Takes the first ready item of a dispatch key.
    pub(super) fn pop_ready(&mut self, dispatch_key: DispatchKey) -> Option<(u64, Ready)> {
        loop {
            let (number, ready) = self.ready.pop(dispatch_key)?;
            let Ready::Key(hash) = ready else { return Some((number, ready)) };
            let Some(key) = self.keys.get_mut(&hash) else { continue };
            if !key.waiting.is_empty() {
                return Some((number, ready));
            }
            // Its events were dropped.
            key.listed = None;
            if key.is_idle() {
                self.keys.remove(&hash);
            }
        }
    }

    /// The event that [`run`](Self::run) would return.
    pub(super) fn item_of<'a>(&'a self, ready: &'a Ready) -> Option<&'a Item> {
        match ready {
            Ready::Lone(item) => Some(item),
            Ready::Key(hash) => self.keys.get(hash).and_then(|key| key.waiting.front()),
        }
    }

    /// From now on, what was ready runs.
    pub(super) fn run(&mut self, ready: Ready, deliverer: &DeliveringNode) -> Option<Item> {
        let (mut item, key) = match ready {
            Ready::Lone(item) => (item, None),
            Ready::Key(hash) => {
                let key = self.keys.get_mut(&hash)?;
                (key.listed, key.running) = (None, true);
                let item = key.waiting.pop_front()?;
                key.wait_for(item.class);
                (item, Some(hash))
            }
        };
        self.queued -= 1;
        let head = item.row.status == Status::Retry;
        let partition = partition_of(&item.row);
        let own = self.deliverers.entry(partition).or_insert_with(|| Arc::new(deliverer.of_a_partition()));
        item.deliverer = Some(Arc::clone(own));
        let running = Running { key, partition, head, stop_requested: own.lost.is_cancelled() };
        self.running.insert(item.row.seq, running);
        Some(item)
    }

    /// No event of the key runs any more.
    pub(super) fn released(&mut self, hash: KeyHash) {
        let Some(key) = self.keys.get_mut(&hash) else { return };
        key.running = false;
        if let Some(class) = key.waiting.front().map(|item| item.class) {
            key.wait_for(class);
            key.list(hash, &mut self.ready);
        }
        if key.is_idle() {
            self.keys.remove(&hash);
        }
    }
}

/// The reader stamps rows before it queues them.
pub(super) fn partition_of(row: &Row) -> u8 {
    row.partition.unwrap_or_default()
}

/// The key by which an event keeps its order.
pub(in crate::queue) fn hash_of(row: &Row) -> Option<KeyHash> {
    let key = row.event.key()?;
    Some(hash_parts(row.handler.as_deref(), key))
}

pub(super) fn hash(key: &OrderKey) -> KeyHash {
    hash_parts(key.handler.as_deref(), &key.key)
}

fn hash_parts(handler: Option<&str>, key: &str) -> KeyHash {
    KEYS.hash_one((handler, key))
}
