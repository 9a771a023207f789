use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use pillarbox_core::clock::{Clock as _, SystemClock};
use pillarbox_core::error::{BoxError, StoreError};
use pillarbox_core::event::Stamp;
use pillarbox_core::row::Status;
use pillarbox_core::store::{PendingEvent, PendingFilter, PendingState, Store, WakeUps as _};
use pillarbox_core::write::Connection;
use pillarbox_engine::run::kind::DeliveringMode;
use pillarbox_engine::run::{Outbox, OutboxBuilder, SingleNode, StartError};
use pillarbox_memory::{MemoryRow, MemoryStore};
use tokio::time::Instant;

use crate::{FakeClock, WrittenEvents};

/// The time that no handler takes in a test: after it [`TestOutbox::wait_until_idle`] gives up.
const PATIENCE: Duration = Duration::from_secs(10);
/// The pending events that are looked at.
const MOST_PENDING: usize = 10_000;
/// Longer than any test: a lease that ends in the middle of one would only confuse.
const LEASE: Duration = Duration::from_secs(3600);

/// An outbox for tests of your own code: the real engine, in any mode, on the in-memory store with a clock that the test moves,
/// or on a [store of your own](TestOutbox::on).
///
/// Transactions, retries, due times, DEAD events and shutdown behave in memory as on a database. It dereferences to the
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
pub struct TestOutbox<S = MemoryStore, C = FakeClock> {
    outbox: Outbox,
    store: S,
    clock: C,
}

impl TestOutbox {
    /// Starts an outbox in mode `single_node`; `configure` registers handlers and whatever else the test wants to be
    /// different.
    ///
    /// # Errors
    /// The mistake of `configure`.
    pub async fn start(configure: impl FnOnce(SingleNode) -> SingleNode) -> Result<Self, StartError> {
        Self::start_as(|store| configure(Outbox::single_node(store))).await
    }

    /// Starts an outbox in any mode that delivers: `build` is given the store in memory, and returns the builder, such as the
    /// function that builds the service's own outbox on any store.
    ///
    /// In mode `ordered`, a failing event keeps its place and is tried again after its delay in real time, which the clock of
    /// the test does not move: give such a test a short [`retry_policy`](OutboxBuilder::retry_policy).
    ///
    /// ```
    /// use pillarbox_engine::run::Outbox;
    /// use pillarbox_testkit::{Recorder, TestOutbox};
    ///
    /// # let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    /// # runtime.block_on(async {
    /// let mails = Recorder::new();
    /// let test = TestOutbox::start_as(|store| Outbox::partitioned(store).handle_all(mails.clone())).await?;
    /// # test.shutdown().await;
    /// # Ok::<(), pillarbox_core::error::BoxError>(())
    /// # })?;
    /// # Ok::<(), pillarbox_core::error::BoxError>(())
    /// ```
    ///
    /// # Errors
    /// The mistake of `build`.
    pub async fn start_as<K: DeliveringMode>(
        build: impl FnOnce(MemoryStore) -> OutboxBuilder<K>,
    ) -> Result<Self, StartError> {
        let clock = FakeClock::new();
        let store = MemoryStore::with_clock(Arc::new(clock.clone()));
        let outbox = build(store.clone()).clock(clock.clone()).lease(LEASE).wake_up(true).start().await?;
        Ok(Self { outbox, store, clock })
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
        self.store.notify().await?;
        self.wait_until_idle().await
    }

    /// Delivers until every event that was tried is over: waits until nothing is due, and lets the time pass to the next attempt
    /// of an event that has failed or was deferred. Delayed events are delivered if their time comes meanwhile.
    ///
    /// # Errors
    /// After ten seconds, with what is left, such as an event that is deferred again and again.
    pub async fn deliver_all(&self) -> Result<(), BoxError> {
        let began = Instant::now();
        loop {
            self.wait_until_idle().await?;
            let retrying = self.rows().into_iter().filter(|row| row.status == Status::Retry);
            let Some(next) = retrying.filter_map(|row| row.available_at).min() else { return Ok(()) };
            if began.elapsed() > PATIENCE {
                return Err(still_retrying(&self.outbox).await?);
            }
            self.advance(next.since(self.clock.now())).await?;
        }
    }
}

impl<S: Store + Clone> TestOutbox<S, SystemClock> {
    /// Migrates the tables of a store and starts an outbox on them, in any mode: `build` is given the store, and returns the
    /// builder. The time is the database's own.
    ///
    /// Give each test tables of its own, with a [name of its own](unique_name) or in a file of its own: then tests can run
    /// beside each other, and find no event of another.
    ///
    /// ```
    /// use pillarbox_engine::run::Outbox;
    /// use pillarbox_testkit::{Recorder, TestOutbox};
    /// # use pillarbox_memory::MemoryStore;
    ///
    /// # let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    /// # runtime.block_on(async {
    /// # let store = MemoryStore::new();
    /// // let store = PostgresOptions::parse(url)?.table(unique_name("orders")).connect().await?;
    /// let mails = Recorder::new();
    /// let test = TestOutbox::on(store, |store| Outbox::multi_node(store).handle_all(mails.clone())).await?;
    /// # test.shutdown().await;
    /// # Ok::<(), pillarbox_core::error::BoxError>(())
    /// # })?;
    /// # Ok::<(), pillarbox_core::error::BoxError>(())
    /// ```
    ///
    /// # Errors
    /// The database's, or what `build` got wrong.
    pub async fn on<K>(store: S, build: impl FnOnce(S) -> OutboxBuilder<K>) -> Result<Self, StartError> {
        store.migrate().await?;
        let outbox = build(store.clone()).start().await?;
        Ok(Self { outbox, store, clock: SystemClock })
    }

    /// Delivers until every event that was tried is over: waits until nothing is due, and no event waits for another attempt. The
    /// time is real, so give the outbox a short [`retry_policy`](OutboxBuilder::retry_policy). Delayed events are left alone.
    ///
    /// # Errors
    /// The database's; or after ten seconds, with what is left.
    pub async fn deliver_all(&self) -> Result<(), BoxError> {
        let (began, mut waiting) = (Instant::now(), None);
        loop {
            self.wait_until_idle().await?;
            // One statement sees all of them. What is new while none is tried again, and is so once more after nothing was due, waits
            // behind a DEAD event.
            let pending = self.outbox.store().pending(&PendingFilter::new(), 0, MOST_PENDING).await?;
            let of_state = |state| pending.iter().filter(move |event| event.state == state).map(|event| event.seq);
            let is_retrying = of_state(PendingState::Retrying).next().is_some();
            let new: Option<Vec<i64>> = (!is_retrying).then(|| of_state(PendingState::New).collect());
            let before = std::mem::replace(&mut waiting, new);
            if !is_retrying && waiting == before {
                return Ok(());
            }
            if began.elapsed() > PATIENCE {
                return Err(still_retrying(&self.outbox).await?);
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
}

impl<S, C> TestOutbox<S, C> {
    /// The store. In memory, transactions are begun on it: `test.begin(test.store())`.
    #[must_use]
    pub fn store(&self) -> &S {
        &self.store
    }

    /// The events that a transaction has written and not committed: see [`WrittenEvents::in_transaction`].
    ///
    /// # Errors
    /// As of [`WrittenEvents::in_transaction`].
    pub async fn written_in<M, T: Connection<M>>(&self, transaction: &mut T) -> Result<WrittenEvents, BoxError> {
        WrittenEvents::in_transaction(&self.outbox, transaction).await
    }

    /// The events that are committed: see [`WrittenEvents::committed`].
    ///
    /// # Errors
    /// As of [`WrittenEvents::committed`].
    pub async fn committed(&self) -> Result<WrittenEvents, BoxError> {
        WrittenEvents::committed(&self.outbox).await
    }

    /// Waits until no event is due and none is in memory: what still is in the table is over, waits for its time, or waits
    /// behind an event of its key that does.
    ///
    /// # Errors
    /// After ten seconds, with what is left.
    pub async fn wait_until_idle(&self) -> Result<(), BoxError> {
        wait_until_idle(&self.outbox, PATIENCE).await
    }
}

impl<S, C> Deref for TestOutbox<S, C> {
    type Target = Outbox;

    fn deref(&self) -> &Outbox {
        &self.outbox
    }
}

/// The error for events that are tried again and again.
async fn still_retrying(outbox: &Outbox) -> Result<BoxError, StoreError> {
    let line = |event: &PendingEvent| {
        let error = event.last_error.as_deref().unwrap_or("it was deferred");
        format!("\n  #{} {}, {} failures: {error}", event.seq, event.event_type, event.attempts)
    };
    let retrying = PendingFilter::new().state(PendingState::Retrying);
    let events: String = outbox.store().pending(&retrying, 0, 10).await?.iter().map(line).collect();
    Ok(format!("after {PATIENCE:?} events still wait for another attempt:{events}").into())
}

/// Waits until no event is due in the table of `outbox` and none is in its memory, for tests on any store and in any mode.
///
/// Events are due, or only wait behind another one, as for [`Outbox::drain`]. Events of other nodes on the same table
/// count too while they are due. A transaction that is still open is not waited for.
///
/// # Errors
/// The database's, or when it takes longer than `patience`.
pub async fn wait_until_idle(outbox: &Outbox, patience: Duration) -> Result<(), BoxError> {
    let began = Instant::now();
    loop {
        let (in_memory, nothing_is_due) = (outbox.stats().in_memory, outbox.nothing_is_due().await?);
        if in_memory == 0 && nothing_is_due {
            return Ok(());
        }
        if began.elapsed() > patience {
            let due = outbox.store().backlog().await?.due;
            return Err(format!("after {patience:?} {in_memory} events are still in memory and {due} are due").into());
        }
        // No database tells of it, so it has to be asked.
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

/// A name that no other test and no earlier run has used, for a table, schema, database or file: `prefix`, `_`, and 26 letters and
/// digits in lower case.
///
/// ```
/// use pillarbox_testkit::unique_name;
///
/// let table = unique_name("orders");
/// assert!(table.starts_with("orders_") && table != unique_name("orders"));
/// ```
#[must_use]
pub fn unique_name(prefix: &str) -> String {
    format!("{prefix}_{}", Stamp::system().next_id()).to_ascii_lowercase()
}
