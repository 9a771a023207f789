use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use tokio::time::Instant;

use crate::claim::Lookout;
use crate::event::Stamp;
use crate::observe::{Counters, Meters, Pulse, Throttle};
use crate::ownership::{Mode, NodeId};
use crate::store::Row;
use crate::write::NewRow;

use super::{Feed, Herald, KeyLanes, Registry, Surplus, Taken};

/// Which committed events are delivered from memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HotPath {
    /// All: while this node delivers, every row is its own.
    All,
    /// Those whose rows were inserted as this node's own; any other may have been claimed by another node.
    Owned,
    /// None: the order of the table is the order of delivery, or nobody delivers here.
    Off,
}

impl HotPath {
    pub(crate) fn of(mode: Mode) -> Self {
        match mode {
            Mode::SingleNode => Self::All,
            Mode::MultiNode => Self::Owned,
            Mode::Partitioned | Mode::Ordered => Self::Off,
        }
    }
}

/// What the writing side knows of the delivering side: where committed events go.
#[derive(Debug)]
pub(crate) struct Intake {
    pub(crate) registry: Registry,
    pub(crate) lookout: Lookout,
    pub(crate) counters: Arc<Counters>,
    pub(crate) meters: Arc<Meters>,
    pub(crate) pulse: Arc<Pulse>,
    pub(crate) stamp: Arc<Stamp>,
    pub(crate) herald: Herald,
    pub(crate) surplus: Surplus,
    hot_path: HotPath,
    hot_capacity: usize,
    dropping: Throttle,
    /// The term under way; `None` while this node owns nothing.
    term: RwLock<Option<Open>>,
}

/// The open side of a term.
#[derive(Debug)]
struct Open {
    feed: Feed,
    node: NodeId,
}

impl Intake {
    pub(crate) fn new(
        hot_path: HotPath,
        hot_capacity: usize,
        wakes_others: bool,
        stamp: Arc<Stamp>,
        counters: Counters,
        meters: Meters,
    ) -> Self {
        Self {
            registry: Registry::default(),
            lookout: Lookout::default(),
            counters: Arc::new(counters),
            meters: Arc::new(meters),
            pulse: Arc::default(),
            stamp,
            herald: Herald::new(wakes_others),
            surplus: Surplus::default(),
            hot_path,
            hot_capacity,
            dropping: Throttle::default(),
            term: RwLock::new(None),
        }
    }

    /// A term of `node` begins: events committed from now on may enter its lanes.
    pub(crate) fn open(&self, feed: Feed, node: NodeId) {
        let mut term = self.term.write().unwrap_or_else(PoisonError::into_inner);
        self.registry.clear();
        self.surplus.clear();
        *term = Some(Open { feed, node });
    }

    /// A term ends: no event enters its lanes after this returns.
    pub(crate) fn close(&self) {
        *self.term.write().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// A row that is held here, and this node's own in the table, is not delivered now: any node may claim it.
    pub(crate) fn hand_back(&self, seq: i64) {
        if !self.surplus.push(seq) {
            // It finds the row by itself, as it finds whatever it forgot.
            self.registry.release([seq]);
        }
    }

    pub(crate) fn depths(&self) -> (usize, usize) {
        let term = self.term.read().unwrap_or_else(PoisonError::into_inner);
        term.as_ref().map_or((0, 0), |open| open.feed.depths())
    }

    /// Makes rows this node's own before they are inserted, as many as the hot lane could take, where that is what lets
    /// them be delivered from memory. Only for a transaction whose end will be reported.
    pub(crate) fn claim_for_memory(&self, rows: Vec<NewRow>) -> Vec<NewRow> {
        if self.hot_path != HotPath::Owned {
            return rows;
        }
        let term = self.term.read().unwrap_or_else(PoisonError::into_inner);
        let Some(Open { node, feed }) = term.as_ref() else { return rows };
        // What the lane has no room for now is left for whichever node claims it first.
        let mut room = self.hot_capacity.saturating_sub(feed.depths().0);
        let own = |row: NewRow| {
            if row.available_at().is_some() || room == 0 {
                return row;
            }
            room -= 1;
            row.owned_by(node)
        };
        rows.into_iter().map(own).collect()
    }

    /// Rows were written in an open transaction. More than the hot lane could ever take are not worth remembering.
    pub(crate) fn announce(&self, rows: &[NewRow], seqs: &[i64]) {
        self.registry.announce(self.hot_candidates(rows, seqs).map(|(_, seq)| seq));
    }

    /// The receipt of these rows is gone.
    pub(crate) fn forget(&self, seqs: &[i64]) {
        self.registry.forget(seqs);
    }

    /// These rows are committed: those that are not delayed take the hot path as far as there is room.
    pub(crate) fn committed(&self, rows: &[NewRow], seqs: &[i64]) {
        // Held for reading until the rows are in the lane, so that a term cannot end in between and leave them held.
        let term = self.term.read().unwrap_or_else(PoisonError::into_inner);
        // Between two terms, or before the first, nobody takes them from here.
        let (lanes, node) = match term.as_ref() {
            Some(Open { feed: Feed::Lanes(lanes), node }) => (lanes, node),
            Some(Open { feed: Feed::Keys(keys), .. }) => return self.wake_owners(keys, rows, seqs),
            None => {
                self.herald.committed();
                return self.seek(rows, seqs);
            }
        };
        let (mut taken, mut dropped) = (0_u64, 0_u64);
        let since = Instant::now();
        for (row, seq) in self.hot_candidates(rows, seqs) {
            // A row that names an earlier incarnation of this node is not its own any more.
            let named = row.locked_by().is_none_or(|holder| holder == node.as_str());
            if !named {
                continue;
            }
            match self.registry.take_announced(seq) {
                Taken::Now => {}
                Taken::Before => continue,
                // Nobody looks for a row whose commit was going to be reported. If the write came before this term, and
                // the commit after its first look, only this tells the cold path of it.
                Taken::Unknown => {
                    self.lookout.wake_for(seq);
                    continue;
                }
            }
            taken += 1;
            if lanes.push_hot(Arc::new(Row::fresh(row, seq, self.stamp.now())), since) {
                Counters::add(&self.counters.hot, 1);
            } else {
                if row.locked_by().is_some() {
                    self.hand_back(seq);
                } else {
                    self.registry.release([seq]);
                    self.lookout.wake_for(seq);
                }
                dropped += 1;
            }
        }
        let delayed = rows.iter().filter(|row| row.available_at().is_some()).count();
        Counters::add(&self.counters.hot_skipped_delayed, delayed as u64);
        // What could not be a candidate is in the table for anybody who claims it, which may be this node, at once.
        let candidates = self.hot_candidates(rows, seqs).count();
        let immediate = rows.iter().zip(seqs).filter(|(row, _)| row.available_at().is_none());
        if let Some((_, seq)) = immediate.clone().nth(candidates) {
            if self.hot_path == HotPath::All {
                dropped += immediate.skip(candidates).count() as u64;
            }
            self.lookout.wake_for(*seq);
        }
        if dropped > 0 {
            Counters::add(&self.counters.hot_dropped, dropped);
            if let Some(events) = self.dropping.report(dropped) {
                tracing::warn!(events, "the hot queue is full; the events are delivered from the table");
            }
        }
        match seqs.first() {
            // Taken by the cold path, the row is no longer sought.
            Some(_) if delayed == 0 && taken == 0 => {}
            Some(first) if delayed == 0 => self.lookout.found(*first),
            _ => self.seek(rows, seqs),
        }
    }

    /// These rows are committed, and the owners of their partitions deliver them: from the table, where they stand in
    /// their order.
    fn wake_owners(&self, keys: &KeyLanes, rows: &[NewRow], seqs: &[i64]) {
        let (mut ours, mut theirs) = (Vec::new(), false);
        for (row, seq) in rows.iter().zip(seqs) {
            if !keys.is_ours(row.partition()) {
                theirs = true;
            } else if row.available_at().is_none() {
                ours.push(*seq);
            }
        }
        if let Some(seq) = ours.first() {
            self.lookout.wake_for(*seq);
            self.lookout.found(*seq);
        }
        if theirs {
            self.herald.committed();
        }
        self.seek_those(
            rows.iter().zip(seqs).filter(|(row, _)| row.available_at().is_some() && keys.is_ours(row.partition())),
        );
    }

    /// These rows may be committed at any time without anybody saying so.
    pub(crate) fn look_for(&self, rows: &[NewRow], seqs: &[i64]) {
        let term = self.term.read().unwrap_or_else(PoisonError::into_inner);
        let theirs = match term.as_ref() {
            Some(Open { feed: Feed::Keys(keys), .. }) => {
                let is_ours = |row: &NewRow| keys.is_ours(row.partition());
                self.seek_those(rows.iter().zip(seqs).filter(|(row, _)| is_ours(row)));
                !rows.iter().all(is_ours)
            }
            open => {
                self.seek(rows, seqs);
                open.is_none()
            }
        };
        if theirs {
            self.herald.wrote();
        }
    }

    fn seek(&self, rows: &[NewRow], seqs: &[i64]) {
        self.seek_those(rows.iter().zip(seqs));
    }

    fn seek_those<'a>(&self, rows: impl Iterator<Item = (&'a NewRow, &'a i64)> + Clone) {
        // All rows of a write become visible together, so the first of each due time stands for the rest.
        if let Some((_, seq)) = rows.clone().find(|(row, _)| row.available_at().is_none()) {
            self.lookout.look_for(*seq, Duration::ZERO);
        }
        let delayed = rows.filter(|(row, _)| row.available_at().is_some());
        if let Some((row, seq)) = delayed.min_by_key(|(row, _)| row.available_at()) {
            self.lookout.look_for(*seq, row.envelope().available_at().since(self.stamp.now()));
        }
    }

    fn hot_candidates<'a>(
        &self,
        rows: &'a [NewRow],
        seqs: &'a [i64],
    ) -> impl Iterator<Item = (&'a NewRow, i64)> + use<'a> {
        let hot_path = self.hot_path;
        let may = move |row: &NewRow| match hot_path {
            HotPath::All => row.available_at().is_none(),
            HotPath::Owned => row.locked_by().is_some(),
            HotPath::Off => false,
        };
        rows.iter().zip(seqs.iter().copied()).filter(move |(row, _)| may(row)).take(self.hot_capacity)
    }
}
