use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use pillarbox_core::event::{EventId, IntoEnvelope};
use pillarbox_core::store::{Pause, Store};
use pillarbox_core::write::{Begin, Connection, Finish, Transaction, WriteError, Writer, Written};
use tokio::time::{Instant, timeout};

use super::launch::Running;
use super::shared::Shared;
use super::{Mode, OutboxBuilder, Role, kind};
use crate::follow::{Wait, WaitAll};
use crate::handlers::HandlerLimit;
use crate::maintain::{DeadEvents, Pauses, PendingEvents};
use crate::observe::{Health, Stats};

/// An outbox: writes events in your transactions and delivers them. Cheap to clone; all clones are the same outbox.
///
/// Call [`shutdown`](Self::shutdown) before the process ends. Dropping the last clone shuts down too, but nobody waits
/// for it then.
#[derive(Debug, Clone)]
pub struct Outbox {
    pub(super) shared: Arc<Shared>,
    pub(super) running: Arc<Running>,
}

impl Outbox {
    /// An outbox of which one node delivers at a time; further nodes on the same table wait as standbys.
    ///
    /// A store is cheap to clone: keep a copy to query it yourself.
    pub fn single_node(store: impl Store) -> OutboxBuilder<kind::SingleNode> {
        OutboxBuilder::new(Mode::SingleNode, Some(Arc::new(store)))
    }

    /// An outbox of which any number of nodes deliver, each the rows it has claimed.
    pub fn multi_node(store: impl Store) -> OutboxBuilder<kind::MultiNode> {
        OutboxBuilder::new(Mode::MultiNode, Some(Arc::new(store)))
    }

    /// An outbox of which any number of nodes deliver, each the events of its share of the keys: those of a key in the order
    /// in which they were written, one at a time. Handlers with names keep that order each for itself.
    pub fn partitioned(store: impl Store) -> OutboxBuilder<kind::Partitioned> {
        OutboxBuilder::new(Mode::Partitioned, Some(Arc::new(store)))
    }

    /// An outbox of which one node delivers, one event after the other, in the order of the table.
    pub fn ordered(store: impl Store) -> OutboxBuilder<kind::Ordered> {
        OutboxBuilder::new(Mode::Ordered, Some(Arc::new(store)))
    }

    /// An outbox that only writes: its events are delivered elsewhere.
    pub fn writer_only(store: impl Store) -> OutboxBuilder<kind::WriterOnly> {
        OutboxBuilder::new(Mode::WriterOnly, Some(Arc::new(store)))
    }

    /// An outbox of a mode that is known when the program runs, such as from its arguments.
    ///
    /// ```
    /// # use pillarbox_core::handle::Delivery;
    /// # use pillarbox_engine::run::{Config, Mode, Outbox};
    /// # use pillarbox_memory::MemoryStore;
    /// # async fn send_receipt(_: Delivery) {}
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let (mode, mut config) = (Mode::Partitioned, Config::default());
    /// config.dispatch.workers = 16;
    /// let outbox = Outbox::builder(mode).store(MemoryStore::new()).config(config).handle_all(send_receipt).start().await?;
    /// # outbox.shutdown().await;
    /// # Ok(())
    /// # }
    /// ```
    pub fn builder(mode: impl Into<Mode>) -> OutboxBuilder {
        OutboxBuilder::new(mode.into(), None)
    }

    /// Writes one event in the caller's transaction: a reference to a typed event, or an
    /// [`Envelope`](pillarbox_core::event::Envelope).
    ///
    /// It is one `INSERT` on the caller's connection and nothing else; of one row, or of one for each handler if the handlers
    /// of its type have names. The event exists if and only if the transaction
    /// commits. In a transaction of [`begin`](Self::begin) it is handled from memory after the commit. In one of your own it
    /// is too if you commit by [`commit`](Self::commit) with the receipt; otherwise it is delivered from the table within
    /// some tens of milliseconds.
    ///
    /// An event with a [unique key](pillarbox_core::event::Envelope::unique_key) is not written while another one with this key is
    /// pending; [`Written::skipped`] says so.
    ///
    /// # Cancellation
    /// Dropped half-way, the event may be in the transaction, or some of its rows: roll the transaction back.
    ///
    /// # Errors
    /// See [`WriteError`]. After [`Invalid`](WriteError::Invalid), [`Hook`](WriteError::Hook),
    /// [`WrongDatabase`](WriteError::WrongDatabase) and [`NoTransaction`](WriteError::NoTransaction) the transaction was
    /// not touched. After [`WrongCount`](WriteError::WrongCount), on any database, some of the event's rows may be in the transaction: roll it back.
    pub async fn write<M, C: Connection<M>>(
        &self,
        connection: &mut C,
        event: impl IntoEnvelope,
    ) -> Result<Written, WriteError<C::Error>> {
        // Pinned, since a future that is awaited by value is copied once more.
        pin!(self.shared.writer.write(connection, event)).await
    }

    /// Writes many events in the caller's transaction, with as few statements as the database takes, mostly one, in the given order. An event
    /// with a unique key has a statement of its own.
    ///
    /// Either all events are written or none, unless the call is dropped half-way or fails with [`WrongCount`](WriteError::WrongCount).
    ///
    /// # Cancellation
    /// Dropped half-way, some of the events may be in the transaction: roll it back.
    ///
    /// # Errors
    /// As [`write`](Self::write). No event of the call was written then. After [`WrongCount`](WriteError::WrongCount), on any database, some of
    /// them may be in the transaction: roll it back.
    pub async fn write_all<M, C: Connection<M>, E: IntoEnvelope>(
        &self,
        connection: &mut C,
        events: impl IntoIterator<Item = E>,
    ) -> Result<Written, WriteError<C::Error>> {
        self.shared.writer.write_all(connection, events).await
    }

    /// Begins a transaction that tells the outbox of its commit, so that its events take the hot path.
    ///
    /// Its commit verifies what it tells: an event that was rolled back to a savepoint is not delivered, and a transaction
    /// that the database rolls back instead of committing is an error.
    ///
    /// # Errors
    /// The driver's.
    pub async fn begin<M, B: Begin<M>>(&self, source: B) -> Result<Transaction<B::Transaction, M>, B::Error> {
        self.shared.writer.begin(source).await
    }

    /// Commits a transaction of the driver's own, in which `receipt` was written, as the guard of [`begin`](Self::begin)
    /// does: the commit is verified, and the events that it committed take the hot path.
    ///
    /// It is for the outermost transaction. Commit a nested one, whose commit only releases a savepoint, by the driver, and hand its receipt in with
    /// the outermost. sqlx on PostgreSQL and MySQL refuses a nested one and rolls it back. With the other drivers that nest transactions the rows are
    /// looked up after the commit, as by [`notify_committed`](Self::notify_committed).
    ///
    /// In mode `multi_node` they are claimed from the table at once instead: their rows are nobody's, and another node may
    /// have them. There only the guard gives events to memory.
    ///
    /// # Cancellation
    /// Dropped before it is first polled, the transaction is rolled back. Dropped later, its outcome is unknown, as after an error.
    ///
    /// # Errors
    /// The driver's, as of [`Transaction::commit`].
    pub async fn commit<M, T: Finish<M>>(&self, transaction: T, receipt: Written) -> Result<(), T::Error> {
        self.shared.writer.commit(transaction, receipt).await
    }

    /// Tells the outbox that the transaction of a write has committed, where neither the guard of [`begin`](Self::begin) nor
    /// [`commit`](Self::commit) can: the transaction is another library's.
    ///
    /// Nothing is delivered on this word alone. In mode `single_node` the rows are looked up, many receipts in one statement,
    /// and those that are there are delivered from memory. A receipt whose rows are not there is logged: its transaction was
    /// rolled back, as PostgreSQL does with the `COMMIT` of one in which a statement has failed, or has not committed yet. In
    /// the other modes this node is woken if it may deliver the events, and other nodes are if
    /// [`wake_up`](super::OutboxBuilder::wake_up) is on.
    ///
    /// Calling it twice, or not at all, delivers no event twice and loses none. It does nothing for what was written in a transaction of
    /// [`begin`](Self::begin), whose guard tells of the end.
    pub fn notify_committed(&self, receipt: Written) {
        self.shared.writer.notify_committed(receipt);
    }

    /// The DEAD events, those that were given up: to list, replay and discard.
    ///
    /// Of an event whose handlers have names, an id stands for each of those that gave it up: see [`DeadEvents`].
    #[must_use]
    pub fn dead_events(&self) -> DeadEvents<'_, dyn Store> {
        DeadEvents::of_outbox(&*self.shared.store, &self.shared.intake)
    }

    /// The events that still have to be delivered, to look at, to try now or to cancel: see [`PendingEvents`].
    #[must_use]
    pub fn pending_events(&self) -> PendingEvents<'_, dyn Store> {
        PendingEvents::of_outbox(&*self.shared.store, &self.shared.intake)
    }

    /// The event types and handlers that are paused on all nodes, to pause and to resume: see [`Pauses`].
    #[must_use]
    pub fn pauses(&self) -> Pauses<'_, dyn Store> {
        Pauses::of_outbox(&*self.shared.store, &self.shared.intake)
    }

    /// The operators' pauses, as this process last knew them: less than two seconds ago while it delivers something, and otherwise at the
    /// last reading of its gauges. [`pauses`](Self::pauses) asks the database.
    #[must_use]
    pub fn known_pauses(&self) -> Vec<Pause> {
        self.shared.intake.pauses.list()
    }

    /// Waits until an event has been delivered, by this process or any other, or has ended otherwise.
    ///
    /// Its transaction has to be committed before, or by another task. The answer comes some 10 ms after the end of an event that was not waited for long, and
    /// [later](https://github.com/pillarbox/pillarbox/blob/main/docs/waiting.md) after seconds. The time is 30 s, or
    /// that of [`within`](Wait::within). A future that is dropped leaves nothing behind, and the event is delivered all the same.
    ///
    /// ```
    /// # use pillarbox_core::event::Envelope;
    /// # use pillarbox_core::handle::Delivery;
    /// # use pillarbox_engine::{follow::EventEnd, run::Outbox};
    /// # use pillarbox_memory::MemoryStore;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # async fn send_receipt(_: Delivery) {}
    /// # let store = MemoryStore::new();
    /// # let outbox = Outbox::single_node(store.clone()).handle_all(send_receipt).start().await?;
    /// # let event = Envelope::builder("order.placed").payload_json("{}").build()?;
    /// let id = event.id().clone();
    /// let mut transaction = outbox.begin(&store).await?;
    /// outbox.write(&mut transaction, event).await?;
    /// transaction.commit().await?;
    /// match outbox.delivered(id).within(std::time::Duration::from_secs(5)).await? {
    ///     EventEnd::Delivered { .. } => println!("the receipt is sent"),
    ///     other => println!("it is not: {other:?}"),
    /// }
    /// # outbox.shutdown().await;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// See [`WaitError`](crate::follow::WaitError). A database that fails is asked again until the time is over.
    pub fn delivered(&self, id: EventId) -> Wait {
        Wait::new(&self.shared.followed, id)
    }

    /// As [`delivered`](Self::delivered), for several events: their ends, in the order of `ids`. At most 100,000 events are waited
    /// for at once in a process.
    ///
    /// # Errors
    /// As [`delivered`](Self::delivered), as soon as one of them has none.
    pub fn delivered_all(&self, ids: impl IntoIterator<Item = EventId>) -> WaitAll {
        WaitAll::new(&self.shared.followed, ids.into_iter().collect())
    }

    /// The mode in which this outbox runs: `writer_only` also where delivering is switched off.
    #[must_use]
    pub fn mode(&self) -> Mode {
        self.running.mode
    }

    /// The role of this outbox: delivering, standing by, joining, only writing, or stopped.
    #[must_use]
    pub fn role(&self) -> Role {
        let role = &self.running.role;
        // Its task is gone, as with the runtime that it was started on, and cannot say so any more.
        if role.has_changed().is_err() { Role::Stopped } else { role.borrow().clone() }
    }

    /// Waits until the role satisfies `wanted`; false if the outbox stops before it does.
    pub async fn wait_for_role(&self, wanted: impl FnMut(&Role) -> bool) -> bool {
        self.running.role.clone().wait_for(wanted).await.is_ok()
    }

    /// The totals of this outbox since it was started, and the events that it holds now.
    #[must_use]
    pub fn stats(&self) -> Stats {
        let Shared { intake, telemetry, .. } = &*self.shared;
        let (hot_depth, cold_depth) = intake.depths();
        let (in_memory, content_bytes) = (intake.in_memory(), intake.content_bytes());
        Stats { hot_depth, cold_depth, in_memory, content_bytes, ..telemetry.counters.snapshot() }
    }

    /// The health of this outbox: the progress of its tasks, and its problems. It asks no database and never waits.
    ///
    /// ```
    /// # use pillarbox_core::handle::Delivery;
    /// # use pillarbox_engine::run::Outbox;
    /// # use pillarbox_memory::MemoryStore;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # async fn send_receipt(_: Delivery) {}
    /// let outbox = Outbox::single_node(MemoryStore::new()).handle_all(send_receipt).start().await?;
    /// let health = outbox.health();
    /// let status = if health.is_ready() { 200 } else { 503 };
    /// println!("{status}: {health}");
    /// # assert_eq!(status, 200);
    /// # outbox.shutdown().await;
    /// # assert!(!outbox.health().is_alive());
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn health(&self) -> Health {
        let Shared { telemetry, lease, .. } = &*self.shared;
        let now = Instant::now();
        let busy = telemetry.calls.busy(now);
        Health::read(&telemetry.loops, busy, self.role(), self.running.stop.is_cancelled(), *lease, now)
    }

    /// The handlers that have limits of their own, as they are now on this node; see [`Registration::concurrency`] and
    /// [`Registration::rate`](crate::handlers::Registration::rate). Where one has reached its limit, its events wait, and nothing is wrong.
    ///
    /// [`Registration::concurrency`]: crate::handlers::Registration::concurrency
    #[must_use]
    pub fn limits(&self) -> Vec<HandlerLimit> {
        self.shared.limits.status()
    }

    /// The writing half of this outbox, as handlers get it by [`Delivery::outbox`](pillarbox_core::handle::Delivery::outbox): for functions that write
    /// events for requests and for handlers. It does not keep the outbox running.
    #[must_use]
    pub fn writer(&self) -> Writer {
        self.shared.writer.clone()
    }

    /// Says in the metrics of an outbox that was stopped that one like it is to deliver in this process, and does not yet.
    #[doc(hidden)]
    pub fn might_deliver(&self) {
        self.shared.telemetry.meters.might_deliver();
    }

    /// The store this outbox was built on.
    #[must_use]
    pub fn store(&self) -> &dyn Store {
        &*self.shared.store
    }

    /// Stops claiming, lets queued and running events finish within the drain timeout, records the verdicts, and frees
    /// what this node owned, so that another takes over at once. A handler that is still running then is dropped at its next
    /// await, and its event is handled again.
    ///
    /// It takes the drain timeout and a few seconds at most. Calling it again waits for the same end.
    ///
    /// # Cancellation
    /// Dropped once it was polled, the outbox goes on stopping by itself, and nobody waits for it.
    pub async fn shutdown(&self) {
        self.running.stop.cancel();
        self.running.tasks.wait().await;
    }

    /// As [`shutdown`](Self::shutdown), but what is queued and running has only `limit` to finish, if that is shorter than
    /// the drain timeout.
    ///
    /// The drain timeout also says how long handlers may run before they are told that another node waits for their partition,
    /// which is less urgent than the end of the process.
    ///
    /// # Cancellation
    /// Dropped once it was polled, the outbox goes on stopping by itself, and nobody waits for it. Dropped before `limit` is over, what is queued and
    /// running has the whole drain timeout to finish.
    pub async fn shutdown_within(&self, limit: Duration) {
        self.running.stop.cancel();
        if timeout(limit, self.running.tasks.wait()).await.is_err() {
            self.running.hurry.cancel();
        }
        self.running.tasks.wait().await;
    }
}
