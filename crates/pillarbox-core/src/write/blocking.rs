use std::future::Future;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use super::{
    Begin, Command, Connection, ConnectionId, Dialect, Finish, Guarded, Insert, Lookup, Receipts, Transaction,
    WriteError, Writer, Written,
};
use crate::event::IntoEnvelope;

/// A connection, transaction or source of transactions of a driver that blocks its thread. Adapter crates implement it.
///
/// `M` is the adapter's marker, as in [`Connection`].
///
/// # Behavior
/// - every future of its [`Connection`], [`Begin`] and [`Finish`] is ready when it is first polled
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not block its thread",
    label = "not a connection of a blocking driver",
    note = "`outbox.blocking()` is for diesel's own connections and rusqlite; with an asynchronous driver write `outbox.write(&mut tx, event).await`"
)]
pub trait Synchronous<M> {}

/// The output of a future of a driver that blocks its thread. It enters no runtime and needs none.
pub fn now<F: Future>(future: F) -> F::Output {
    pollster::block_on(future)
}

/// The writing half of an outbox, for drivers that block their thread: diesel's own connections, and rusqlite. Returned by
/// `Outbox::blocking`, and by [`Writer::blocking`] in handlers.
///
/// Nothing here is awaited: no runtime is entered and none is needed, and no thread waits for anything but the driver.
#[derive(Debug, Clone, Copy)]
pub struct BlockingWriter<'a>(&'a Writer);

impl Writer {
    /// The same for drivers that block their thread.
    #[must_use]
    pub fn blocking(&self) -> BlockingWriter<'_> {
        BlockingWriter(self)
    }
}

impl BlockingWriter<'_> {
    /// Writes one event in the caller's transaction, as [`Writer::write`] does.
    ///
    /// # Errors
    /// See [`WriteError`]. After [`WrongCount`](WriteError::WrongCount), on any database, some of the event's rows may be in the transaction: roll
    /// it back.
    pub fn write<M, C: Connection<M> + Synchronous<M>>(
        &self,
        connection: &mut C,
        event: impl IntoEnvelope,
    ) -> Result<Written, WriteError<C::Error>> {
        self.write_all(connection, [event])
    }

    /// Writes many events in the caller's transaction, as [`Writer::write_all`] does.
    ///
    /// # Errors
    /// See [`WriteError`]. No event of the call was written then. After [`WrongCount`](WriteError::WrongCount), on any database, some of them may be
    /// in the transaction: roll it back.
    pub fn write_all<M, C: Connection<M> + Synchronous<M>, E: IntoEnvelope>(
        &self,
        connection: &mut C,
        events: impl IntoIterator<Item = E>,
    ) -> Result<Written, WriteError<C::Error>> {
        now(self.0.write_all(connection, events))
    }

    /// Begins a transaction that tells the outbox of its commit, as [`Writer::begin`] does.
    ///
    /// # Errors
    /// The driver's.
    pub fn begin<M, B: Begin<M> + Synchronous<M>>(
        &self,
        source: B,
    ) -> Result<BlockingTransaction<B::Transaction, M>, B::Error> {
        now(self.0.begin(source)).map(BlockingTransaction)
    }

    /// Commits a transaction of the driver's own, in which `receipt` was written, as [`Writer::commit`] does.
    ///
    /// # Errors
    /// The driver's.
    pub fn commit<M, T: Finish<M> + Synchronous<M>>(&self, transaction: T, receipt: Written) -> Result<(), T::Error> {
        now(self.0.commit(transaction, receipt))
    }

    /// Tells the outbox that the transaction of a write has committed, as [`Writer::notify_committed`] does.
    pub fn notify_committed(&self, receipt: Written) {
        self.0.notify_committed(receipt);
    }
}

/// A transaction of a driver that blocks its thread, which tells the outbox of its commit. Returned by
/// [`BlockingWriter::begin`].
///
/// As [`Transaction`], it dereferences to the driver's type that runs statements. Dropped without [`commit`](Self::commit) it
/// rolls back, and its events never existed.
#[derive(Debug)]
pub struct BlockingTransaction<T, M>(Transaction<T, M>);

impl<T: Connection<M> + Finish<M>, M> BlockingTransaction<T, M> {
    /// Commits, then hands the events that were committed to the hot path.
    ///
    /// # Errors
    /// The driver's, as of [`Transaction::commit`].
    pub fn commit(self) -> Result<(), <T as Finish<M>>::Error> {
        now(self.0.commit())
    }

    /// Rolls back; the events never existed.
    ///
    /// # Errors
    /// The driver's. The database rolls the transaction back even then.
    pub fn rollback(self) -> Result<(), <T as Finish<M>>::Error> {
        now(self.0.rollback())
    }
}

impl<T: Finish<M>, M> Deref for BlockingTransaction<T, M> {
    type Target = T::Inner;

    fn deref(&self) -> &T::Inner {
        &self.0
    }
}

impl<T: Finish<M>, M> DerefMut for BlockingTransaction<T, M> {
    fn deref_mut(&mut self) -> &mut T::Inner {
        &mut self.0
    }
}

#[diagnostic::do_not_recommend]
impl<T: Connection<M>, M> Synchronous<Guarded<M>> for BlockingTransaction<T, M> {}

#[diagnostic::do_not_recommend]
impl<T: Connection<M>, M> Connection<Guarded<M>> for BlockingTransaction<T, M> {
    type Error = T::Error;

    fn dialect(&self) -> Dialect {
        self.0.dialect()
    }

    fn in_transaction(&mut self) -> Option<bool> {
        self.0.in_transaction()
    }

    fn insert(&mut self, insert: &Insert<'_>) -> impl Future<Output = Result<Vec<i64>, T::Error>> + Send {
        self.0.insert(insert)
    }

    fn run(&mut self, command: &Command<'_>) -> impl Future<Output = Result<u64, T::Error>> + Send {
        self.0.run(command)
    }

    fn read(&mut self, lookup: &Lookup<'_>) -> impl Future<Output = Result<Vec<String>, T::Error>> + Send {
        self.0.read(lookup)
    }

    fn id(&self) -> ConnectionId {
        self.0.id()
    }

    fn receipts(&self) -> Option<&Arc<Receipts>> {
        self.0.receipts()
    }
}
