use std::ops::RangeInclusive;
use std::time::Duration;

use pillarbox_core::planted_bug;
use pillarbox_core::store::OrderKey;
use tokio::time::Instant;

use super::KeyedQueue;
use super::state::{KeyHash, State, hash};
use crate::queue::{Class, FairShares};

/// As long as so many keys are backlogged, or more if there are more workers, nothing else is read: every fetch that is about others
/// has to name them all.
pub(super) const MAX_BACKLOGGED: usize = 1000;
/// The time for which the events of one read last a key, where memory has the room: many times the length of a fetch.
pub(super) const REFILL_TIME: Duration = Duration::from_millis(100);

/// A key of which the table has more than memory holds.
#[derive(Debug)]
pub(super) struct Backlogged {
    pub(super) key: OrderKey,
    pub(super) partition: u8,
    /// Everything of the key at or below it is known: it is or was in memory, or waits behind a head.
    pub(super) floor: i64,
    /// The number of its events that may wait in memory.
    pub(super) share: usize,
    /// The time at which it was last read, or became backlogged; `in_memory` of its events have waited in memory since.
    pub(super) since: Instant,
    pub(super) in_memory: usize,
    /// The lowest event that the fetch under way brought in vain.
    pub(super) refused: Option<i64>,
    /// The class of the event that was refused last.
    pub(super) class: Class,
}

impl Backlogged {
    /// The number of its events that will be used up within [`REFILL_TIME`] at its pace so far, with `waiting` of them left now.
    fn pace(&self, waiting: usize, now: Instant) -> usize {
        let used = self.in_memory.saturating_sub(waiting) as u128;
        let elapsed = now.saturating_duration_since(self.since).as_micros().max(1);
        usize::try_from(used * REFILL_TIME.as_micros() / elapsed).unwrap_or(usize::MAX)
    }
}

/// The next read of backlogged keys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Refill {
    pub(crate) keys: Vec<OrderKey>,
    /// A run of this node's partitions in which they all are.
    pub(crate) partitions: RangeInclusive<u8>,
    /// Everything of these keys at or below it is known.
    pub(crate) floor: i64,
    /// The number of their events that are wanted.
    pub(crate) wanted: usize,
}

impl KeyedQueue {
    /// The backlogged keys.
    pub(crate) fn backlogged(&self) -> Vec<OrderKey> {
        self.state.lock().backlogged.values().map(|backlogged| backlogged.key.clone()).collect()
    }

    /// Plans the next read of backlogged keys: of those of which little is left, and of all others that have used up some,
    /// since a read that is worth a statement is worth more rows of it. At most `most` rows, and as many keys.
    ///
    /// A key gets what will last it for a while by its pace: a slow one no more than its share of the memory, a fast one of
    /// what is left of half of the memory. The other half is for the other keys. All keys together get no more than
    /// there is room for: with many backlogged keys, their shares are more than the memory.
    pub(crate) fn refill(&self, most: usize, now: Instant) -> Option<Refill> {
        let mut state = self.state.lock();
        let state = &mut *state;
        let room = self.capacity.saturating_sub(state.queued);
        // Below, it waits until half of the memory is free, of which `pop` tells: a statement for each place costs more than it brings.
        if room < (self.capacity / 4).max(1) {
            return None;
        }
        let most = most.min(room);
        let in_need =
            state.backlogged.iter().filter(|(hash, backlogged)| state.needs_refill(**hash, backlogged, &self.shares));
        let (_, neediest) = in_need.min_by_key(|(hash, _)| state.waiting(**hash))?;
        let runs = state.active.runs();
        let partitions = runs.into_iter().find(|run| run.contains(&neediest.partition))?;

        let mut keys = Vec::new();
        for (hash, backlogged) in
            state.backlogged.iter().filter(|(_, backlogged)| partitions.contains(&backlogged.partition))
        {
            if !state.is_blocked(*hash) {
                let waiting = state.waiting(*hash);
                keys.push((waiting, backlogged.pace(waiting, now), *hash));
            }
        }
        let fast = keys.iter().filter(|(waiting, pace, _)| pace > waiting && *pace > self.per_key).count();
        let more = (self.capacity / 2).saturating_sub(state.queued) / fast.max(1);
        keys.sort_unstable_by_key(|(waiting, ..)| *waiting);

        let mut refill = Refill { keys: Vec::new(), partitions, floor: i64::MAX, wanted: 0 };
        for (waiting, pace, hash) in keys {
            let Some(backlogged) = state.backlogged.get_mut(&hash) else { continue };
            let share = pace.clamp(self.per_key, self.per_key.max(waiting.saturating_add(more)));
            if share <= waiting {
                // It has become slower: it needs a refill when half of that is left.
                backlogged.share = share;
            } else if refill.wanted < most {
                (backlogged.share, backlogged.since, backlogged.in_memory, backlogged.refused) =
                    (share, now, waiting, None);
                refill.keys.push(backlogged.key.clone());
                refill.floor = refill.floor.min(backlogged.floor);
                refill.wanted += share - waiting;
            }
        }
        refill.wanted = refill.wanted.min(most);
        (refill.wanted > 0).then_some(refill)
    }

    /// Notes that the rows which a fetch found of backlogged keys are queued: all up to `seen`, or all there are if that
    /// is the highest number. Up to `safe_seq` no row is added any more.
    pub(crate) fn refilled(&self, keys: &[OrderKey], fetch: u64, seen: i64, safe_seq: i64) {
        let mut state = self.state.lock();
        if fetch <= state.assigned_during {
            // None of it was taken.
            return;
        }
        for key in keys {
            let hash = hash(key);
            let Some(backlogged) = state.backlogged.get_mut(&hash) else { continue };
            match backlogged.refused.take().filter(|_| !planted_bug::is_active("refill_skips_what_was_refused")) {
                None if seen == i64::MAX => {
                    state.backlogged.remove(&hash);
                }
                refused => {
                    let taken = refused.map_or(seen, |refused| seen.min(refused.saturating_sub(1)));
                    backlogged.floor = backlogged.floor.max(taken.min(safe_seq));
                }
            }
        }
    }

    /// Something of backlogged keys may be at `seq` that was not there when it was read.
    pub(crate) fn reread_from(&self, seq: i64) {
        for backlogged in self.state.lock().backlogged.values_mut() {
            backlogged.floor = backlogged.floor.min(seq.saturating_sub(1).max(0));
        }
    }
}

impl State {
    /// True if little is left of a backlogged key, and more of it can be read.
    fn needs_refill(&self, hash: KeyHash, backlogged: &Backlogged, shares: &FairShares) -> bool {
        self.waiting(hash) <= backlogged.share / 2
            && !self.is_blocked(hash)
            && (!shares.is_divided() || shares.room_for(self.charged_class(hash, backlogged.class)).is_some())
    }
}
