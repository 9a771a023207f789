//! What the database holds. Each method is one statement.

use pillarbox_core::store::Writers;

use super::instance::{Flaw, Instance, Seq};

/// The number of an event: its place among the rows of all transactions.
pub(crate) type Event = u8;
pub(crate) type Key = char;

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Database {
    /// The committed rows, ascending by `seq`.
    pub(crate) rows: Vec<Row>,
    /// The last `seq` that was given.
    pub(crate) last: Seq,
    /// How often operators have replayed or discarded DEAD rows.
    pub(crate) interventions: u8,
    /// How often the node has renewed its lease: the state of its row.
    pub(crate) renewals: u8,
    pub(crate) transactions: Vec<Transaction>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Row {
    pub(crate) seq: Seq,
    pub(crate) event: Event,
    pub(crate) key: Key,
    pub(crate) status: Status,
    pub(crate) time: Time,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Status {
    New,
    Retry,
    Dead,
    Done,
}

/// Whether a row has a due time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Time {
    None,
    Later,
    Due,
}

/// A transaction of a writer.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub(crate) struct Transaction {
    pub(crate) phase: Phase,
    /// The rows that it would commit now.
    pub(crate) rows: Vec<Row>,
    /// How many rows it has written, those undone included.
    pub(crate) written: usize,
    /// Ticks since its first row.
    pub(crate) age: u8,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub(crate) enum Phase {
    #[default]
    Idle,
    /// It has a number for its first row and holds the lock, and has no id yet.
    Begun,
    /// Its row is written.
    Open,
    Prepared,
    Ended,
}

impl Row {
    pub(crate) fn is_pending(&self) -> bool {
        matches!(self.status, Status::New | Status::Retry)
    }
}

impl Transaction {
    pub(crate) fn is_open(&self) -> bool {
        matches!(self.phase, Phase::Begun | Phase::Open | Phase::Prepared)
    }

    /// The names by which the database knows it: the virtual one, and its id once it has written. A prepared one has lost its first
    /// virtual name, as on servers before 14.1.
    fn names(&self, number: usize) -> Vec<String> {
        let (own, prepared, id) = (format!("3/{number}"), format!("-1/{number}"), number.to_string());
        match self.phase {
            Phase::Idle | Phase::Ended => Vec::new(),
            Phase::Begun => vec![own],
            Phase::Open => vec![own, id],
            Phase::Prepared => vec![prepared, id],
        }
    }
}

impl Database {
    pub(crate) fn new(transactions: usize) -> Self {
        let transactions = vec![Transaction::default(); transactions];
        Self { rows: Vec::new(), last: 0, interventions: 0, renewals: 0, transactions }
    }

    pub(crate) fn row(&mut self, seq: Seq) -> Option<&mut Row> {
        self.rows.iter_mut().find(|row| row.seq == seq)
    }

    pub(crate) fn is_committed(&self, event: Event) -> bool {
        self.rows.iter().any(|row| row.event == event)
    }

    pub(crate) fn commit(&mut self, transaction: usize) {
        let ended = &mut self.transactions[transaction];
        ended.phase = Phase::Ended;
        let rows = std::mem::take(&mut ended.rows);
        self.rows.extend(rows);
        self.rows.sort_unstable_by_key(|row| row.seq);
    }

    /// The highest `seq` that is visible.
    pub(crate) fn highest(&self) -> Seq {
        self.rows.last().map_or(0, |row| row.seq)
    }

    /// The transactions that may still commit, as `writers.sql` names them.
    pub(crate) fn writers(&self, highest: Seq, instance: &Instance) -> Writers {
        let names = |prepared: bool| {
            let open = self.transactions.iter().enumerate();
            let open = open.filter(move |(_, open)| !prepared || open.phase == Phase::Prepared);
            open.flat_map(|(number, open)| open.names(number)).collect::<Vec<_>>()
        };
        let open = match instance.flaw {
            _ if !instance.tells => None,
            Some(Flaw::IgnoresOpenTransactions) => Some(Vec::new()),
            _ => Some(names(false)),
        };
        let prepared =
            if !instance.tells || instance.flaw == Some(Flaw::ForgetsNewNames) { Vec::new() } else { names(true) };
        Writers { highest: highest.into(), open, prepared }
    }

    /// Whether an earlier row of its key is RETRY or DEAD.
    pub(crate) fn is_behind_a_head(&self, row: &Row) -> bool {
        let blocks = |head: &&Row| matches!(head.status, Status::Retry | Status::Dead);
        self.rows.iter().filter(blocks).any(|head| head.key == row.key && head.seq < row.seq)
    }

    pub(crate) fn has_heads(&self) -> bool {
        self.rows.iter().any(|row| matches!(row.status, Status::Retry | Status::Dead))
    }

    /// The rows that a fetch returns, those with a due time among them. `heads` says whether it asks for heads.
    pub(crate) fn fetch(&self, above: Seq, limit: usize, heads: bool, exclude: impl Fn(&Row) -> bool) -> Vec<Row> {
        let wanted = |row: &&Row| row.is_pending() && !exclude(row) && !(heads && self.is_behind_a_head(row));
        let rows = || self.rows.iter().filter(wanted).copied();
        let mut due: Vec<Row> = rows().filter(|row| row.time == Time::Due).take(limit).collect();
        let room = limit - due.len().min(limit.div_ceil(3));
        let ready: Vec<Row> = rows().filter(|row| row.time == Time::None && row.seq > above).take(room).collect();
        due.truncate(limit - ready.len());
        ready.into_iter().chain(due).collect()
    }
}
