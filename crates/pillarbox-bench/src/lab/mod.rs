//! A database to measure on: the operations that the benches need, and an implementation for each database.

mod mysql;
mod postgres;
mod sqlite;
mod yardstick;

use std::any::Any;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use pillarbox::event::EnvelopeBuilder;
use pillarbox::handle::Registration;
use pillarbox::{Envelope, Outbox, Store, TableName};
use serde::Serialize;
use tokio::time::Instant;

use crate::calls::Calls;
use crate::failure::Failure;
use pillarbox_program::address::Address;
pub(crate) use yardstick::Yardstick;

/// The bench's outbox; all its tables begin alike.
const TABLE: &str = "pillarbox_bench_event";
/// Rows changed by one statement of the yardstick, and events in one bulk write.
pub(crate) const BATCH: usize = 1000;

/// Rows that a hand-written loop takes in one transaction.
pub(crate) const BY_HAND: usize = 100;

/// The type of the events that a bench measures.
pub(crate) const EVENT: &str = "bench.event";
/// The type of events that a bench puts into the table and does not measure.
pub(crate) const BYSTANDER: &str = "bench.bystander";
/// The type of events that are written and delivered beside those that are measured.
pub(crate) const COMPANY: &str = "bench.company";

/// A database to measure on.
#[async_trait]
pub(crate) trait BenchDb: Send + Sync + 'static {
    /// The meaning of the figures that differ between databases.
    fn about(&self) -> About;

    /// The outbox's side of the database, as the service that writes has it.
    fn store(&self) -> Arc<dyn Store>;

    /// True if the node beside the writers has to use this very store, since one connection writes for the whole
    /// process.
    fn shares_its_store(&self) -> bool {
        false
    }

    /// Another store on the same tables, with connections of its own, as another process has.
    async fn another_store(&self) -> Result<Arc<dyn Store>, Failure>;

    /// Creates the yardstick's table anew and fills it.
    async fn create_yardstick(&self) -> Result<(), Failure>;

    /// Creates the outbox's tables and the table of business rows anew, so that no bench inherits from another.
    async fn clear(&self) -> Result<(), Failure>;

    /// Runs the cleanup that earlier phases have left to the database, so that it does not slow the next one.
    async fn rest(&self) -> Result<(), Failure>;

    /// Changes the rows of the yardstick, [`BATCH`] in each statement and transaction, on one connection, going round by
    /// ascending id for at least `time`. Returns rows per second.
    async fn yardstick(&self, time: Duration) -> Result<f64, Failure>;

    /// The database's clock, in microseconds since 1970.
    async fn now(&self) -> Result<i64, Failure>;

    /// One transaction without any outbox: a business row if asked for, and `events`.
    async fn transact(&self, business_row: bool, events: Vec<Envelope>) -> Result<(), Failure>;

    /// One transaction of one event through the outbox's guard. Returns the time at which its commit had returned.
    async fn write(&self, outbox: &Outbox, event: EnvelopeBuilder) -> Result<Instant, Failure>;

    /// A handler of all events that inserts the business row of [`transact`](Self::transact) in the transaction in which its event
    /// becomes DONE, and notes its call.
    fn handler_in_transaction(&self, calls: Arc<Calls>) -> Registration;

    /// Inserts rows by SQL alone, with the given payload and only the columns that their kind needs.
    async fn add(&self, kind: Kind, rows: u32, payload: &str) -> Result<(), Failure>;

    /// Begins a transaction that sees the database as it is now, and leaves it open until the returned value is dropped.
    async fn hold_snapshot(&self) -> Result<Snapshot, Failure>;

    /// Delivers the backlog by a hand-written loop on one connection, which takes [`BY_HAND`] rows, marks them as DONE
    /// one by one, and commits. Returns the number of rows.
    async fn drain_by_hand(&self) -> Result<u64, Failure>;

    /// Counts the events that are measured.
    async fn count(&self) -> Result<Rows, Failure>;

    /// The database's version and the settings that speed depends on, as names and values.
    async fn describe(&self) -> Result<Vec<(String, String)>, Failure>;

    /// Reads the database's counters. That happens twice a second during a run, so it has to be cheap.
    async fn gauge(&self) -> Result<Gauge, Failure>;

    /// The number of statements, or of the unit in [`About::counted`], that the database has run so far; `None` if it
    /// does not count them.
    async fn statements(&self) -> Result<Option<u64>, Failure>;

    /// Closes the connections.
    async fn close(&self);
}

/// Opens the database with `connections` for writing, beside those of the outbox.
pub(crate) async fn open(store: &str, connections: usize) -> Result<Arc<dyn BenchDb>, Failure> {
    let table = TableName::parse(TABLE)?;
    let lab: Arc<dyn BenchDb> = match Address::parse(store)? {
        Address::Sqlite(file) => Arc::new(sqlite::SqliteLab::open(&file, &table).await?),
        Address::Postgres(url) => Arc::new(postgres::PostgresLab::open(&url, &table, connections).await?),
        Address::Mysql(url) => Arc::new(mysql::MysqlLab::open(&url, &table, connections).await?),
    };
    Ok(lab)
}

/// An open transaction, on a connection that is closed when this is dropped.
pub(crate) type Snapshot = Box<dyn Any + Send>;

/// Rows that a bench puts into the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Events to deliver, each of a key of its own.
    Due,
    /// Bystanders that are due tomorrow.
    Delayed,
    /// Bystanders that are DONE.
    Done,
    /// Bystanders that are DEAD.
    Dead,
}

impl Kind {
    fn event_type(self) -> &'static str {
        if self == Self::Due { EVENT } else { BYSTANDER }
    }

    /// The value of the column `status`.
    fn status(self) -> i16 {
        match self {
            Self::Due | Self::Delayed => 0,
            Self::Done => 1,
            Self::Dead => 3,
        }
    }
}

/// The meaning of a database's figures.
#[derive(Debug, Clone, Copy)]
pub(crate) struct About {
    /// The work of the yardstick.
    pub(crate) yardstick: &'static str,
    /// The unit that the database counts.
    pub(crate) counted: Counted,
    /// The scope of the statements that are counted.
    pub(crate) statements: &'static str,
    /// The scope of the log bytes that are counted.
    pub(crate) wal: &'static str,
}

/// The unit in which a database counts its work. A transaction has several statements, so the two must not be confused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Counted {
    Statements,
    Transactions,
}

impl Counted {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Statements => "statements",
            Self::Transactions => "transactions",
        }
    }

    pub(crate) fn per_event(self) -> &'static str {
        match self {
            Self::Statements => "statements per event",
            Self::Transactions => "transactions per event",
        }
    }
}

/// A reading of a database's counters; `None` where it has none.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Gauge {
    /// Dead rows that wait in the outbox table for the database's cleaning.
    pub(crate) dead_tuples: Option<u64>,
    /// Bytes written to its log since some time in the past.
    pub(crate) wal_bytes: Option<u64>,
}

/// The measured events in the outbox table.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Rows {
    /// Rows in any state.
    pub(crate) all: u64,
    /// Different event ids among them.
    pub(crate) distinct: u64,
    /// Rows that are DONE.
    pub(crate) done: u64,
    /// The number of them that were DONE within a second of their insert.
    pub(crate) done_within_1s: u64,
    /// The time at which the last of them became DONE, in microseconds since 1970.
    pub(crate) last_done_at: i64,
}

impl Rows {
    /// From the columns of a lab's query, in the order of the fields.
    fn from_columns(columns: [i64; 5]) -> Self {
        let [all, distinct, done, done_within_1s, last_done_at] = columns;
        Self {
            all: count(all),
            distinct: count(distinct),
            done: count(done),
            done_within_1s: count(done_within_1s),
            last_done_at,
        }
    }
}

/// Converts a count from the signed number that databases return.
fn count(column: i64) -> u64 {
    u64::try_from(column).unwrap_or(0)
}

/// Seconds between two readings of the database's clock.
#[expect(clippy::cast_precision_loss, reason = "a run takes less than 2^52 microseconds")]
pub(crate) fn seconds_between(start: i64, end: i64) -> f64 {
    end.saturating_sub(start).max(0) as f64 / 1e6
}
