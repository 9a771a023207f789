use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use pillarbox::handle::Path;
use pillarbox::{Outbox, Store};
use tokio::time::Instant;

use crate::order::{Ending, OrderPlaced};
use pillarbox_program::failure::Failure;

/// The demo's outbox; its other tables are named alike.
pub(crate) const TABLE: &str = "pillarbox_demo_event";

/// The order service's database: its own tables, in its own transactions, beside the outbox.
///
/// Receipts have no unique constraint, so they count calls of the handler.
#[async_trait]
pub(crate) trait Shop: fmt::Debug + Send + Sync + 'static {
    /// The outbox's side of the same database.
    fn store(&self) -> Arc<dyn Store>;

    /// Creates the tables of orders and receipts where they are missing.
    async fn create_tables(&self) -> Result<(), Failure>;

    /// Inserts the order and its event in one transaction and ends it as `ending` says. Returns the time at which the
    /// commit, or the rollback, had returned.
    async fn place(&self, outbox: &Outbox, order: &OrderPlaced, ending: Ending) -> Result<Instant, Failure>;

    /// Records that the handler was called for an order.
    async fn insert_receipt(&self, run: &str, order_id: &str, path: Path) -> Result<(), Failure>;

    /// The orders whose events wait to be delivered.
    async fn pending_orders(&self) -> Result<Vec<String>, Failure>;

    /// Counts the outcomes of the events of `run` and of `leftover`, the orders that were pending before it.
    async fn audit(&self, run: &str, leftover: &[String]) -> Result<Audit, Failure>;
}

/// The name of a path in the table of receipts.
pub(crate) fn path_name(path: Path) -> &'static str {
    match path {
        Path::Hot => "hot",
        Path::Cold => "cold",
    }
}

/// The counts in the database at the end of a run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Audit {
    /// Events of this run in the outbox.
    pub(crate) events_committed: u64,
    /// Receipts written by this run, one for each call of its handler.
    pub(crate) receipts: u64,
    /// Orders with a receipt written by this run.
    pub(crate) delivered: u64,
    /// Receipts of this run for events that came from memory.
    pub(crate) hot: u64,
    /// Orders of this run, and leftover ones, without a receipt of any run and without a pending event.
    pub(crate) vanished: u64,
    /// Orders of this run, and leftover ones, without a receipt but with a pending event.
    pub(crate) pending: u64,
    /// Orders of this run that have an event or a receipt, and do not exist because they were rolled back.
    pub(crate) phantoms: u64,
}

impl Audit {
    /// From the columns of `audit.sql`, in their order.
    pub(crate) fn from_counts(counts: [i64; 7]) -> Self {
        let [events_committed, receipts, delivered, hot, vanished, pending, phantoms] =
            counts.map(|count| u64::try_from(count).unwrap_or(0));
        Self { events_committed, receipts, delivered, hot, vanished, pending, phantoms }
    }

    /// Calls of the handler beyond the first for an order.
    pub(crate) fn duplicates(&self) -> u64 {
        self.receipts - self.delivered
    }

    /// Receipts of this run for events that were read from the table.
    pub(crate) fn cold(&self) -> u64 {
        self.receipts - self.hot
    }
}
