use pillarbox_core::event::IntoEnvelope;
use pillarbox_core::write::{Begin, BlockingTransaction, Connection, Finish, Synchronous, WriteError, Written, now};

use super::Outbox;

impl Outbox {
    /// The same outbox for drivers that block their thread: diesel's own connections, and rusqlite.
    ///
    /// Nothing here is awaited: no runtime is entered and none is needed, and no thread waits for anything but the driver.
    /// Call it where the driver may be called: on a thread of yours, in `tokio::task::spawn_blocking`, or in `interact` of a
    /// deadpool. The outbox itself is started, and delivers, on a runtime as ever.
    ///
    /// ```text
    /// let outbox = outbox.clone();
    /// tokio::task::spawn_blocking(move || {
    ///     let mut conn = pool.get()?;
    ///     let mut tx = outbox.blocking().begin(&mut *conn)?;
    ///     tx.execute("INSERT INTO orders (id) VALUES ('o-1')", [])?;
    ///     outbox.blocking().write(&mut tx, &OrderPlaced { order_id: "o-1".into() })?;
    ///     tx.commit()?;
    ///     Ok::<_, BoxError>(())
    /// })
    /// .await??;
    /// ```
    #[must_use]
    pub fn blocking(&self) -> BlockingOutbox<'_> {
        BlockingOutbox(self)
    }
}

/// An outbox for drivers that block their thread. Returned by [`Outbox::blocking`].
#[derive(Debug, Clone, Copy)]
pub struct BlockingOutbox<'a>(&'a Outbox);

impl BlockingOutbox<'_> {
    /// Writes one event in the caller's transaction, as [`Outbox::write`] does.
    ///
    /// # Errors
    /// See [`WriteError`].
    pub fn write<M, C: Connection<M> + Synchronous<M>>(
        &self,
        connection: &mut C,
        event: impl IntoEnvelope,
    ) -> Result<Written, WriteError<C::Error>> {
        self.write_all(connection, [event])
    }

    /// Writes many events in the caller's transaction, as [`Outbox::write_all`] does.
    ///
    /// # Errors
    /// See [`WriteError`]. Either all events are written or none.
    pub fn write_all<M, C: Connection<M> + Synchronous<M>, E: IntoEnvelope>(
        &self,
        connection: &mut C,
        events: impl IntoIterator<Item = E>,
    ) -> Result<Written, WriteError<C::Error>> {
        now(self.0.write_all(connection, events))
    }

    /// Begins a transaction that tells the outbox of its commit, as [`Outbox::begin`] does.
    ///
    /// # Errors
    /// The driver's.
    pub fn begin<M, B: Begin<M> + Synchronous<M>>(
        &self,
        source: B,
    ) -> Result<BlockingTransaction<B::Transaction, M>, B::Error> {
        BlockingTransaction::begin(source, |transaction| self.0.guard(transaction))
    }

    /// Commits a transaction of the driver's own, in which `receipt` was written, as [`Outbox::commit`] does.
    ///
    /// # Errors
    /// The driver's.
    pub fn commit<M, T: Finish<M> + Synchronous<M>>(&self, transaction: T, receipt: Written) -> Result<(), T::Error> {
        now(self.0.commit(transaction, receipt))
    }

    /// Tells the outbox that the transaction of a write has committed, as [`Outbox::notify_committed`] does.
    pub fn notify_committed(&self, receipt: Written) {
        self.0.notify_committed(receipt);
    }
}
