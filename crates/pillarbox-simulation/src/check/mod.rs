//! The invariants, checked at every statement of the database and at every call of a handler.
//!
//! | | |
//! |---|---|
//! | `rows` | I1, I4, I5, I6, I9: what a statement may make of a row |
//! | `members` | I2: who is registered, who owns what, who may be evicted |
//! | `effects` | that what a handler writes in the transaction of its event happens once |
//! | `pauses` | that no call of what operators have paused begins |
//! | `brokers` | I3, I8, I9: what a broker may be sent, and what counts as sent |
//! | `delivery` | I2, I3, I8, that nothing is handled before it is due, and that nothing is handled twice but where a fault explains it: what a handler may be called with |

mod brokers;
mod calls;
mod delivery;
mod effects;
mod ledger;
mod members;
mod op;
mod pauses;
mod rows;

use effects::Effects;
use pauses::Paused;

pub use brokers::Sent;
pub use calls::{Call, Calls, Ending};
pub use ledger::{Ledger, Line, event_number, handler_number};
pub use members::Members;
pub use op::{Completion, Op};

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use pillarbox_core::ownership::{NodeId, NodeMode};
use pillarbox_core::row::Status;
use pillarbox_memory::MemoryStore;
use tokio::time::Instant;

use crate::plan::Place;

/// An invariant that did not hold.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{invariant} is violated: {what}")]
pub struct Violation {
    /// Its name in ARCHITECTURE.md, or `exactly once`, `early`, `liveness`, `panic`.
    pub invariant: &'static str,
    /// The details of the violation.
    pub what: String,
}

impl Violation {
    /// A violation of this invariant.
    #[must_use]
    pub fn new(invariant: &'static str, what: String) -> Self {
        Self { invariant, what }
    }
}

/// The calls that are to be in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// Nothing.
    None,
    /// First calls of a key.
    First,
    /// All of a key; behind one that is DEAD as well, if that blocks.
    Key {
        /// True if a DEAD event keeps the later ones of its key waiting.
        dead_blocks: bool,
    },
    /// The whole table.
    Table {
        /// True if an event that fails is tried again in its place.
        retries: bool,
    },
}

/// The rules that nodes of one mode keep to.
#[derive(Debug, Clone, Copy)]
pub struct Rules {
    /// The mode.
    pub mode: NodeMode,
    /// The calls that are in order.
    pub order: Order,
    /// Calls before an event is DEAD.
    pub max_attempts: u32,
}

/// An event as it was written.
#[derive(Debug, Clone)]
pub struct Written {
    /// Its key.
    pub key: Option<String>,
    /// Its id.
    pub id: String,
    /// Its payload.
    pub payload: String,
    /// It was not to be delivered at once.
    pub delayed: bool,
    /// The place that it goes to: order holds among events of one place.
    pub place: Place,
    /// The event, and the number of the handler, in whose transaction it is written.
    pub of: Option<(u32, u8)>,
}

impl Written {
    /// The text that its partition follows from.
    fn hashed(&self) -> &str {
        self.key.as_deref().unwrap_or(&self.id)
    }
}

/// Watches a run from outside.
#[derive(Debug, Default)]
pub struct Checker {
    /// The rules that nodes keep to, by their mode.
    rules: Vec<Rules>,
    ledger: Ledger,
    members: Members,
    calls: Calls,
    effects: Effects,
    events: Vec<Written>,
    /// Events that a broker has confirmed.
    confirmed: BTreeSet<u32>,
    /// The virtual time at which operators have cancelled rows, by their place and event.
    cancelled: BTreeMap<(i64, u32), Instant>,
    paused: Paused,
    /// Calls of publishers that run.
    sent: Vec<Sent>,
    call_number: u64,
    step: u64,
    /// The database's time, in microseconds.
    time: i64,
    violation: Option<Violation>,
}

impl Checker {
    /// Nothing has happened yet.
    #[must_use]
    pub fn new(rules: Vec<Rules>, lease: Duration) -> Self {
        Self { rules, members: Members::new(lease), ..Self::default() }
    }

    /// An event is about to be written; returns its number.
    pub fn event(&mut self, make: impl FnOnce(usize) -> Written) -> u32 {
        let number = self.events.len();
        self.events.push(make(number));
        u32::try_from(number).unwrap_or(u32::MAX)
    }

    /// The rules that a node keeps to.
    fn rules(&self, node: &NodeId) -> Rules {
        let mode = self.members.mode(node);
        let found = self.rules.iter().find(|rules| Some(rules.mode) == mode).or_else(|| self.rules.first());
        found.copied().unwrap_or(Rules { mode: NodeMode::MultiNode, order: Order::None, max_attempts: 1 })
    }

    /// Remembers the first violation.
    pub fn note(&mut self, checked: Result<(), Violation>) {
        if let Err(violation) = checked {
            self.violation.get_or_insert(violation);
        }
    }

    /// The first violation.
    #[must_use]
    pub fn violation(&self) -> Option<&Violation> {
        self.violation.as_ref()
    }

    /// The table of nodes.
    pub fn members(&mut self) -> &mut Members {
        &mut self.members
    }

    /// The committed rows.
    #[must_use]
    pub fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// A call has ended.
    pub fn end_call(&mut self, event: u32, handler: u8, number: u64, ending: Ending) {
        self.calls.end(event, handler, number, ending);
    }

    /// A fallback has ended well.
    pub fn rescued(&mut self, event: u32, handler: u8) {
        self.calls.of(event, handler).rescue();
    }

    /// A statement has been executed, at this time of the database.
    pub fn executed(&mut self, op: &Op, store: &MemoryStore, time: i64) {
        self.step += 1;
        self.time = time;
        let checked = self.check(op, store);
        self.note(checked);
    }

    fn check(&mut self, op: &Op, store: &MemoryStore) -> Result<(), Violation> {
        if op.concerns_nodes()
            && let Some((node, given)) = self.members.read(store, op)?
        {
            self.check_given(&node, given)?;
        }
        if op.concerns_rows() {
            let changes = self.ledger.read(store, self.step);
            if let Op::Commit(rows, _) = op
                && let Some(lost) = rows.iter().find(|(seq, ..)| self.ledger.line(*seq).is_none())
            {
                return Err(Violation::new("I1", format!("a commit left out the row {lost:?} that was written")));
            }
            for change in changes {
                self.check_row(op, change)?;
            }
            if let Op::Commit(rows, _) = op {
                self.check_effects(rows)?;
            }
        }
        Ok(())
    }

    /// The database went back: what is there now is the truth.
    pub fn went_back(&mut self, store: &MemoryStore, another: bool) {
        self.step += 1;
        self.members.went_back(store, another);
        let _changes = self.ledger.read(store, self.step);
        let not_done = self.ledger.lines().iter().filter(|line| line.status != Status::Done);
        for (event, handler) in self.effects.went_back(not_done.map(|line| (line.event, line.handler))) {
            self.calls.of(event, handler).uncommitted();
        }
    }

    /// A partition waits for its handlers and their verdicts.
    fn check_given(&self, node: &NodeId, given: pillarbox_core::ownership::Partitions) -> Result<(), Violation> {
        if self.members.is_excused(node) {
            return Ok(());
        }
        for line in self.ledger.lines().iter().filter(|line| line.status.is_pending()) {
            if !line.partition.is_some_and(|partition| given.contains(partition)) {
                continue;
            }
            let calls = self.calls.get(line.event, line.handler);
            let own = |ending| {
                calls.is_some_and(|calls| calls.calls().any(|call| call.node == *node && call.ending == ending))
            };
            let what = if own(None) {
                "its handler runs"
            } else if own(Some(Ending::Done)) {
                "it was handled and is not recorded"
            } else {
                continue;
            };
            let what = format!("{node} gave the partition of e{} (seq {}) while {what}", line.event, line.seq);
            return Err(Violation::new("I2", what));
        }
        Ok(())
    }

    /// The rows that still have to be delivered.
    pub fn pending(&self) -> impl Iterator<Item = &Line> {
        self.ledger.lines().iter().filter(|line| line.status.is_pending())
    }

    /// The rows that were given up.
    #[must_use]
    pub fn dead(&self) -> Vec<i64> {
        let dead = self.ledger.lines().iter().filter(|line| line.status == Status::Dead);
        dead.map(|line| line.seq).collect()
    }

    /// The calls that run.
    #[must_use]
    pub fn running(&self) -> usize {
        self.calls.running().len()
    }
}
