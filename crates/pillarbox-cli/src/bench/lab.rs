use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use pillarbox::event::EnvelopeBuilder;
use pillarbox::{Envelope, Outbox, Store};
use tokio::time::Instant;

use crate::failure::Failure;

/// The bench's outbox; all its tables begin alike.
pub(crate) const TABLE: &str = "pillarbox_bench_event";
/// Rows of the yardstick's table.
pub(crate) const YARDSTICK_ROWS: i64 = 100_000;
/// Rows changed by one statement of the yardstick, and events in one bulk write.
pub(crate) const BATCH: usize = 1000;

/// The type of events that a bench puts into the table and does not measure.
pub(crate) const BYSTANDER: &str = "bench.bystander";

/// A database to measure on.
#[async_trait]
pub(crate) trait Lab: fmt::Debug + Send + Sync + 'static {
    /// The outbox's side of the database.
    fn store(&self) -> Arc<dyn Store>;

    /// Another store on the same tables, with connections of its own, as another process has.
    async fn another_store(&self) -> Result<Arc<dyn Store>, Failure>;

    /// Creates the yardstick's table anew and fills it.
    async fn create_yardstick(&self) -> Result<(), Failure>;

    /// Creates the outbox's tables and the table of business rows anew, so that no bench inherits from another.
    async fn clear(&self) -> Result<(), Failure>;

    /// Does the cleaning that earlier phases have left to the database, so that it does not tax the next one.
    async fn rest(&self) -> Result<(), Failure>;

    /// Changes the rows of the yardstick, [`BATCH`] in each statement and transaction, on one connection, going round by
    /// ascending id for at least `time`. Returns rows per second.
    async fn yardstick(&self, time: Duration) -> Result<f64, Failure>;

    /// The database's clock, in microseconds since 1970.
    async fn now(&self) -> Result<i64, Failure>;

    /// One transaction without any outbox: a business row if asked for, and `events`.
    async fn transact(&self, business_row: bool, events: Vec<Envelope>) -> Result<(), Failure>;

    /// One transaction of one event through the outbox's guard. Returns when its commit had returned.
    async fn write(&self, outbox: &Outbox, event: EnvelopeBuilder) -> Result<Instant, Failure>;

    /// Inserts rows that are not to be delivered, with the given payload: `done` that are DONE, and `delayed` that are due
    /// tomorrow. Their type is [`BYSTANDER`].
    async fn add_bystanders(&self, done: u32, delayed: u32, payload: &str) -> Result<(), Failure>;

    /// Counts the rows of the outbox, bystanders aside.
    async fn count(&self) -> Result<Rows, Failure>;
}

/// What the outbox table says.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Rows {
    /// Rows in any state.
    pub(crate) all: u64,
    /// Different event ids among them.
    pub(crate) distinct: u64,
    /// Rows that are DONE.
    pub(crate) done: u64,
    /// Those of them that were DONE within a second of their insert.
    pub(crate) done_within_1s: u64,
    /// When the last of them became DONE, in microseconds since 1970.
    pub(crate) last_done_at: i64,
}

impl Rows {
    /// From the columns of a lab's query, in the order of the fields.
    pub(crate) fn from_columns(columns: [i64; 5]) -> Self {
        let count = |column: i64| u64::try_from(column).unwrap_or(0);
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

/// The yardstick of a run: measured on both sides of it, because machines get warm and databases get tired.
#[derive(Debug)]
pub(crate) struct Yardstick {
    before: f64,
}

impl Yardstick {
    const TIME: Duration = Duration::from_millis(1500);

    /// Measures before the run.
    pub(crate) async fn before(lab: &dyn Lab) -> Result<Self, Failure> {
        lab.rest().await?;
        Ok(Self { before: lab.yardstick(Self::TIME).await? })
    }

    /// Measures after the run and returns the mean of both.
    pub(crate) async fn after(self, lab: &dyn Lab) -> Result<f64, Failure> {
        lab.rest().await?;
        Ok(f64::midpoint(self.before, lab.yardstick(Self::TIME).await?))
    }
}

/// The ids of the yardstick's statements, for ever: each the next [`BATCH`] in a row.
pub(crate) fn yardstick_ids() -> impl Iterator<Item = Vec<i64>> {
    let starts = (1..=YARDSTICK_ROWS).step_by(BATCH).cycle();
    starts.map(|first| (first..).take(BATCH).collect())
}
