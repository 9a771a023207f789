use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use pillarbox_core::event::Stamp;
use pillarbox_core::ownership::{Fence, NodeId, NodeMode};
use pillarbox_core::planted_bug;
use pillarbox_core::store::{Row, RowId};
use pillarbox_core::throttle::Throttle;
use pillarbox_core::write::{CommitSink, Found, NewRow, Presence, Written};
use tokio::sync::Notify;
use tokio::time::Instant;

use super::{
    Dropped, HotTake, KeyedQueue, Limits, Notifier, ReadyQueue, Registry, ReleaseQueue, Reported, Unverified, WorkQueue,
};
use crate::observe::{Counters, Telemetry};
use crate::operator_pauses::OperatorPauses;
use crate::poll_schedule::PollSchedule;

/// Rows that one statement asks for at most. Beyond it they are delivered from the table.
const MAX_VERIFIED: usize = 10_000;

/// The committed events that are delivered from memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HotPath {
    /// All: while this node delivers, every row is its own.
    All,
    /// The events whose rows were inserted as this node's own; another node may have claimed any other.
    Owned,
    /// None: the order of the table is the order of delivery, or nobody delivers here.
    Off,
}

impl HotPath {
    pub(crate) fn of(mode: NodeMode) -> Self {
        match mode {
            NodeMode::SingleNode => Self::All,
            NodeMode::MultiNode => Self::Owned,
            NodeMode::Partitioned | NodeMode::Ordered => Self::Off,
        }
    }

    /// True if a row may take it, if it is known to be committed.
    fn takes(self, row: &NewRow) -> bool {
        match self {
            Self::All => !row.is_delayed(),
            Self::Owned => row.locked_by().is_some(),
            Self::Off => false,
        }
    }
}

/// The delivering side, as the writing side knows it: the place to which committed events go.
#[derive(Debug)]
pub(crate) struct Intake {
    pub(super) registry: Registry,
    pub(super) release_queue: ReleaseQueue,
    pub(crate) poll_schedule: Arc<PollSchedule>,
    pub(crate) notifier: Notifier,
    pub(crate) unverified: Unverified,
    pub(crate) reported: Reported,
    /// The operators' pauses.
    pub(crate) pauses: Arc<OperatorPauses>,
    /// Notified when an operator of this process has changed pending rows, or what is paused.
    pub(crate) intervened: Notify,
    telemetry: Arc<Telemetry>,
    stamp: Arc<Stamp>,
    hot_path: HotPath,
    hot_capacity: usize,
    dropping: Throttle,
    complaints: Throttle,
    /// The term under way; `None` while this node owns nothing.
    term: RwLock<Option<OpenTerm>>,
}

/// The answer to a committed row that was offered to the hot queue.
#[derive(Debug, Clone, Copy)]
enum Offered {
    Queued,
    /// It was taken, and is delivered from the table all the same.
    NoRoom,
    /// It is in the table for whichever node reads it.
    Left,
    /// It was taken, and stays in the table until its type or handler is resumed.
    Paused,
    /// The cold path has it, or it is not there for this node.
    NotOurs,
}

/// The open side of a term.
#[derive(Debug)]
struct OpenTerm {
    queue: WorkQueue,
    node: NodeId,
}

impl Intake {
    pub(crate) fn new(
        hot_path: HotPath,
        hot_capacity: usize,
        wakes_others: bool,
        stamp: Arc<Stamp>,
        telemetry: Arc<Telemetry>,
    ) -> Self {
        Self {
            registry: Registry::default(),
            release_queue: ReleaseQueue::default(),
            poll_schedule: Arc::default(),
            notifier: Notifier::new(wakes_others),
            unverified: Unverified::default(),
            reported: Reported::default(),
            pauses: Arc::default(),
            intervened: Notify::new(),
            telemetry,
            stamp,
            hot_path,
            hot_capacity,
            dropping: Throttle::default(),
            complaints: Throttle::default(),
            term: RwLock::new(None),
        }
    }

    /// A term of `node` begins: events committed from now on may enter its queue.
    pub(crate) fn open(&self, queue: WorkQueue, node: NodeId) {
        let mut term = self.term.write().unwrap_or_else(PoisonError::into_inner);
        self.registry.clear();
        self.release_queue.clear();
        *term = Some(OpenTerm { queue, node });
    }

    /// A term ends: no event enters its queue after this returns.
    pub(crate) fn close(&self) {
        *self.term.write().unwrap_or_else(PoisonError::into_inner) = None;
        self.unverified.clear();
    }

    /// Drops the waiting events and rereads them. Discards the fetch under way, because operators may have changed its rows. Afterwards only
    /// announced events still begin from memory. `in_order`: all events keep table order. `queue`: the term's queue, even while the term ends.
    pub(crate) fn invalidate(&self, queue: &WorkQueue, in_order: bool) {
        // Held for writing, so that no commit is between its check and the queue.
        let term = self.term.write().unwrap_or_else(PoisonError::into_inner);
        self.registry.invalidate();
        let Dropped { mut read_anew, paused } = queue.drop_waiting(in_order, &self.pauses);
        if self.hot_path == HotPath::Owned {
            paused.into_iter().for_each(|row| self.queue_release(row));
        } else {
            read_anew.extend(paused.iter().map(|row| row.seq));
        }
        if term.is_none() && self.hot_path == HotPath::Owned {
            // Nothing is read any more, and they are this node's own in the table: what is in memory is released when the term has ended.
            return;
        }
        let lowest = read_anew.iter().min().copied();
        self.registry.remove(read_anew);
        // A fetch that has begun meanwhile has left out what was dropped.
        self.registry.invalidate();
        drop(term);
        if let Some(lowest) = lowest {
            self.poll_schedule.wake_for(lowest);
        }
        self.poll_schedule.wake_for_any();
    }

    /// A row that is in memory here, and this node's own in the table, is not delivered now: any node may claim it.
    pub(crate) fn queue_release(&self, row: RowId) {
        let seq = row.seq;
        if !self.release_queue.push(row, true) {
            // A later claim finds the row, as it finds all rows that this node forgot.
            self.registry.remove([seq]);
        }
    }

    /// Rows that are in memory here are left in the table, to be read again when there is room for them. If they are this node's own in the
    /// table, any node may claim them meanwhile.
    pub(crate) fn leave_in_table(&self, rows: impl IntoIterator<Item = RowId>, fence: Fence) {
        let removed = rows.into_iter().filter_map(|row| {
            let seq = row.seq;
            (fence != Fence::Row || !self.release_queue.push(row, false)).then_some(seq)
        });
        self.registry.remove(removed);
    }

    /// The number of events that are queued, running or waiting to be recorded. Of rows that are to be released only the identity is
    /// remembered.
    pub(crate) fn in_memory(&self) -> usize {
        self.registry.taken().saturating_sub(self.release_queue.len())
    }

    /// Payload bytes of the events that wait or run.
    pub(crate) fn content_bytes(&self) -> usize {
        let term = self.term.read().unwrap_or_else(PoisonError::into_inner);
        term.as_ref().map_or(0, |open| open.queue.content_bytes())
    }

    pub(crate) fn depths(&self) -> (usize, usize) {
        let term = self.term.read().unwrap_or_else(PoisonError::into_inner);
        term.as_ref().map_or((0, 0), |open| open.queue.depths())
    }

    /// Queues rows of a receipt that a look-up has `found`, or logs that the receipt's transaction was rolled back. `probed` are the rows that
    /// were looked up.
    pub(super) fn queue_verified(&self, written: &Written, probed: &[i64], found: &Found) {
        let (rows, seqs) = written.rows();
        if !written.is_gone(probed, found) {
            return self.committed(rows, seqs, &|row, seq| found.presence(probed, seq, row.event_id()));
        }
        // A row that the cold path has delivered meanwhile, and perhaps deleted, is not announced any more.
        let Some(first) = rows.first().filter(|_| self.registry.is_announced(probed)) else { return };
        self.log_rolled_back_receipt(first.event_id(), first.envelope().event_type());
    }

    /// Logs a receipt that was reported for an event that is not in the table.
    pub(super) fn log_rolled_back_receipt(&self, event_id: &str, event_type: &str) {
        if let Some(receipts) = self.complaints.report(1) {
            tracing::warn!(
                event_id,
                event_type,
                receipts,
                "an event was reported as committed and is not in the table: its transaction was rolled back, or has not \
                 committed yet; it is not delivered"
            );
        }
    }

    /// These rows are committed, and the owners of their partitions deliver them: from the table, where they stand in
    /// their order.
    fn wake_owners(&self, keyed: &KeyedQueue, rows: &[NewRow], seqs: &[i64]) {
        let (mut ours, mut theirs) = (Vec::new(), false);
        for (row, seq) in rows.iter().zip(seqs) {
            if !keyed.is_ours(row.partition()) {
                theirs = true;
            } else if !row.is_delayed() {
                ours.push(*seq);
            }
        }
        if let Some(seq) = ours.first() {
            self.poll_schedule.wake_for(*seq);
            self.poll_schedule.found([*seq]);
        }
        if theirs {
            self.notifier.committed();
        }
        self.poll_for_rows(rows.iter().zip(seqs).filter(|(row, _)| row.is_delayed() && keyed.is_ours(row.partition())));
    }

    /// Plans polls of the table that find these rows once they are due.
    fn poll_for_rows<'a>(&self, rows: impl Iterator<Item = (&'a NewRow, &'a i64)> + Clone) {
        // All rows of a write become visible together, so the first of each due time stands for the rest.
        if let Some((_, seq)) = rows.clone().find(|(row, _)| !row.is_delayed()) {
            self.poll_schedule.poll_for(*seq, Duration::ZERO);
        }
        let delayed = rows.filter(|(row, _)| row.is_delayed());
        let now = self.stamp.now();
        if let Some((due_in, seq)) = delayed.map(|(row, seq)| (row.due_in(now), seq)).min() {
            self.poll_schedule.poll_for(*seq, due_in);
        }
    }

    /// Puts a committed row into the hot queue, if it may take the hot path and there is room.
    fn offer(
        &self,
        ready: &ReadyQueue,
        node: &NodeId,
        row: &NewRow,
        seq: i64,
        presence: Presence,
        since: Instant,
    ) -> Offered {
        let is_gone = presence == Presence::Gone && !planted_bug::is_active("rolled_back_rows_go_hot");
        let holder = row.locked_by();
        // A row that names an earlier incarnation of this node is not its own any more.
        if is_gone || holder.is_some_and(|holder| holder != node.as_str()) {
            return Offered::NotOurs;
        }
        // It is in the table for anybody who claims it, which may be this node, at once.
        if !self.hot_path.takes(row) || (presence == Presence::Unknown && holder.is_none()) {
            return Offered::Left;
        }
        match self.registry.take_announced(row.id(seq)) {
            HotTake::Now => {}
            HotTake::Before => return Offered::NotOurs,
            // Nobody looks for a row whose commit was going to be reported. If the write came before this term, and
            // the commit after its first poll, only this tells the cold path of it.
            HotTake::Unknown => {
                self.poll_schedule.wake_for(seq);
                return Offered::NotOurs;
            }
        }
        if self.pauses.is_paused(row.envelope().event_type(), row.handler()) {
            // A resumption has all of the table read anew.
            if holder.is_some() {
                self.queue_release(row.id(seq));
            } else {
                self.registry.remove([seq]);
            }
            return Offered::Paused;
        }
        if presence != Presence::Unknown && ready.push_hot(Arc::new(Row::fresh(row, seq, self.stamp.now())), since) {
            Counters::add(&self.telemetry.counters.hot, 1);
            return Offered::Queued;
        }
        if holder.is_some() {
            self.queue_release(row.id(seq));
        } else {
            self.registry.remove([seq]);
            self.poll_schedule.wake_for(seq);
        }
        Offered::NoRoom
    }

    fn hot_candidates<'a>(
        &self,
        rows: &'a [NewRow],
        seqs: &'a [i64],
    ) -> impl Iterator<Item = (&'a NewRow, i64)> + use<'a> {
        let hot_path = self.hot_path;
        rows.iter().zip(seqs.iter().copied()).filter(move |(row, _)| hot_path.takes(row)).take(self.hot_capacity)
    }
}

impl CommitSink for Intake {
    /// Makes rows this node's own before they are inserted, as many as the hot queue could take, where that is what lets
    /// them be delivered from memory. Only for a transaction whose end will be reported.
    fn claim_for_memory(&self, rows: Vec<NewRow>) -> Vec<NewRow> {
        if self.hot_path != HotPath::Owned {
            return rows;
        }
        let term = self.term.read().unwrap_or_else(PoisonError::into_inner);
        let Some(OpenTerm { node, queue }) = term.as_ref() else { return rows };
        // Rows that the queue has no room for now are left for the first node that claims them.
        let mut room = self.hot_capacity.saturating_sub(queue.depths().0);
        let own = |row: NewRow| {
            if row.is_delayed() || room == 0 {
                return row;
            }
            room -= 1;
            row.owned_by(node)
        };
        rows.into_iter().map(own).collect()
    }

    /// Rows were written in an open transaction. More than the hot queue could ever take are not worth remembering.
    fn announce(&self, rows: &[NewRow], seqs: &[i64]) {
        self.registry.announce(self.hot_candidates(rows, seqs).map(|(_, seq)| seq));
    }

    /// The receipt of these rows is gone.
    fn forget(&self, seqs: &[i64]) {
        self.registry.withdraw_announcements(seqs);
    }

    /// Adds the rows that the hot queue could take, if they are known to be committed, to others of the same transaction.
    fn verify(&self, rows: &[NewRow], seqs: &[i64], asked: &mut Vec<i64>) {
        let term = self.term.read().unwrap_or_else(PoisonError::into_inner);
        let Some(OpenTerm { queue: WorkQueue::Ready(ready), .. }) = term.as_ref() else { return };
        let room = self.hot_capacity.saturating_sub(ready.depths().0).min(MAX_VERIFIED).saturating_sub(asked.len());
        asked.extend(self.hot_candidates(rows, seqs).take(room).map(|(_, seq)| seq));
    }

    /// Somebody says that these rows are committed. Before any of them is delivered from memory it is looked up; one that is delivered
    /// from the table is looked up for the log.
    fn notify_committed(&self, written: &Written) {
        let (rows, seqs) = written.rows();
        if planted_bug::is_active("caller_is_believed") {
            return self.committed(rows, seqs, &|_, _| Presence::There);
        }
        if self.hot_path == HotPath::All {
            let mut verify = Vec::new();
            self.verify(rows, seqs, &mut verify);
            // Held for reading until they are queued, so that a term cannot end in between and leave them there.
            let term = self.term.read().unwrap_or_else(PoisonError::into_inner);
            if let Some(OpenTerm { queue: WorkQueue::Ready(ready), .. }) = term.as_ref()
                && !verify.is_empty()
                && self.unverified.push(
                    written,
                    verify,
                    Limits { rows: self.hot_capacity, bytes: ready.shares().free_bytes() },
                )
            {
                return;
            }
        }
        self.reported.push(written);
        self.committed(rows, seqs, &|_, _| Presence::Unknown);
    }

    /// These rows are committed. Those that are known to be there, and are not delayed, take the hot path as far as there is
    /// room; the others are delivered from the table.
    fn committed(&self, rows: &[NewRow], seqs: &[i64], presence: &dyn Fn(&NewRow, i64) -> Presence) {
        // Held for reading until the rows are queued, so that a term cannot end in between and leave them in memory.
        let term = self.term.read().unwrap_or_else(PoisonError::into_inner);
        // Between two terms, or before the first, nobody takes them from here.
        let (ready, node) = match term.as_ref() {
            Some(OpenTerm { queue: WorkQueue::Ready(ready), node }) => (ready, node),
            Some(OpenTerm { queue: WorkQueue::Keyed(keyed), .. }) => return self.wake_owners(keyed, rows, seqs),
            None => {
                self.notifier.committed();
                return self.poll_for_rows(rows.iter().zip(seqs));
            }
        };
        let (mut taken, mut dropped, mut left) = (0_u64, 0_u64, None);
        let since = Instant::now();
        for (row, seq) in rows.iter().zip(seqs.iter().copied()).filter(|(row, _)| !row.is_delayed()) {
            match self.offer(ready, node, row, seq, presence(row, seq), since) {
                Offered::Queued | Offered::Paused => taken += 1,
                Offered::NoRoom => (taken, dropped) = (taken + 1, dropped + 1),
                Offered::Left => {
                    dropped += u64::from(self.hot_path == HotPath::All);
                    left.get_or_insert(seq);
                }
                Offered::NotOurs => {}
            }
        }
        if let Some(seq) = left {
            self.poll_schedule.wake_for(seq);
        }
        let delayed = rows.iter().filter(|row| row.is_delayed()).count();
        Counters::add(&self.telemetry.counters.hot_skipped_delayed, delayed as u64);
        if dropped > 0 {
            Counters::add(&self.telemetry.counters.hot_dropped, dropped);
            if let Some(events) = self.dropping.report(dropped) {
                tracing::warn!(events, "the hot queue is full; the events are delivered from the table");
            }
        }
        match seqs.first() {
            // Taken by the cold path, the row is no longer sought.
            Some(_) if delayed == 0 && taken == 0 => {}
            Some(first) if delayed == 0 => self.poll_schedule.found([*first]),
            _ => self.poll_for_rows(rows.iter().zip(seqs)),
        }
    }

    /// These rows may be committed at any time without anybody saying so.
    fn look_for(&self, rows: &[NewRow], seqs: &[i64]) {
        let term = self.term.read().unwrap_or_else(PoisonError::into_inner);
        let theirs = match term.as_ref() {
            Some(OpenTerm { queue: WorkQueue::Keyed(keyed), .. }) => {
                let is_ours = |row: &NewRow| keyed.is_ours(row.partition());
                self.poll_for_rows(rows.iter().zip(seqs).filter(|(row, _)| is_ours(row)));
                !rows.iter().all(is_ours)
            }
            open => {
                self.poll_for_rows(rows.iter().zip(seqs));
                open.is_none()
            }
        };
        if theirs {
            self.notifier.wrote();
        }
    }
}
