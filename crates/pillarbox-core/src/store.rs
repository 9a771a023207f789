//! The port to a database: what the engine asks of a store, and what a store must keep to.
//!
//! Every bullet of a `# Behavior` list has a conformance test of the same name in `pillarbox-testkit`.

mod table;

pub use table::TableName;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

use crate::clock::Timestamp;
use crate::error::StoreError;
use crate::event::{Envelope, EventId, Headers, Payload};
use crate::ownership::{Acquired, Mode, NodeId, Renewal};
use crate::settle::Verdict;
use crate::write::{Dialect, NewRow, Statement};

/// A database that holds an outbox table.
///
/// All methods may be called concurrently, and each may be dropped at any await: no lock, no open transaction and no
/// half-done change may outlive the call. All times that decide anything are the database's own.
#[async_trait]
pub trait Store: fmt::Debug + Send + Sync + 'static {
    /// What this store is and where it is.
    fn info(&self) -> &StoreInfo;

    /// The statements that insert `rows`, for an adapter to bind on the user's transaction.
    ///
    /// # Behavior
    /// - `insert_gives_ascending_seqs_in_row_order`
    /// - `insert_leaves_unset_columns_to_their_defaults`
    /// - `insert_keeps_payload_bytes_as_written`
    /// - `insert_is_one_statement_for_a_batch_of_a_hundred`
    /// - `rolled_back_inserts_leave_nothing`
    fn insert<'a>(&self, rows: &'a [NewRow]) -> Vec<Statement<'a>>;

    /// Creates or upgrades the tables.
    ///
    /// # Behavior
    /// - `migrate_twice_changes_nothing`
    /// - `migrate_concurrently_succeeds_everywhere`
    /// - `migrate_refuses_a_newer_schema`
    async fn migrate(&self) -> Result<(), StoreError>;

    /// The SQL that [`migrate`](Self::migrate) runs on an empty database, for other migration tools.
    ///
    /// # Behavior
    /// - `migration_sql_names_the_configured_table`
    fn migration_sql(&self) -> String;

    /// Verifies that the tables are there and of the version this release needs.
    ///
    /// # Behavior
    /// - `check_names_the_missing_schema`
    async fn check(&self) -> Result<(), StoreError>;

    /// Registers a node with a lease that ends `lease` from now.
    ///
    /// # Behavior
    /// - `join_refuses_a_mode_that_cannot_coexist`
    /// - `join_ignores_expired_nodes_of_another_mode`
    async fn join(&self, node: &NodeId, mode: Mode, lease: Duration) -> Result<(), StoreError>;

    /// Tries to become the one owner of all partitions. First clears away every node whose lease has ended, which frees
    /// what it owned, in one transaction.
    ///
    /// # Behavior
    /// - `acquire_makes_the_first_node_owner`
    /// - `acquire_by_a_second_node_is_standby_and_names_the_owner`
    /// - `acquire_again_by_the_owner_is_owner`
    /// - `acquire_takes_over_from_an_expired_node`
    /// - `acquire_by_a_node_that_was_cleared_is_lost`
    /// - `acquire_concurrently_makes_exactly_one_owner`
    async fn acquire(&self, node: &NodeId) -> Result<Acquired, StoreError>;

    /// Moves the end of a node's lease to `lease` from now, if it has not ended yet.
    ///
    /// # Behavior
    /// - `renew_extends_a_living_lease`
    /// - `renew_refuses_an_expired_or_cleared_node`
    async fn renew(&self, node: &NodeId, lease: Duration) -> Result<Renewal, StoreError>;

    /// Unregisters a node and frees everything it owned, at once. Leaving twice is not an error.
    ///
    /// # Behavior
    /// - `leave_frees_ownership_at_once`
    /// - `leave_twice_is_fine`
    async fn leave(&self, node: &NodeId) -> Result<(), StoreError>;

    /// Reads pending rows that are due.
    ///
    /// Two kinds of rows are due: those without a due time, oldest `seq` first and only above [`Fetch::above`]; and those
    /// whose due time has passed, oldest due time first. When both abound each kind gets at least a third of
    /// [`Fetch::limit`].
    ///
    /// # Behavior
    /// - `fetch_returns_committed_rows_only`
    /// - `fetch_returns_rows_in_seq_order`
    /// - `fetch_starts_above_the_given_seq`
    /// - `fetch_leaves_out_excluded_rows`
    /// - `fetch_never_exceeds_the_limit`
    /// - `fetch_finds_a_late_commit_below_later_rows`
    /// - `fetch_waits_for_the_due_time`
    /// - `fetch_serves_both_kinds_under_load`
    /// - `fetch_reports_the_next_due_time`
    /// - `fetch_leaves_out_done_and_dead_rows`
    /// - `fetch_reads_a_row_of_three_columns`
    /// - `fetch_hands_over_an_undecodable_row_beside_the_others`
    async fn fetch(&self, fetch: &Fetch) -> Result<Fetched, StoreError>;

    /// Records verdicts, in one transaction, and returns the `seq` of those that changed nothing: the row is gone or
    /// terminal, has other attempts than expected, or `node` is not the owner. The answer is in no order.
    ///
    /// # Behavior
    /// - `settle_done_is_terminal_and_clears_the_error`
    /// - `settle_retry_sets_attempts_error_and_due_time`
    /// - `settle_dead_keeps_the_error_and_the_attempts`
    /// - `settle_refuses_a_node_that_is_not_the_owner`
    /// - `settle_refuses_terminal_rows`
    /// - `settle_refuses_unexpected_attempts`
    /// - `settle_twice_counts_once`
    /// - `settle_never_inserts`
    /// - `settle_stores_any_error_text`
    /// - `settle_keeps_payload_bytes`
    async fn settle(&self, node: &NodeId, verdicts: &[Verdict]) -> Result<Vec<i64>, StoreError>;

    /// Counts rows by state.
    ///
    /// # Behavior
    /// - `counts_match_the_rows`
    async fn counts(&self) -> Result<Counts, StoreError>;

    /// Closes the store's connections. Calls after it fail; calling it twice is fine.
    async fn close(&self);
}

#[async_trait]
impl<S: Store + ?Sized> Store for Arc<S> {
    fn info(&self) -> &StoreInfo {
        (**self).info()
    }
    fn insert<'a>(&self, rows: &'a [NewRow]) -> Vec<Statement<'a>> {
        (**self).insert(rows)
    }
    async fn migrate(&self) -> Result<(), StoreError> {
        (**self).migrate().await
    }
    fn migration_sql(&self) -> String {
        (**self).migration_sql()
    }
    async fn check(&self) -> Result<(), StoreError> {
        (**self).check().await
    }
    async fn join(&self, node: &NodeId, mode: Mode, lease: Duration) -> Result<(), StoreError> {
        (**self).join(node, mode, lease).await
    }
    async fn acquire(&self, node: &NodeId) -> Result<Acquired, StoreError> {
        (**self).acquire(node).await
    }
    async fn renew(&self, node: &NodeId, lease: Duration) -> Result<Renewal, StoreError> {
        (**self).renew(node, lease).await
    }
    async fn leave(&self, node: &NodeId) -> Result<(), StoreError> {
        (**self).leave(node).await
    }
    async fn fetch(&self, fetch: &Fetch) -> Result<Fetched, StoreError> {
        (**self).fetch(fetch).await
    }
    async fn settle(&self, node: &NodeId, verdicts: &[Verdict]) -> Result<Vec<i64>, StoreError> {
        (**self).settle(node, verdicts).await
    }
    async fn counts(&self) -> Result<Counts, StoreError> {
        (**self).counts().await
    }
    async fn close(&self) {
        (**self).close().await;
    }
}

/// What a store is: for logs, errors and the check that a connection fits.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct StoreInfo {
    /// Its SQL.
    pub dialect: Dialect,
    /// Where it is, without credentials: `localhost:5432/shop`, a file path.
    pub address: String,
    /// The event table's name as configured: `outbox_event`, `billing.outbox_event`.
    pub table: String,
}

impl StoreInfo {
    /// Describes a store.
    #[must_use]
    pub fn new(dialect: Dialect, address: impl Into<String>, table: impl Into<String>) -> Self {
        Self { dialect, address: address.into(), table: table.into() }
    }
}

/// Which pending rows to read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fetch {
    /// Rows without a due time are read only above this `seq`. Zero reads from the lowest pending one.
    pub above: i64,
    /// Rows to leave out: the ones already in this node's memory.
    pub exclude: Vec<i64>,
    /// How many rows to return at most; above zero.
    pub limit: usize,
}

/// What a fetch found.
#[derive(Debug, Default)]
pub struct Fetched {
    /// The rows: those without a due time ascending by `seq`, and those with one ascending by due time.
    pub rows: Vec<FetchedRow>,
    /// How long until the next row with a due time is due, by the database's clock. Known when fewer rows than the limit
    /// were returned; `None` otherwise, and when no row waits for a time.
    pub next_due: Option<Duration>,
}

/// A row that was read, or could not be.
#[derive(Debug)]
pub enum FetchedRow {
    /// A row that can be handed to a handler.
    Row(Row),
    /// A row whose columns make no event; it goes DEAD by itself while the others go on.
    Broken(BrokenRow),
}

impl FetchedRow {
    /// The row's place in the order of the table.
    #[must_use]
    pub fn seq(&self) -> i64 {
        match self {
            Self::Row(row) => row.seq,
            Self::Broken(row) => row.seq,
        }
    }

    /// Whether the row has a due time.
    #[must_use]
    pub fn is_timed(&self) -> bool {
        match self {
            Self::Row(row) => row.timed,
            Self::Broken(row) => row.timed,
        }
    }
}

/// A row whose columns make no event.
#[derive(Debug, Clone)]
pub struct BrokenRow {
    /// Its place in the order of the table.
    pub seq: i64,
    /// Failed handler calls so far.
    pub attempts: u32,
    /// Whether it has a due time.
    pub timed: bool,
    /// What is wrong with it.
    pub reason: String,
}

/// An event in the table, or on the hot path the same event from memory.
#[derive(Debug, Clone)]
pub struct Row {
    /// Its place in the order of the table, given by the database.
    pub seq: i64,
    /// What consumers deduplicate by.
    pub event_id: EventId,
    /// What happened.
    pub event_type: Box<str>,
    /// The kind of thing it happened to.
    pub aggregate_type: Box<str>,
    /// Which thing it happened to.
    pub aggregate_id: Option<Box<str>>,
    /// The tenant it belongs to.
    pub tenant_id: Option<Box<str>>,
    /// The ordering key as stored; where it is missing, the aggregate id is the key.
    pub key: Option<Box<str>>,
    /// The string map that travels with it.
    pub headers: Headers,
    /// What it carries.
    pub payload: Payload,
    /// Failed handler calls so far.
    pub attempts: u32,
    /// Whether it has a due time: it was delayed, deferred or has failed before.
    pub timed: bool,
    /// When it happened, by the writer's clock. Rows inserted without one take `created_at`.
    pub occurred_at: Timestamp,
    /// When it was inserted, by the database's clock; on the hot path by the writer's.
    pub created_at: Timestamp,
}

impl Row {
    /// The row of an event that was written as `seq` and never handled.
    #[must_use]
    pub fn fresh(event: &Envelope, seq: i64, created_at: Timestamp) -> Self {
        let boxed = |text: Option<&str>| text.map(Box::from);
        Self {
            seq,
            event_id: event.id().clone(),
            event_type: event.event_type().into(),
            aggregate_type: event.aggregate_type().into(),
            aggregate_id: boxed(event.aggregate_id()),
            tenant_id: boxed(event.tenant_id()),
            key: boxed(event.key()),
            headers: event.headers().clone(),
            payload: event.payload().clone(),
            attempts: 0,
            timed: event.is_delayed(),
            occurred_at: event.occurred_at(),
            created_at,
        }
    }
}

/// How many rows are in which state.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Waiting for their first attempt.
    pub new: u64,
    /// Delivered.
    pub done: u64,
    /// Waiting for another attempt.
    pub retry: u64,
    /// Given up; they wait for a replay or a discard.
    pub dead: u64,
}

impl Counts {
    /// Rows that still have to be delivered.
    #[must_use]
    pub fn pending(&self) -> u64 {
        self.new + self.retry
    }
}
