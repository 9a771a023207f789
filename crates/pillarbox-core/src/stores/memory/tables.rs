use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::MemoryError;
use super::nodes::Nodes;
use super::pending::Pending;
use super::row::Stored;
use crate::clock::{Clock, Timestamp};
use crate::event::EventId;
use crate::ownership::NodeId;
use crate::settle::{Change, Status, Verdict};
use crate::store::{Counts, Fetch, Fetched};
use crate::write::NewRow;

/// The tables behind all handles of a store, and the database's clock.
///
/// One lock guards everything. Its sections are short and never span an await, so a call that is dropped has either
/// happened as a whole or not at all.
#[derive(Debug)]
pub(super) struct Tables {
    clock: Arc<dyn Clock>,
    state: Mutex<State>,
}

impl Tables {
    pub(super) fn new(clock: Arc<dyn Clock>) -> Self {
        Self { clock, state: Mutex::default() }
    }

    pub(super) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing inside a section panics half-way through a change, so a poisoned lock still guards consistent tables.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What is in the tables.
#[derive(Debug, Default)]
pub(super) struct State {
    pub(super) nodes: Nodes,
    rows: BTreeMap<i64, Stored>,
    pending: Pending,
    /// The unique index, rows of open transactions included.
    ids: HashMap<EventId, i64>,
    counts: Counts,
    last_seq: i64,
}

impl State {
    /// Gives `rows` their `seq`, as a sequence does: whatever becomes of them, no other row gets the same.
    pub(super) fn reserve(&mut self, rows: &[NewRow]) -> Result<Vec<i64>, MemoryError> {
        let mut seqs = Vec::with_capacity(rows.len());
        for (index, row) in rows.iter().enumerate() {
            let id = row.envelope().id();
            let Entry::Vacant(vacant) = self.ids.entry(id.clone()) else {
                self.release(&rows[..index]);
                return Err(MemoryError::DuplicateEvent { id: id.clone() });
            };
            self.last_seq += 1;
            vacant.insert(self.last_seq);
            seqs.push(self.last_seq);
        }
        Ok(seqs)
    }

    /// Forgets the ids of rows that were never committed.
    pub(super) fn release<'a>(&mut self, rows: impl IntoIterator<Item = &'a NewRow>) {
        for row in rows {
            self.ids.remove(row.envelope().id());
        }
    }

    /// Makes reserved rows visible.
    pub(super) fn commit(&mut self, rows: impl IntoIterator<Item = (i64, Stored)>) {
        for (seq, row) in rows {
            self.pending.insert(seq, row.available_at);
            *count(&mut self.counts, row.status) += 1;
            self.rows.insert(seq, row);
        }
    }

    pub(super) fn fetch(&self, fetch: &Fetch, now: Timestamp) -> Fetched {
        let found = self.pending.find(fetch, now);
        let rows = found.seqs.iter().filter_map(|seq| self.rows.get(seq).map(|row| row.read(*seq)));
        Fetched { rows: rows.collect(), next_due: found.next_due }
    }

    /// Records the verdicts that apply and returns the others.
    pub(super) fn settle(&mut self, node: &NodeId, verdicts: &[Verdict], now: Timestamp) -> Vec<i64> {
        let owner = self.nodes.owner() == Some(node);
        let refused = verdicts.iter().filter(|verdict| !(owner && self.record(verdict, now)));
        refused.map(|verdict| verdict.seq).collect()
    }

    fn record(&mut self, verdict: &Verdict, now: Timestamp) -> bool {
        let next = verdict.change.status();
        let Some(row) = self.rows.get_mut(&verdict.seq) else { return false };
        let applies = row.status.is_pending() && row.status.can_become(next);
        if !applies || row.attempts != verdict.expected_attempts {
            return false;
        }
        self.pending.remove(verdict.seq, row.available_at);
        *count(&mut self.counts, row.status) -= 1;
        *count(&mut self.counts, next) += 1;
        row.status = next;
        match &verdict.change {
            Change::Done => {
                row.last_error = None;
                row.done_at = Some(now);
            }
            Change::Retry { attempts, delay, error } => {
                row.attempts = *attempts;
                row.available_at = Some(now.plus(*delay));
                if error.is_some() {
                    row.last_error.clone_from(error);
                }
                self.pending.insert(verdict.seq, row.available_at);
            }
            Change::Dead { attempts, error } => {
                row.attempts = *attempts;
                row.last_error = Some(error.clone());
                row.done_at = Some(now);
            }
        }
        true
    }

    pub(super) fn make_due(&mut self, seq: i64, now: Timestamp) -> bool {
        let Some(row) = self.rows.get_mut(&seq).filter(|row| row.status.is_pending() && row.available_at.is_some())
        else {
            return false;
        };
        self.pending.remove(seq, row.available_at);
        row.available_at = Some(now);
        self.pending.insert(seq, row.available_at);
        true
    }

    pub(super) fn counts(&self) -> Counts {
        self.counts
    }

    pub(super) fn rows(&self) -> &BTreeMap<i64, Stored> {
        &self.rows
    }

    /// The committed row of an event.
    pub(super) fn row_of(&self, id: &EventId) -> Option<(i64, &Stored)> {
        let seq = *self.ids.get(id)?;
        self.rows.get(&seq).map(|row| (seq, row))
    }

    pub(super) fn row_mut(&mut self, seq: i64) -> Option<&mut Stored> {
        self.rows.get_mut(&seq)
    }
}

fn count(counts: &mut Counts, status: Status) -> &mut u64 {
    match status {
        Status::New => &mut counts.new,
        Status::Done => &mut counts.done,
        Status::Retry => &mut counts.retry,
        Status::Dead => &mut counts.dead,
    }
}
