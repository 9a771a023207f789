mod settle;

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pillarbox_core::clock::{Clock, Timestamp};
use pillarbox_core::event::EventId;
use pillarbox_core::hash::{HashMap, HashSet};
use pillarbox_core::ownership::{CRASHED, DIED, NodeId, begun_by};
use pillarbox_core::planted_bug;
use pillarbox_core::row::Status;
use pillarbox_core::store::{
    CANCELLED, Counts, Fetch, FetchScope, Fetched, Heads, History, OrderKey, Proof, RowId, Writers,
};
use pillarbox_core::write::NewRow;
use tokio::sync::{Notify, watch};

use super::MemoryError;
use super::audit::Audit;
use super::heads::HeadIndex;
use super::inbox::Inbox;
use super::nodes::{Member, Nodes};
use super::pauses::Pauses;
use super::pending::{Found, Pending};
use super::row::Stored;
use super::unique::UniqueKey;

/// The tables behind all handles of a store, and the database's clock.
///
/// One lock guards everything. Its sections are short and never span an await, so a call that is dropped has either
/// happened as a whole or not at all.
#[derive(Debug)]
pub(super) struct Tables {
    clock: Arc<dyn Clock>,
    state: Mutex<State>,
    /// The channel that wakes the nodes of other handles.
    pub(super) notifications: watch::Sender<u64>,
    /// Told of the end of each transaction that others may wait for.
    pub(super) ended: Notify,
    /// The number of transactions that have received a message.
    transactions: AtomicU64,
    /// The number of times that the tables have gone back, and the number of times that their connections have shown it.
    returns: AtomicU64,
    changes: AtomicU64,
    /// The number of times that their connections were lost.
    losses: AtomicU64,
}

impl Tables {
    pub(super) fn new(clock: Arc<dyn Clock>) -> Self {
        let [transactions, returns, changes, losses] = [const { AtomicU64::new(0) }; 4];
        let (state, notifications, ended) = (Mutex::default(), watch::Sender::new(0), Notify::new());
        Self { clock, state, notifications, ended, transactions, returns, changes, losses }
    }

    /// Goes back to an earlier state. Open transactions are lost with all later changes. If it `shows`, the connections
    /// see another server than before.
    pub(super) fn go_back(&self, state: &State, shows: bool) {
        let mut now = self.lock();
        let read_point =
            if planted_bug::is_active("read_point_survives_a_failover") { now.read_point } else { state.read_point };
        let inbox = state.inbox.clone().lose_transactions();
        *now = State { open: BTreeSet::new(), read_point, inbox, ..state.clone() };
        now.forget_open_keys();
        self.returns.fetch_add(1, Ordering::AcqRel);
        self.changes.fetch_add(u64::from(shows), Ordering::AcqRel);
        drop(now);
        self.ended.notify_waiters();
    }

    /// Loses all rows, and the connections with them. The nodes stay as they are.
    pub(super) fn crash(&self) {
        let mut now = self.lock();
        let (nodes, interventions, pauses) = (now.nodes.clone(), now.interventions, now.pauses.clone());
        *now = State { nodes, interventions, pauses, ..State::default() };
        self.returns.fetch_add(1, Ordering::AcqRel);
        self.losses.fetch_add(1, Ordering::AcqRel);
        drop(now);
        self.ended.notify_waiters();
    }

    /// The number of a transaction that receives a message.
    pub(super) fn next_transaction(&self) -> u64 {
        self.transactions.fetch_add(1, Ordering::Relaxed)
    }

    /// The number of times that the tables have gone back.
    pub(super) fn returns(&self) -> u64 {
        self.returns.load(Ordering::Acquire)
    }

    pub(super) fn history(&self) -> History {
        let [changes, losses] = [&self.changes, &self.losses].map(|count| count.load(Ordering::Acquire));
        History { changes, losses, server: None }
    }

    pub(super) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing inside a section panics half-way through a change, so a poisoned lock still guards consistent tables.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An entry of the unique index: that an event has a row for a handler, or for none in particular.
#[derive(Debug, Clone)]
struct Taken {
    handler: Option<Box<str>>,
    seq: i64,
}

/// The contents of the tables.
#[derive(Debug, Clone, Default)]
pub(super) struct State {
    pub(super) nodes: Nodes,
    rows: BTreeMap<i64, Stored>,
    pending: Pending,
    heads: HeadIndex,
    /// Transactions that have inserted rows and are still open, by the first `seq` of each.
    open: BTreeSet<i64>,
    /// The unique index, rows of open transactions included.
    ids: HashMap<EventId, Vec<Taken>>,
    /// The rows that have unique keys, those of open transactions included.
    pub(super) unique: HashMap<UniqueKey, i64>,
    counts: Counts,
    pub(super) inbox: Inbox,
    pub(super) pauses: Pauses,
    pub(super) audit: Audit,
    last_seq: i64,
    /// The number of times that operators have replayed, discarded or purged DEAD rows.
    interventions: i64,
    /// No plain row is pending at or below it, and none can be committed there any more.
    read_point: i64,
    /// The proof of the next read point.
    proof: Option<Proof>,
}

impl State {
    /// Gives `rows` their `seq`, as a sequence does: no other row gets the same, even after a rollback.
    pub(super) fn reserve(&mut self, rows: &[NewRow]) -> Result<Vec<i64>, MemoryError> {
        let mut seqs = Vec::with_capacity(rows.len());
        for (index, row) in rows.iter().enumerate() {
            let id = row.envelope().id();
            let taken = self.ids.entry(id.clone()).or_default();
            if taken.iter().any(|other| other.handler.as_deref() == row.handler()) {
                self.release(&rows[..index]);
                return Err(MemoryError::DuplicateEvent { id: id.clone() });
            }
            self.last_seq += 1;
            if row.unique_key().is_some() {
                self.unique.extend(UniqueKey::of(row).map(|key| (key, self.last_seq)));
            }
            taken.push(Taken { handler: row.handler().map(Box::from), seq: self.last_seq });
            seqs.push(self.last_seq);
        }
        Ok(seqs)
    }

    /// Forgets the ids of rows that were never committed.
    pub(super) fn release<'a>(&mut self, rows: impl IntoIterator<Item = &'a NewRow>) {
        for row in rows {
            self.free(row);
            if let Some(key) = UniqueKey::of(row) {
                self.unique.remove(&key);
            }
        }
    }

    /// True if there is a row of this event for this handler, that of an open transaction included.
    pub(super) fn has(&self, row: &NewRow) -> bool {
        let taken = self.ids.get(row.envelope().id());
        taken.is_some_and(|taken| taken.iter().any(|other| other.handler.as_deref() == row.handler()))
    }

    /// Forgets that there is a row of this event for this handler.
    fn free(&mut self, row: &NewRow) {
        let Entry::Occupied(mut entry) = self.ids.entry(row.envelope().id().clone()) else { return };
        entry.get_mut().retain(|taken| taken.handler.as_deref() != row.handler());
        if entry.get().is_empty() {
            entry.remove();
        }
    }

    /// Makes reserved rows visible.
    pub(super) fn commit(&mut self, rows: impl IntoIterator<Item = (i64, Stored)>) {
        for (seq, row) in rows {
            self.pending.insert(seq, row.due_at());
            *count(&mut self.counts, row.status) += 1;
            self.rows.insert(seq, row);
        }
    }

    /// Notes that a transaction, whose first row is `seq`, has written and is open.
    pub(super) fn transaction_writes(&mut self, seq: i64) {
        self.open.insert(seq);
    }

    pub(super) fn transaction_ended(&mut self, first: i64) {
        self.open.remove(&first);
    }

    pub(super) fn writers(&self) -> Writers {
        let highest = self.rows.last_key_value().map_or(0, |(seq, _)| *seq);
        // Transactions above `highest` too: deleted rows may have lowered it since a node began to wait for them.
        let open = self.open.iter().map(i64::to_string).collect();
        Writers { highest, open: Some(open), prepared: Vec::new() }
    }

    pub(super) fn fetch(&self, fetch: &Fetch, now: Timestamp) -> Fetched {
        let Some(scope) = &fetch.scope else {
            let found = self.pending.find(fetch, now, |seq| self.is_wanted(fetch, seq));
            return self.read(&found, fetch.max_bytes);
        };
        let without: HashSet<&OrderKey> = scope.without.iter().collect();
        let only: HashSet<&OrderKey> = scope.only.iter().collect();
        let is_wanted = |seq| self.is_wanted(fetch, seq) && self.is_in(scope, &without, &only, seq);
        let found = self.pending.find(fetch, now, is_wanted);
        let has_heads = scope.heads != Heads::None && self.counts.retry + self.counts.dead > 0;
        let lease = scope.node.as_ref().and_then(|node| self.nodes.members.get(node)).map(Member::mark);
        Fetched { interventions: self.interventions, has_heads, lease, ..self.read(&found, fetch.max_bytes) }
    }

    /// Raises the read point to where the table is complete, or to the first row that waits there.
    pub(super) fn raise_read_point(&mut self) {
        let writers = self.writers();
        let highest = writers.highest;
        let mut complete = Proof::advance(&mut self.proof, writers);
        if planted_bug::is_active("read_point_ignores_open_transactions") {
            complete = Some(highest);
        }
        let Some(complete) = complete else { return };
        let is_plain = |seq: &i64| self.rows.get(seq).is_some_and(Stored::is_plain);
        let first = self.pending.ready(self.read_point, complete).find(is_plain);
        self.read_point = first.map_or(complete, |seq| seq - 1).max(self.read_point);
    }

    /// True if the row is not below the read point, and neither its type nor its handler is to be left out.
    fn is_wanted(&self, fetch: &Fetch, seq: i64) -> bool {
        if seq <= self.read_point && self.rows.get(&seq).is_some_and(Stored::is_plain) {
            return false;
        }
        let Fetch { without_types, without_handlers, .. } = fetch;
        let is_held = |row: &Stored| {
            without_types.iter().any(|held| **held == *row.event.envelope().event_type())
                || row.handler.as_ref().is_some_and(|handler| without_handlers.contains(handler))
        };
        (without_types.is_empty() && without_handlers.is_empty()) || !self.rows.get(&seq).is_some_and(is_held)
    }

    fn is_in(&self, scope: &FetchScope, without: &HashSet<&OrderKey>, only: &HashSet<&OrderKey>, seq: i64) -> bool {
        let Some(row) = self.rows.get(&seq) else { return false };
        if !row.partition.is_none_or(|partition| scope.partitions.contains(&partition)) {
            return false;
        }
        match row.order_key() {
            None => only.is_empty(),
            Some(key) => {
                (only.is_empty() || only.contains(&key))
                    && !without.contains(&key)
                    && !self.heads.block(seq, &key, scope.heads)
            }
        }
    }

    /// Takes due rows that are free for `node`, or its own.
    pub(super) fn claim(&mut self, node: &NodeId, fetch: &Fetch, now: Timestamp) -> Fetched {
        if !self.nodes.members.contains_key(node) {
            return Fetched::default();
        }
        let free = |seq| {
            self.rows.get(&seq).is_some_and(|row: &Stored| match row.locked_by.as_deref() {
                None | Some(DIED | CRASHED) => true,
                Some(_) if planted_bug::is_active("claim_takes_what_others_hold") => true,
                Some(holder) => is_held_by(holder, node),
            })
        };
        let fetched = {
            let found = self.pending.find(fetch, now, |seq| self.is_wanted(fetch, seq) && free(seq));
            self.read(&found, fetch.max_bytes)
        };
        for row in &fetched.rows {
            if let Some(stored) = self.rows.get_mut(&row.seq()) {
                let crashed = stored.locked_by.as_deref().is_some_and(|holder| holder.ends_with(CRASHED));
                stored.locked_by = Some(if crashed { begun_by(node).into() } else { node.as_str().into() });
            }
        }
        fetched
    }

    /// Reads rows of each of the two kinds up to the one that reaches `max_bytes`.
    fn read(&self, found: &Found, max_bytes: usize) -> Fetched {
        let mut rows = Vec::with_capacity(found.ready.len() + found.due.len());
        let mut truncated = false;
        for kind in [&found.ready, &found.due] {
            let mut bytes = 0;
            for (seq, row) in kind.iter().filter_map(|seq| Some((*seq, self.rows.get(seq)?))) {
                rows.push(row.read(seq));
                bytes += row.event.envelope().content_bytes();
                if bytes >= max_bytes {
                    truncated = true;
                    break;
                }
            }
        }
        Fetched { rows, truncated, next_due: found.next_due.filter(|_| !truncated), ..Fetched::default() }
    }

    /// Changes a row, and its entries in the indexes and the counts.
    fn change(&mut self, seq: i64, change: impl FnOnce(&mut Stored)) {
        let Some(row) = self.rows.get_mut(&seq) else { return };
        self.pending.remove(seq, row.due_at());
        self.heads.remove(seq, row);
        *count(&mut self.counts, row.status) -= 1;
        change(row);
        *count(&mut self.counts, row.status) += 1;
        self.heads.insert(seq, row);
        if row.status.is_pending() {
            self.pending.insert(seq, row.due_at());
        }
    }

    /// Writes partitions into rows that have none.
    pub(super) fn assign_partitions(&mut self, rows: &[(RowId, u8)]) {
        for (id, partition) in rows {
            if let Some(row) = self.rows.get_mut(&id.seq).filter(|row| row.is(id)) {
                row.partition.get_or_insert(*partition);
            }
        }
    }

    /// Takes the due time from pending rows whose time has come.
    pub(super) fn promote_due(&mut self, rows: &[RowId], now: Timestamp) {
        for id in rows {
            let is_ripe =
                |row: &Stored| row.is(id) && row.status.is_pending() && row.available_at.is_some_and(|at| at <= now);
            if self.rows.get(&id.seq).is_some_and(is_ripe) {
                // A NEW row stays one that was delayed: the read point may have passed it.
                self.change(id.seq, |row| {
                    let before = Timestamp::from_micros(row.created_at.as_micros().saturating_sub(1));
                    row.available_at = (row.status == Status::New).then_some(before);
                });
            }
        }
    }

    pub(super) fn identify(&self, seqs: &[i64]) -> Vec<RowId> {
        seqs.iter().filter_map(|seq| self.rows.get(seq).map(|row| row.id(*seq))).collect()
    }

    pub(super) fn set_handler(&mut self, seq: i64, handler: &str) -> bool {
        self.change(seq, |row| row.handler = Some(handler.into()));
        self.rows.contains_key(&seq)
    }

    pub(super) fn make_due(&mut self, seq: i64, now: Timestamp) -> bool {
        let has_due_time = |row: &Stored| row.status.is_pending() && row.available_at.is_some();
        if !self.rows.get(&seq).is_some_and(has_due_time) {
            return false;
        }
        self.change(seq, |row| {
            row.available_at = Some(now);
            // A delay ends after the creation.
            row.created_at = row.created_at.min(Timestamp::from_micros(now.as_micros().saturating_sub(1)));
        });
        true
    }

    /// Deletes a row.
    pub(super) fn remove(&mut self, seq: i64) {
        let Some(row) = self.rows.remove(&seq) else { return };
        self.pending.remove(seq, row.due_at());
        self.heads.remove(seq, &row);
        self.free(&row.event);
        if let Some(key) = UniqueKey::of(&row.event).filter(|_| !row.gave_up_key) {
            self.unique.remove(&key);
        }
        *count(&mut self.counts, row.status) -= 1;
    }

    /// Makes a DEAD row NEW.
    pub(super) fn revive(&mut self, seq: i64) {
        self.change(seq, |row| {
            (row.status, row.attempts, row.replays) = (Status::New, 0, row.replays.saturating_add(1));
            (row.available_at, row.done_at, row.last_error, row.locked_by) = (None, None, None, None);
            row.delivered_as = None;
        });
    }

    /// Ends a row without a delivery.
    pub(super) fn cancel(&mut self, seq: i64, now: Timestamp) {
        self.change(seq, |row| {
            (row.status, row.done_at, row.locked_by) = (Status::Done, Some(now), None);
            row.last_error = Some(CANCELLED.to_owned());
        });
    }

    /// Makes a row due that waits for a time.
    pub(super) fn retry_now(&mut self, seq: i64, now: Timestamp) {
        self.change(seq, |row| {
            if row.status == Status::Retry || row.available_at.is_some_and(|due| due > now) {
                // One at the creation would be none: the read point may have passed the row.
                let at_creation = row.status == Status::New && row.created_at == now;
                let due = Timestamp::from_micros(now.as_micros() - i64::from(at_creation));
                // One that has failed and is due gets no later time: the clock may be set back now. A row that is held in its place gets another with
                // each attempt.
                row.available_at = Some(match (row.status, row.available_at) {
                    (Status::Retry, None) => {
                        Timestamp::from_micros(row.created_at.as_micros() + i64::from(row.attempts))
                    }
                    (Status::Retry, Some(own)) => own.min(due),
                    _ => due,
                });
            }
        });
    }

    /// Changes those of the rows that are such as `is` says, and returns which they were.
    pub(super) fn intervene(
        &mut self,
        seqs: &[i64],
        is: impl Fn(&Stored) -> bool,
        change: impl Fn(&mut Self, i64),
    ) -> Vec<i64> {
        let chosen: BTreeSet<i64> = seqs.iter().filter(|seq| self.rows.get(seq).is_some_and(&is)).copied().collect();
        chosen.iter().for_each(|seq| change(self, *seq));
        let chosen = Vec::from_iter(chosen);
        self.intervened(&chosen);
        chosen
    }

    /// The number of times that operators have intervened.
    pub(super) fn interventions(&self) -> i64 {
        self.interventions
    }

    /// Counts that an operator has changed these rows, if any.
    pub(super) fn intervened(&mut self, seqs: &[i64]) {
        self.interventions += i64::from(!seqs.is_empty());
    }

    /// Forgets all rows and that they were ever there.
    pub(super) fn lose_rows(&mut self, leases_end: Timestamp) {
        let mut nodes = std::mem::take(&mut self.nodes);
        nodes.members.values_mut().for_each(|member| member.expires_at = leases_end);
        let pauses = std::mem::take(&mut self.pauses);
        *self = Self { nodes, interventions: self.interventions, pauses, ..Self::default() };
    }

    pub(super) fn counts(&self) -> Counts {
        self.counts
    }

    pub(super) fn rows(&self) -> &BTreeMap<i64, Stored> {
        &self.rows
    }

    /// The committed rows of an event, ascending by `seq`.
    pub(super) fn rows_of(&self, id: &EventId) -> impl Iterator<Item = (i64, &Stored)> {
        let taken = self.ids.get(id).into_iter().flatten();
        taken.filter_map(|taken| self.rows.get(&taken.seq).map(|row| (taken.seq, row)))
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

/// True if `locked_by` names `node`, with an attempt begun or not.
fn is_held_by(holder: &str, node: &NodeId) -> bool {
    holder.strip_suffix(CRASHED).unwrap_or(holder) == node.as_str()
}
