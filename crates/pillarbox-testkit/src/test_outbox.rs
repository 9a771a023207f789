use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use pillarbox_core::error::BoxError;
use pillarbox_core::store::WakeUps as _;
use pillarbox_engine::run::{Outbox, SingleNode, StartError};
use pillarbox_memory::{MemoryRow, MemoryStore};
use tokio::time::Instant;

use crate::FakeClock;

/// The time that no handler takes in a test: after it [`TestOutbox::wait_until_idle`] gives up.
const PATIENCE: Duration = Duration::from_secs(10);

/// An outbox for tests of your own code: the real engine on the in-memory store, with a clock that the test moves.
///
/// Transactions, retries, due times, DEAD events and shutdown behave as on a database. It dereferences to the
/// [`Outbox`], so that code under test takes it as it takes any other.
///
/// ```
/// use std::time::Duration;
///
/// use pillarbox_core::event::Envelope;
/// use pillarbox_core::handle::Delivery;
/// use pillarbox_core::row::Status;
/// use pillarbox_testkit::{Recorder, TestOutbox};
///
/// # let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
/// # runtime.block_on(async {
/// // The mail server is down at first.
/// let mails = Recorder::around(async |delivery: Delivery| match delivery.attempt() {
///     1 => Err("connection refused"),
///     _ => Ok(()),
/// });
/// let test = TestOutbox::start(|outbox| outbox.handle_all(mails.clone())).await?;
///
/// let mut tx = test.begin(test.store()).await?;
/// test.write(&mut tx, Envelope::json("order.placed", r#"{"order_id": "o-1"}"#)?).await?;
/// tx.commit().await?;
/// test.wait_until_idle().await?;
/// assert_eq!(mails.calls().len(), 1);
/// assert_eq!(test.rows()[0].status, Status::Retry);
///
/// // An hour later, without waiting for one.
/// test.advance(Duration::from_secs(3600)).await?;
/// assert_eq!(mails.calls().len(), 2);
/// assert_eq!(test.rows()[0].status, Status::Done);
/// test.shutdown().await;
/// # Ok::<(), pillarbox_core::error::BoxError>(())
/// # })?;
/// # Ok::<(), pillarbox_core::error::BoxError>(())
/// ```
#[derive(Debug)]
pub struct TestOutbox {
    outbox: Outbox,
    store: MemoryStore,
    clock: FakeClock,
}

impl TestOutbox {
    /// Starts an outbox in mode `single_node`; `configure` registers handlers and whatever else the test wants to be
    /// different.
    ///
    /// # Errors
    /// What `configure` got wrong.
    pub async fn start(configure: impl FnOnce(SingleNode) -> SingleNode) -> Result<Self, StartError> {
        let clock = FakeClock::new();
        let store = MemoryStore::with_clock(Arc::new(clock.clone()));
        // A lease longer than any test: advancing the clock must not end it between two renewals.
        let outbox = Outbox::single_node(store.clone()).clock(clock.clone()).lease(Duration::from_secs(3600));
        let outbox = configure(outbox.wake_up(true)).start().await?;
        Ok(Self { outbox, store, clock })
    }

    /// The store, on which transactions are begun: `test.begin(test.store())`.
    #[must_use]
    pub fn store(&self) -> &MemoryStore {
        &self.store
    }

    /// The clock of the outbox and of its database.
    #[must_use]
    pub fn clock(&self) -> &FakeClock {
        &self.clock
    }

    /// All rows of the table, as they stand.
    #[must_use]
    pub fn rows(&self) -> Vec<MemoryRow> {
        self.store.inspect().rows()
    }

    /// Lets this much time pass and waits until everything that became due is delivered.
    ///
    /// # Errors
    /// As [`wait_until_idle`](Self::wait_until_idle).
    pub async fn advance(&self, by: Duration) -> Result<(), BoxError> {
        self.clock.advance(by);
        self.store.ring().await?;
        self.wait_until_idle().await
    }

    /// Waits until no event is due and none is in memory: what still is in the table is over or waits for its time.
    ///
    /// # Errors
    /// After ten seconds, with what is left.
    pub async fn wait_until_idle(&self) -> Result<(), BoxError> {
        wait_until_idle(&self.outbox, PATIENCE).await
    }
}

impl Deref for TestOutbox {
    type Target = Outbox;

    fn deref(&self) -> &Outbox {
        &self.outbox
    }
}

/// Waits until no event is due in the table of `outbox` and none is in its memory, for tests on any store.
///
/// Events of other nodes on the same table count too while they are due. A transaction that is still open is not waited
/// for.
///
/// # Errors
/// The database's, or when it takes longer than `patience`.
pub async fn wait_until_idle(outbox: &Outbox, patience: Duration) -> Result<(), BoxError> {
    let began = Instant::now();
    loop {
        let (held, due) = (outbox.stats().held, outbox.store().backlog().await?.due);
        if held == 0 && due == 0 {
            return Ok(());
        }
        if began.elapsed() > patience {
            return Err(format!("after {patience:?} {held} events are still in memory and {due} are due").into());
        }
        // No database tells of it, so it has to be asked.
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}
