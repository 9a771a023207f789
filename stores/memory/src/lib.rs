//! The in-memory store: all the semantics of a database, none of its durability.
//!
//! It is for tests, examples and measuring the engine itself. Transactions, leases, fencing and due times behave as in
//! the SQL stores, and the same conformance suite proves it.
//!
//! ```
//! # let runtime = tokio::runtime::Builder::new_current_thread().build()?;
//! # runtime.block_on(async {
//! use pillarbox_core::store::Admin as _;
//! use pillarbox_memory::MemoryStore;
//!
//! let store = MemoryStore::new();
//! store.inspect().insert_three_columns("event-1", "order.placed", "{}")?;
//! assert_eq!(store.counts().await?.new, 1);
//! # Ok::<(), pillarbox_core::error::BoxError>(())
//! # })?;
//! # Ok::<(), pillarbox_core::error::BoxError>(())
//! ```

mod admin;
mod audit;
mod heads;
mod inbox;
mod inspect;
mod nodes;
mod owners;
mod pauses;
mod pending;
mod port;
mod recent;
mod row;
mod tables;
mod transaction;
mod unique;

#[cfg(simulated)]
pub use inspect::RowView;
pub use inspect::{Inspector, MemoryNode, MemoryRow, Snapshot};
pub use transaction::{Memory, MemoryError, MemoryTransaction};

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use pillarbox_core::clock::{Clock, SystemClock};
use pillarbox_core::store::{LeaseClock, StoreInfo};
use pillarbox_core::write::Dialect;

use tables::Tables;

/// An outbox table in this process's memory. A clone is the same handle; [`reopen`](Self::reopen) gives another one.
///
/// Rows stay after they are delivered, so that tests can look at them; memory grows with every event written.
#[derive(Debug, Clone)]
pub struct MemoryStore {
    tables: Arc<Tables>,
    info: Arc<StoreInfo>,
    /// Belongs to the handle and not to the tables: a node that shuts down closes its own connections only.
    closed: Arc<AtomicBool>,
    /// Belongs to the handle too: each process judges leases by its own clock.
    lease_clock: Arc<LeaseClock>,
}

impl MemoryStore {
    /// Empty tables on the operating system's clock.
    #[must_use]
    pub fn new() -> Self {
        Self::with_clock(Arc::new(SystemClock))
    }

    /// Empty tables whose "database clock" is `clock`: it decides about leases and due times.
    #[must_use]
    pub fn with_clock(clock: Arc<dyn Clock>) -> Self {
        Self::on(Arc::new(Tables::new(clock)))
    }

    /// Another handle to the same tables, as another process would have: closing one leaves the other open.
    #[must_use]
    pub fn reopen(&self) -> Self {
        Self::on(Arc::clone(&self.tables))
    }

    /// Begins a transaction. Its rows are invisible until it commits; dropping it rolls it back.
    pub fn begin(&self) -> MemoryTransaction {
        MemoryTransaction::new(Arc::clone(&self.tables))
    }

    /// Looks at the tables, and changes them, as a person with an SQL prompt would.
    #[must_use]
    pub fn inspect(&self) -> Inspector<'_> {
        Inspector::new(&self.tables)
    }

    fn on(tables: Arc<Tables>) -> Self {
        let info = StoreInfo::new(Dialect::MEMORY, "this process", "outbox_event");
        Self { tables, info: Arc::new(info), closed: Arc::default(), lease_clock: Arc::default() }
    }
}

impl Default for MemoryStore {
    fn default() -> Self {
        Self::new()
    }
}
