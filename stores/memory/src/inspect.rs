use pillarbox_core::clock::Timestamp;
use pillarbox_core::error::BoxError;
use pillarbox_core::event::{Envelope, EnvelopeBuilder, EventId};
use pillarbox_core::ownership::{NodeId, Partitions};
use pillarbox_core::row::Status;
use pillarbox_core::write::NewRow;

use super::nodes::Member;
use super::row::Stored;
use super::tables::{State, Tables};

/// Lets a test look at an in-memory store and change it from outside. Returned by
/// [`MemoryStore::inspect`](super::MemoryStore::inspect).
#[derive(Debug, Clone, Copy)]
pub struct Inspector<'a> {
    tables: &'a Tables,
}

/// A committed row.
#[derive(Debug, Clone)]
pub struct MemoryRow {
    /// Its place in the order of the table.
    pub seq: i64,
    /// The columns its writer set.
    pub event: Envelope,
    /// The handler it is for, if its event has several.
    pub handler: Option<String>,
    /// Its state.
    pub status: Status,
    /// Its group of keys; `None` if it was inserted without one and no node has stamped it yet.
    pub partition: Option<u8>,
    /// Failed handler calls so far.
    pub attempts: u32,
    /// The number of times that it was replayed, from DEAD to NEW.
    pub replays: u32,
    /// The error of the last failed call.
    pub last_error: Option<String>,
    /// The time at which it is due; `None` means at once.
    pub available_at: Option<Timestamp>,
    /// The time of the insert, by the store's clock.
    pub created_at: Timestamp,
    /// The time at which it became DONE or DEAD.
    pub done_at: Option<Timestamp>,
    /// The holder of the row; see [`PriorAttempt`](pillarbox_core::ownership::PriorAttempt).
    pub locked_by: Option<String>,
}

/// A committed row, in its place.
#[cfg(simulated)]
#[derive(Debug, Clone, Copy)]
#[expect(missing_docs, reason = "the fields are those of MemoryRow")]
pub struct RowView<'a> {
    pub seq: i64,
    pub event: &'a Envelope,
    pub handler: Option<&'a str>,
    pub status: Status,
    pub partition: Option<u8>,
    pub attempts: u32,
    /// The number of times that it was replayed, from DEAD to NEW.
    pub replays: u32,
    pub available_at: Option<Timestamp>,
    /// The time of the insert.
    pub created_at: Timestamp,
    pub locked_by: Option<&'a str>,
}

/// A registered node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemoryNode {
    /// The node's id.
    pub id: NodeId,
    /// Its mode's name.
    pub mode: String,
    /// The time at which its lease ends.
    pub expires_at: Timestamp,
    /// The partitions it owns.
    pub partitions: Partitions,
}

/// A state of the tables, to go back to.
#[derive(Debug, Clone)]
pub struct Snapshot(State);

impl<'a> Inspector<'a> {
    pub(super) fn new(tables: &'a Tables) -> Self {
        Self { tables }
    }

    /// The tables as they are now, for [`restore`](Self::restore) and [`fail_over_to`](Self::fail_over_to).
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        Snapshot(self.tables.lock().clone())
    }

    /// The types and handlers that are paused now.
    #[must_use]
    pub fn pauses(&self) -> Vec<pillarbox_core::store::Pause> {
        let now = self.tables.now();
        self.tables.lock().pauses.list(now)
    }

    /// Goes back to an earlier state, like a database that is restored from a backup while nodes run: later rows are
    /// lost, their `seq` is given out again, and no connection shows it.
    pub fn restore(&self, earlier: &Snapshot) {
        self.tables.go_back(&earlier.0, false);
    }

    /// Goes back to a time without rows: all are lost, and their `seq` is given out again. The leases of the nodes end
    /// at `leases_end`.
    pub fn lose_rows(&self, leases_end: Timestamp) {
        let mut earlier = self.tables.lock().clone();
        earlier.lose_rows(leases_end);
        self.tables.go_back(&earlier, false);
    }

    /// The same as a failover to a replica that lags: connections reach another server.
    pub fn fail_over_to(&self, earlier: &Snapshot) {
        self.tables.go_back(&earlier.0, true);
    }

    /// Loses all rows, like a server that crashes before its last commits are on the disk, and gives out their `seq`
    /// again. The same server comes back: clients see no more than lost connections. The leases stay as they are.
    pub fn crash(&self) {
        self.tables.crash();
    }

    /// All committed rows, ascending by `seq`.
    #[must_use]
    pub fn rows(&self) -> Vec<MemoryRow> {
        self.tables.lock().rows().iter().map(|(seq, row)| MemoryRow::new(*seq, row)).collect()
    }

    /// The row at `seq`, if it is committed.
    #[must_use]
    pub fn row(&self, seq: i64) -> Option<MemoryRow> {
        self.tables.lock().rows().get(&seq).map(|row| MemoryRow::new(seq, row))
    }

    /// The row of an event, if it is committed; the first one, if its handlers have names.
    #[must_use]
    pub fn row_of(&self, event_id: &EventId) -> Option<MemoryRow> {
        self.tables.lock().rows_of(event_id).next().map(|(seq, row)| MemoryRow::new(seq, row))
    }

    /// The committed rows of an event, one for each of its handlers if they have names, ascending by `seq`.
    #[must_use]
    pub fn rows_of(&self, event_id: &EventId) -> Vec<MemoryRow> {
        self.tables.lock().rows_of(event_id).map(|(seq, row)| MemoryRow::new(seq, row)).collect()
    }

    /// Shows every committed row, ascending by `seq`, without copying any.
    #[cfg(simulated)]
    pub fn visit(&self, mut visit: impl FnMut(RowView<'_>)) {
        for (seq, row) in self.tables.lock().rows() {
            visit(RowView {
                seq: *seq,
                event: row.event.envelope(),
                handler: row.handler.as_deref(),
                status: row.status,
                partition: row.partition,
                attempts: row.attempts,
                replays: row.replays,
                available_at: row.available_at,
                created_at: row.created_at,
                locked_by: row.locked_by.as_deref(),
            });
        }
    }

    /// All registered nodes, expired ones included until they are evicted.
    #[must_use]
    pub fn nodes(&self) -> Vec<MemoryNode> {
        let state = self.tables.lock();
        let node = |(id, member): (&NodeId, &Member)| MemoryNode {
            id: id.clone(),
            mode: member.mode.clone(),
            expires_at: member.expires_at,
            partitions: state.nodes.owners.of(id),
        };
        state.nodes.members.iter().map(node).collect()
    }

    /// Inserts and commits a row with only three columns set, as a writer in another language may do; returns its
    /// `seq`.
    ///
    /// # Errors
    /// When the id is taken, or a value is one the table's columns would refuse.
    pub fn insert_three_columns(&self, event_id: &str, event_type: &str, payload: &str) -> Result<i64, BoxError> {
        self.insert_unstamped(Envelope::builder(event_type).id(event_id).payload_json(payload))
    }

    /// Inserts and commits a row with an aggregate id and no partition, as a writer in another language may do; returns
    /// its `seq`.
    ///
    /// # Errors
    /// When the id is taken, or a value is one the table's columns would refuse.
    pub fn insert_of_aggregate(&self, event_id: &str, aggregate_id: &str) -> Result<i64, BoxError> {
        let event = Envelope::builder("test.foreign").id(event_id).aggregate_id(aggregate_id);
        self.insert_unstamped(event.payload_json("{}"))
    }

    fn insert_unstamped(&self, event: EnvelopeBuilder) -> Result<i64, BoxError> {
        let now = self.tables.now();
        let row = NewRow::new(event.occurred_at(now).build()?);
        let mut state = self.tables.lock();
        let seqs = state.reserve(std::slice::from_ref(&row))?;
        let unstamped = |row: NewRow| Stored { partition: None, ..Stored::new(row, now) };
        state.commit(seqs.iter().map(|seq| (*seq, unstamped(row.clone()))));
        seqs.first().copied().ok_or_else(|| "the row was given no seq".into())
    }

    /// Makes the row at `seq` one for the named handler; false if there is no such row.
    #[must_use]
    pub fn set_handler(&self, seq: i64, handler: &str) -> bool {
        self.tables.lock().set_handler(seq, handler)
    }

    /// Makes the row at `seq` undecodable, for `reason`; false if there is no such row.
    #[must_use]
    pub fn corrupt(&self, seq: i64, reason: &str) -> bool {
        let mut state = self.tables.lock();
        state.row_mut(seq).map(|row| row.broken = Some(reason.to_owned())).is_some()
    }

    /// Moves the due time of the row at `seq` to now; false if there is no pending row with one.
    #[must_use]
    pub fn make_due(&self, seq: i64) -> bool {
        let now = self.tables.now();
        self.tables.lock().make_due(seq, now)
    }

    /// Registers a node of any mode, a later release's included, whose lease ends at `expires_at`.
    pub fn register(&self, node: &NodeId, mode: &str, expires_at: Timestamp) {
        let (mode, started_at) = (mode.to_owned(), self.tables.now());
        let member = Member { mode, started_at, expires_at, lease: None, figures: None };
        self.tables.lock().nodes.members.insert(node.clone(), member);
    }

    /// Ends the lease of `node` now, as if it had not renewed for long; false if it is not registered.
    #[must_use]
    pub fn expire(&self, node: &NodeId) -> bool {
        let now = self.tables.now();
        let mut state = self.tables.lock();
        state.nodes.members.get_mut(node).map(|member| member.expires_at = now).is_some()
    }
}

impl MemoryRow {
    fn new(seq: i64, row: &Stored) -> Self {
        Self {
            seq,
            event: row.event.envelope().clone(),
            handler: row.handler.as_deref().map(str::to_owned),
            status: row.status,
            partition: row.partition,
            attempts: row.attempts,
            replays: row.replays,
            last_error: row.last_error.clone(),
            available_at: row.available_at,
            created_at: row.created_at,
            done_at: row.done_at,
            locked_by: row.locked_by.as_deref().map(str::to_owned),
        }
    }
}
