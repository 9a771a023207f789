use std::fmt;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;
use tracing::Instrument as _;

use super::{
    Begin, CommitSink, Connection, Finish, NewRow, OpenTransactions, Receipts, Transaction, WriteError, WriterHooks,
    Written, insert_rows,
};
use crate::event::{Envelope, IntoEnvelope, Stamp};
use crate::store::Store;

/// The writing half of an outbox: `write`, `write_all`, `begin`, `commit` and `notify_committed`, as on `Outbox`. A handler gets it by
/// [`Delivery::outbox`](crate::handle::Delivery::outbox). Cheap to clone.
#[derive(Clone)]
pub struct Writer {
    parts: Arc<WriterParts>,
}

/// The parts of a [`Writer`], which the engine puts together.
#[doc(hidden)]
pub struct WriterParts {
    pub store: Arc<dyn Store>,
    pub stamp: Arc<Stamp>,
    pub hooks: WriterHooks,
    pub rows: Box<dyn RowMaker>,
    pub sink: Arc<dyn CommitSink>,
    pub open: Arc<OpenTransactions>,
}

/// Makes the rows of events: adds the writer's context to their headers, and makes one row for each named handler.
#[doc(hidden)]
pub trait RowMaker: Send + Sync {
    /// The rows; all of one event are adjacent.
    fn rows(&self, events: Vec<Envelope>) -> Vec<NewRow>;

    /// An insert has ended: the time that it took, and the number of its rows if it succeeded.
    fn inserted(&self, took: Duration, rows: Option<usize>);
}

impl Writer {
    /// Puts a writer together.
    #[doc(hidden)]
    #[must_use]
    pub fn new(parts: Arc<WriterParts>) -> Self {
        Self { parts }
    }

    /// Writes one event in the caller's transaction; see `Outbox::write`.
    ///
    /// # Cancellation
    /// Dropped half-way, the event may be in the transaction, or some of its rows: roll the transaction back.
    ///
    /// # Errors
    /// See [`WriteError`]. After [`WrongCount`](WriteError::WrongCount), on any database, some of the event's rows may be in the transaction: roll
    /// it back.
    pub async fn write<M, C: Connection<M>>(
        &self,
        connection: &mut C,
        event: impl IntoEnvelope,
    ) -> Result<Written, WriteError<C::Error>> {
        // Pinned, since a future that is awaited by value is copied once more.
        pin!(self.write_all(connection, [event])).await
    }

    /// Writes many events in the caller's transaction, with as few statements as the database takes, in the given order. An event with a
    /// [unique key](Envelope::unique_key) has a statement of its own.
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
        let WriterParts { store, stamp, hooks, rows: maker, sink, open } = &*self.parts;
        let events = events.into_iter();
        let mut envelopes = Vec::with_capacity(events.size_hint().0);
        for event in events {
            envelopes.push(event.into_envelope(stamp)?);
        }
        let events = hooks.before_write(envelopes).map_err(WriteError::Hook)?;
        let count = events.len();
        let mut rows = maker.rows(events);
        let guard = connection.receipts().cloned();
        let is_guard = guard.is_some();
        let receipts = guard.or_else(|| open.find(connection.id()));
        if receipts.is_some() {
            rows = sink.claim_for_memory(rows);
        }
        // With the target of the engine's spans, so that one filter shows the whole way of an event.
        let span =
            tracing::debug_span!(target: "pillarbox_engine", "write", table = store.info().table, events = count);
        let inserted = {
            let insert = pin!(insert_rows(&**store, connection, rows).instrument(span));
            let began = Instant::now();
            let inserted = insert.await;
            maker.inserted(began.elapsed(), inserted.as_ref().ok().map(|inserted| inserted.seqs.len()));
            inserted?
        };
        let written = Written::new(inserted, store, Arc::clone(sink), hooks);
        match receipts {
            Some(receipts) if is_guard => receipts.add(&written),
            Some(receipts) => receipts.add_from_within(&written),
            None => written.look_for(),
        }
        hooks.after("after_write", &written, |hook, events| hook.after_write(events));
        Ok(written)
    }

    /// Begins a transaction that tells the outbox of its commit; see `Outbox::begin`.
    ///
    /// # Errors
    /// The driver's.
    pub async fn begin<M, B: Begin<M>>(&self, source: B) -> Result<Transaction<B::Transaction, M>, B::Error> {
        Ok(Transaction::new(source.begin().await?, &self.parts.open))
    }

    /// Commits a transaction of the driver's own, in which `receipt` was written; see `Outbox::commit`.
    ///
    /// # Cancellation
    /// Dropped before it is first polled, the transaction is rolled back. Dropped later, its outcome is unknown, as after an error.
    ///
    /// # Errors
    /// The driver's, as of [`Transaction::commit`].
    pub async fn commit<M, T: Finish<M>>(&self, transaction: T, receipt: Written) -> Result<(), T::Error> {
        let is_final = transaction.commit_is_final();
        Receipts::from(receipt).commit(transaction, is_final).await
    }

    /// Tells the outbox that the transaction of a write has committed; see `Outbox::notify_committed`.
    #[expect(clippy::needless_pass_by_value, reason = "a receipt is used up by handing it in")]
    pub fn notify_committed(&self, receipt: Written) {
        receipt.notify_committed();
    }
}

impl fmt::Debug for Writer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Writer").field("table", &self.parts.store.info().table).finish_non_exhaustive()
    }
}

impl fmt::Debug for WriterParts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WriterParts").field("table", &self.store.info().table).finish_non_exhaustive()
    }
}
