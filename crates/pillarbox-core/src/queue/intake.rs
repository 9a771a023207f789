use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use crate::claim::Lookout;
use crate::event::Stamp;
use crate::observe::{Counters, Throttle};
use crate::store::Row;
use crate::write::NewRow;

use super::{Lanes, Registry};

/// What the writing side knows of the delivering side: where committed events go.
#[derive(Debug)]
pub(crate) struct Intake {
    pub(crate) registry: Registry,
    pub(crate) lookout: Lookout,
    pub(crate) counters: Arc<Counters>,
    pub(crate) stamp: Arc<Stamp>,
    hot_capacity: usize,
    dropping: Throttle,
    /// The lanes of the term under way; `None` while this node owns nothing.
    lanes: RwLock<Option<Arc<Lanes>>>,
}

impl Intake {
    pub(crate) fn new(hot_capacity: usize, counters: Arc<Counters>, stamp: Arc<Stamp>) -> Self {
        Self {
            registry: Registry::default(),
            lookout: Lookout::default(),
            counters,
            stamp,
            hot_capacity,
            dropping: Throttle::default(),
            lanes: RwLock::new(None),
        }
    }

    /// A term begins: events committed from now on may enter its lanes.
    pub(crate) fn open(&self, lanes: Arc<Lanes>) {
        let mut current = self.lanes.write().unwrap_or_else(PoisonError::into_inner);
        self.registry.clear();
        *current = Some(lanes);
    }

    /// A term ends: no event enters its lanes after this returns.
    pub(crate) fn close(&self) {
        *self.lanes.write().unwrap_or_else(PoisonError::into_inner) = None;
    }

    pub(crate) fn depths(&self) -> (usize, usize) {
        self.lanes.read().unwrap_or_else(PoisonError::into_inner).as_ref().map_or((0, 0), |lanes| lanes.depths())
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
        let lanes = self.lanes.read().unwrap_or_else(PoisonError::into_inner);
        // Between two terms, or before the first, nobody takes them from here.
        let Some(lanes) = lanes.as_ref() else { return self.look_for(rows, seqs) };
        let (mut taken, mut dropped) = (0_u64, 0_u64);
        for (row, seq) in self.hot_candidates(rows, seqs) {
            if !self.registry.take_announced(seq) {
                continue;
            }
            taken += 1;
            if lanes.push_hot(Arc::new(Row::fresh(row.envelope(), seq, self.stamp.now()))) {
                Counters::add(&self.counters.hot, 1);
            } else {
                self.registry.release([seq]);
                self.lookout.wake_for(seq);
                dropped += 1;
            }
        }
        let delayed = rows.iter().filter(|row| row.available_at().is_some()).count();
        Counters::add(&self.counters.hot_skipped_delayed, delayed as u64);
        let immediate = rows.iter().zip(seqs).filter(|(row, _)| row.available_at().is_none());
        if let Some((_, seq)) = immediate.clone().nth(self.hot_capacity) {
            dropped += immediate.skip(self.hot_capacity).count() as u64;
            self.lookout.wake_for(*seq);
        }
        if dropped > 0 {
            Counters::add(&self.counters.hot_dropped, dropped);
            if let Some(events) = self.dropping.report(dropped) {
                tracing::warn!(events, "the hot queue is full; the events are delivered from the table");
            }
        }
        match seqs.first() {
            // Taken by the cold path, the row is no longer sought; announced before this term, it has to be.
            Some(_) if delayed == 0 && taken == 0 => {}
            Some(first) if delayed == 0 => self.lookout.found(*first),
            _ => self.look_for(rows, seqs),
        }
    }

    /// These rows may be committed at any time without anybody saying so.
    pub(crate) fn look_for(&self, rows: &[NewRow], seqs: &[i64]) {
        // All rows of a write become visible together, so the first of each due time stands for the rest.
        let now = rows.iter().position(|row| row.available_at().is_none());
        if let Some(seq) = now.and_then(|index| seqs.get(index)) {
            self.lookout.look_for(*seq, Duration::ZERO);
        }
        let delayed = rows.iter().zip(seqs).filter(|(row, _)| row.available_at().is_some());
        if let Some((row, seq)) = delayed.min_by_key(|(row, _)| row.available_at()) {
            self.lookout.look_for(*seq, row.envelope().available_at().since(self.stamp.now()));
        }
    }

    fn hot_candidates<'a>(
        &self,
        rows: &'a [NewRow],
        seqs: &'a [i64],
    ) -> impl Iterator<Item = (&'a NewRow, i64)> + use<'a> {
        let immediate = rows.iter().zip(seqs.iter().copied()).filter(|(row, _)| row.available_at().is_none());
        immediate.take(self.hot_capacity)
    }
}
