//! The memory of a node in a term: its place in the table, as `src/claim/ordered_poller.rs` keeps it, and the rows in its memory, as
//! `src/queue/registry.rs` and `src/queue/keyed_queue.rs` keep them.

use std::collections::{BTreeMap, BTreeSet};

use super::database::{Event, Key, Row, Status};
use super::instance::{Flaw, Seq};
use super::proof::SafePoint;

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Reader {
    /// The history of the database: the server that the node has joined, and the connections that were lost.
    pub(crate) server: u8,
    pub(crate) losses: u8,
    /// The state of the node's row as the last confirmed renewal left it.
    pub(crate) confirmed: u8,
    pub(crate) interventions: u8,
    pub(crate) safe_point: SafePoint,
    /// A question for the writers under way.
    pub(crate) writers_query: Option<WritersQuery>,
    pub(crate) mark: Seq,
    /// Whether there may be something above the mark.
    pub(crate) unread: bool,
    pub(crate) fetch: Option<Fetch>,
    /// The rows in memory, by `seq`.
    pub(crate) in_memory: BTreeMap<Seq, InMemory>,
    /// The rows that left memory since the fetch under way began.
    pub(crate) settled: BTreeSet<Seq>,
    pub(crate) blocked: BTreeMap<Key, Blocked>,
    /// The lowest row from which on the next fetch has to read.
    pub(crate) freed: Option<Seq>,
    /// The lowest row that is known to be there, for the next poll.
    pub(crate) wake: Option<Seq>,
    /// The table was seen to have no heads, and none was made since.
    pub(crate) headless: bool,
}

/// The first half of an answer about the writers.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct WritersQuery {
    /// The highest row of the snapshot, or the names that were read first by mistake.
    pub(crate) highest: Seq,
    pub(crate) early: Option<Vec<String>>,
    pub(crate) asked: u8,
}

/// A fetch whose answer is on its way.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Fetch {
    pub(crate) above: Seq,
    /// The safe point before the fetch.
    pub(crate) safe_seq: Seq,
    pub(crate) rows: Vec<Row>,
    pub(crate) interventions: u8,
    /// Whether it asked for heads and found none, and no event has failed since it began.
    pub(crate) headless: bool,
}

/// A row in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct InMemory {
    pub(crate) row: Row,
    pub(crate) phase: Phase,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Phase {
    Queued,
    /// Its handler has ended, and the verdict is not recorded.
    Ended(Status),
    /// The verdict is recorded, or was refused if not `true`, and the node does not know yet.
    Recorded(Status, bool),
    /// Its verdict was refused: it rests.
    Resting,
}

/// A key of which memory takes nothing above an event, until every fetch is over that began before the table knew of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Blocked {
    pub(crate) head: Seq,
    pub(crate) unrecorded: u8,
}

impl Reader {
    pub(crate) fn new(server: u8, losses: u8, confirmed: u8) -> Self {
        Self {
            server,
            losses,
            confirmed,
            interventions: 0,
            safe_point: SafePoint::default(),
            writers_query: None,
            mark: 0,
            unread: true,
            fetch: None,
            in_memory: BTreeMap::new(),
            settled: BTreeSet::new(),
            blocked: BTreeMap::new(),
            freed: None,
            wake: None,
            headless: false,
        }
    }

    pub(crate) fn safe_seq(&self) -> Seq {
        Seq::try_from(self.safe_point.safe_seq()).unwrap_or(Seq::MAX)
    }

    /// Reads again from a row on.
    pub(crate) fn reread_from(&mut self, seq: Seq) {
        self.mark = self.mark.min(seq.saturating_sub(1));
        self.unread = true;
    }

    pub(crate) fn start_over(&mut self) {
        (self.mark, self.unread) = (0, true);
    }

    /// Whether a verdict is on its way that matters to its key.
    pub(crate) fn watches(&self) -> bool {
        self.blocked.values().any(|blocked| blocked.unrecorded > 0)
    }

    /// Whether a row is left out of a fetch.
    pub(crate) fn excludes(&self, row: &Row) -> bool {
        self.in_memory.contains_key(&row.seq)
    }

    /// Takes a row that was fetched, unless memory has it or had it since the fetch began, or its key is blocked.
    pub(crate) fn take(&mut self, row: Row, flaw: Option<Flaw>) {
        let settled = self.settled.contains(&row.seq) && flaw != Some(Flaw::RevivesWhatWasSettled);
        let blocked = self.blocked.get(&row.key).is_some_and(|blocked| row.seq > blocked.head);
        if !settled && !blocked && !self.in_memory.contains_key(&row.seq) {
            self.in_memory.insert(row.seq, InMemory { row, phase: Phase::Queued });
        }
    }

    /// The event that a handler may be given next: the lowest of its key.
    pub(crate) fn may_deliver(&self, seq: Seq) -> bool {
        let is_queued = |in_memory: &InMemory| in_memory.phase == Phase::Queued;
        let Some(in_memory) = self.in_memory.get(&seq).filter(|in_memory| is_queued(in_memory)) else { return false };
        !self.in_memory.range(..seq).any(|(_, other)| other.row.key == in_memory.row.key && is_queued(other))
    }

    /// A handler has ended.
    pub(crate) fn ended(&mut self, seq: Seq, verdict: Status, flaw: Option<Flaw>) {
        let Some(in_memory) = self.in_memory.get_mut(&seq) else { return };
        in_memory.phase = Phase::Ended(verdict);
        let row = in_memory.row;
        if verdict != Status::Done {
            self.block(&row);
            self.failed();
            if flaw != Some(Flaw::GoesOnBehindAFailure) {
                self.drop_above(&row);
            }
        } else if row.status == Status::Retry {
            self.block(&row);
        }
    }

    fn failed(&mut self) {
        self.headless = false;
        if let Some(fetch) = &mut self.fetch {
            fetch.headless = false;
        }
    }

    fn block(&mut self, row: &Row) {
        let blocked = self.blocked.entry(row.key).or_insert(Blocked { head: row.seq, unrecorded: 0 });
        blocked.head = blocked.head.min(row.seq);
        blocked.unrecorded += 1;
    }

    fn drop_above(&mut self, row: &Row) {
        let above = |seq: Seq, in_memory: &InMemory| {
            seq > row.seq && in_memory.row.key == row.key && in_memory.phase == Phase::Queued
        };
        let dropped: Vec<Seq> =
            self.in_memory.iter().filter(|(seq, in_memory)| above(**seq, in_memory)).map(|(seq, _)| *seq).collect();
        dropped.into_iter().for_each(|seq| self.release(seq));
    }

    pub(crate) fn release(&mut self, seq: Seq) {
        self.in_memory.remove(&seq);
        if self.fetch.is_some() {
            self.settled.insert(seq);
        }
    }

    /// The node learns that a verdict is recorded, or was refused.
    pub(crate) fn recorded(&mut self, seq: Seq, verdict: Status, recorded: bool, flaw: Option<Flaw>) {
        let Some(row) = self.in_memory.get(&seq).map(|in_memory| in_memory.row) else { return };
        if recorded {
            self.release(seq);
        } else if let Some(in_memory) = self.in_memory.get_mut(&seq) {
            in_memory.phase = Phase::Resting;
        }
        let blocks = verdict != Status::Done;
        if !blocks && row.status != Status::Retry {
            return;
        }
        if blocks && recorded {
            self.failed();
        } else if flaw != Some(Flaw::ForgetsWhatWasPutBack) {
            self.freed = lowest(self.freed, seq);
            self.wake = lowest(self.wake, seq);
        }
        if verdict == Status::Dead && recorded {
            self.wake = lowest(self.wake, seq);
        }
        if let Some(blocked) = self.blocked.get_mut(&row.key) {
            blocked.unrecorded = blocked.unrecorded.saturating_sub(1);
        }
        if flaw == Some(Flaw::UnblocksDuringAFetch) {
            self.unblock();
        }
    }

    /// No fetch is under way that began before the table knew of these keys.
    pub(crate) fn unblock(&mut self) {
        self.blocked.retain(|_, blocked| blocked.unrecorded > 0);
    }

    pub(crate) fn has(&self, seq: Seq, event: Event) -> bool {
        self.in_memory.get(&seq).is_some_and(|in_memory| in_memory.row.event == event)
    }

    /// The answer of a fetch is worth nothing.
    pub(crate) fn abandon_fetch(&mut self) {
        self.fetch = None;
        self.settled.clear();
    }
}

pub(crate) fn lowest(one: Option<Seq>, other: Seq) -> Option<Seq> {
    Some(one.map_or(other, |one| one.min(other)))
}
