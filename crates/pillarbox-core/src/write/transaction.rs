use std::error::Error;
use std::future::Future;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use super::open::OpenTransaction;
use super::{Command, Connection, ConnectionId, Dialect, Insert, Lookup, OpenTransactions, Probe, Receipts};
use crate::store::RowId;

/// A source of transactions: a driver's pool or connection. Adapter crates implement it.
///
/// `M` is the adapter's marker, as in [`Connection`].
#[diagnostic::on_unimplemented(
    message = "a transaction cannot be begun on `{Self}`",
    label = "not a pool or client that Pillarbox knows",
    note = "pass a reference to the pool, `outbox.begin(&pool)`, or to a client, `outbox.begin(&mut client)`",
    note = "pools are known by the adapter of their driver: pillarbox feature `sqlx-postgres`, `sqlx-mysql`, `sqlx-sqlite`, `tokio-postgres`, `mysql-async`, `sea-orm-postgres`, `sea-orm-mysql`, `sea-orm-sqlite`, `diesel-postgres`, `diesel-sqlite`, `diesel-async-postgres`, `diesel-async-mysql` or `rusqlite`",
    note = "another major version of a driver has other types, which are not known: `cargo tree --duplicates` shows both"
)]
pub trait Begin<M>: Send {
    /// The driver's transaction.
    type Transaction: Connection<M> + Finish<M, Error = Self::Error>;
    /// The driver's error.
    type Error: Error + Send + Sync + 'static;

    /// Begins a transaction.
    ///
    /// # Behavior
    /// - dropped at any await, it leaves no open transaction behind, neither in the pool nor in the database
    /// - refused on a connection that has a transaction open already, it leaves that transaction as it was
    fn begin(self) -> impl Future<Output = Result<Self::Transaction, Self::Error>> + Send;
}

/// A driver's transaction that can be ended. Dropping it without ending it rolls it back.
pub trait Finish<M>: Sized {
    /// The driver's error.
    type Error: Error + Send + Sync + 'static;

    /// The driver's object that runs statements while the transaction is open; the guard dereferences to it.
    type Inner: ?Sized;

    /// True if whatever can execute a statement in the transaction borrows [`inner`](Self::inner) for as long as it can: neither a handle of the
    /// connection, nor a nested transaction, nor a future can be kept while an event is written on the guard. Then a guard that has lent nothing
    /// since its first write knows that nothing of it was rolled back, and its commit does not ask which rows are there. `false` is right for
    /// every driver: the commit always asks.
    const IS_ONLY_BORROWED: bool = false;

    /// True if a commit of it that succeeds is final: it is not nested in another one, or its commit would fail. Otherwise `Outbox::commit` has the
    /// rows looked up on another connection before they are delivered. `false` is right for every driver.
    fn commit_is_final(&self) -> bool {
        false
    }

    /// The driver's side of the transaction.
    fn inner(&self) -> &Self::Inner;

    /// The driver's side of the transaction.
    fn inner_mut(&mut self) -> &mut Self::Inner;

    /// Commits, and returns those rows of `probe` that the transaction committed.
    ///
    /// # Behavior
    /// - what was rolled back to a savepoint is not returned; what was written in a savepoint that was released is
    /// - a transaction in which a statement has failed, and which the database would therefore roll back, is an error
    /// - so is one that is not open any more: the database has ended it, or somebody has by a statement of their own
    /// - after an error the outcome is unknown
    fn commit_verified(self, probe: &Probe) -> impl Future<Output = Result<Vec<RowId>, Self::Error>> + Send;

    /// Commits, with the same behavior, where nobody needs to know which rows were committed or all are known to be.
    fn commit(self) -> impl Future<Output = Result<(), Self::Error>> + Send {
        static NONE: Probe = Probe::none();
        let committed = self.commit_verified(&NONE);
        async move { committed.await.map(drop) }
    }

    /// Rolls back.
    fn rollback(self) -> impl Future<Output = Result<(), Self::Error>> + Send;
}

/// A transaction that tells the outbox of its commit, so that its events take the hot path. Returned by
/// `Outbox::begin`.
///
/// It dereferences to what the driver runs statements on, so that `&mut *tx` is the same as with a transaction of the
/// driver's own. Events may be written on either: `outbox.write(&mut tx, …)`, or in a function that takes the driver's
/// connection, or in a nested transaction of the driver's. An event that was rolled back to a savepoint is not delivered.
///
/// Dropped without [`commit`](Self::commit) it rolls back, and its events never existed.
#[derive(Debug)]
pub struct Transaction<T, M> {
    // First, so that it is gone before the connection loses its place.
    open: OpenTransaction,
    // In a place of its own, since guards move.
    inner: Box<T>,
    receipts: Arc<Receipts>,
    marker: PhantomData<fn() -> M>,
}

impl<T: Connection<M> + Finish<M>, M> Transaction<T, M> {
    /// Guards a transaction of the driver's.
    #[must_use]
    pub fn new(inner: T, open: &Arc<OpenTransactions>) -> Self {
        let (inner, receipts) = (Box::new(inner), Arc::new(Receipts::of_guard(T::IS_ONLY_BORROWED)));
        Self { open: open.open(inner.id(), &receipts), inner, receipts, marker: PhantomData }
    }
}

impl<T: Finish<M>, M> Transaction<T, M> {
    /// Commits, then hands the events that were committed to the hot path.
    ///
    /// # Cancellation
    /// Dropped before it is first polled, the transaction is rolled back. Dropped later, its outcome is unknown, as after an error.
    ///
    /// # Errors
    /// The driver's. It is unknown then if the transaction committed; if it did, its events are delivered by the cold
    /// path, and if it did not, they never existed.
    pub async fn commit(self) -> Result<(), T::Error> {
        let Self { open, inner, receipts, .. } = self;
        drop(open);
        // A guard has begun its transaction itself, outside of any other.
        receipts.commit(*inner, true).await
    }

    /// Rolls back; the events never existed.
    ///
    /// # Errors
    /// The driver's. The database rolls the transaction back even then.
    pub async fn rollback(self) -> Result<(), T::Error> {
        let Self { open, inner, receipts, .. } = self;
        drop(open);
        // Dropped at the end, it reports the rollback to the hooks.
        let _receipts = receipts;
        inner.rollback().await
    }
}

impl<T: Finish<M>, M> Deref for Transaction<T, M> {
    type Target = T::Inner;

    fn deref(&self) -> &T::Inner {
        self.receipts.lend();
        self.inner.inner()
    }
}

impl<T: Finish<M>, M> DerefMut for Transaction<T, M> {
    fn deref_mut(&mut self) -> &mut T::Inner {
        self.receipts.lend();
        self.inner.inner_mut()
    }
}

/// The marker of guarded transactions.
#[derive(Debug)]
pub struct Guarded<M>(PhantomData<fn() -> M>);

#[diagnostic::do_not_recommend]
impl<T: Connection<M>, M> Connection<Guarded<M>> for Transaction<T, M> {
    type Error = T::Error;

    fn dialect(&self) -> Dialect {
        self.inner.dialect()
    }

    fn in_transaction(&mut self) -> Option<bool> {
        self.inner.in_transaction()
    }

    fn insert(&mut self, insert: &Insert<'_>) -> impl Future<Output = Result<Vec<i64>, T::Error>> + Send {
        self.receipts.executed(self.inner.insert(insert))
    }

    fn run(&mut self, command: &Command<'_>) -> impl Future<Output = Result<u64, T::Error>> + Send {
        self.receipts.executed(self.inner.run(command))
    }

    fn read(&mut self, lookup: &Lookup<'_>) -> impl Future<Output = Result<Vec<String>, T::Error>> + Send {
        self.receipts.executed(self.inner.read(lookup))
    }

    fn id(&self) -> ConnectionId {
        self.inner.id()
    }

    fn receipts(&self) -> Option<&Arc<Receipts>> {
        Some(&self.receipts)
    }
}
