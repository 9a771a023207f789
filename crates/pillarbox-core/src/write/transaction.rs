use std::error::Error;
use std::future::Future;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};

use super::{Connection, Dialect, Insert, Written};
use crate::run::Outbox;

/// Where a transaction can be begun: a driver's pool or connection. Adapter crates implement it.
///
/// `M` is the adapter's marker, as in [`Connection`].
#[diagnostic::on_unimplemented(
    message = "a transaction cannot be begun on `{Self}`",
    label = "not a pool or client that Pillarbox knows",
    note = "pass a reference to the pool, `outbox.begin(&pool)`, or to a client, `outbox.begin(&mut client)`",
    note = "pools are known by the adapter of their driver: pillarbox feature `sqlx-postgres`, `sqlx-mysql`, `sqlx-sqlite`, `tokio-postgres` or `mysql-async`"
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
    fn begin(self) -> impl Future<Output = Result<Self::Transaction, Self::Error>> + Send;
}

/// A driver's transaction that can be ended. Dropping it without ending it rolls it back.
pub trait Finish<M>: Send + Sized {
    /// The driver's error.
    type Error: Error + Send + Sync + 'static;

    /// What the driver runs statements on while the transaction is open; the guard dereferences to it.
    type Inner: ?Sized;

    /// The driver's side of the transaction.
    fn inner(&self) -> &Self::Inner;

    /// The driver's side of the transaction.
    fn inner_mut(&mut self) -> &mut Self::Inner;

    /// Commits. After an error the outcome is unknown.
    fn commit(self) -> impl Future<Output = Result<(), Self::Error>> + Send;

    /// Rolls back.
    fn rollback(self) -> impl Future<Output = Result<(), Self::Error>> + Send;
}

/// A transaction that tells the outbox of its commit, so that its events take the hot path.
///
/// It dereferences to what the driver runs statements on, so that `&mut *tx` is the same as with a transaction of the
/// driver's own. Events are written on the guard itself, `&mut tx`, which is how it learns of them. Dropped without [`commit`](Self::commit) it rolls back, and its events
/// never existed. Returned by [`Outbox::begin`].
#[derive(Debug)]
pub struct Transaction<T, M> {
    inner: T,
    receipts: Receipts,
    marker: PhantomData<fn() -> M>,
}

impl<T, M> Transaction<T, M> {
    pub(crate) fn new(inner: T, outbox: Outbox) -> Self {
        Self { inner, receipts: Receipts { outbox, written: Vec::new(), committing: false }, marker: PhantomData }
    }
}

impl<T: Finish<M>, M> Transaction<T, M> {
    /// Commits, then hands the events to the hot path.
    ///
    /// # Errors
    /// The driver's. Whether the transaction committed is unknown then; if it did, its events are delivered by the cold
    /// path, and if it did not, they never existed.
    pub async fn commit(self) -> Result<(), T::Error> {
        let Self { inner, mut receipts, .. } = self;
        receipts.committing = true;
        inner.commit().await?;
        for written in std::mem::take(&mut receipts.written) {
            receipts.outbox.committed(written);
        }
        Ok(())
    }

    /// Rolls back; the events never existed.
    ///
    /// # Errors
    /// The driver's. The database rolls the transaction back even then.
    pub async fn rollback(self) -> Result<(), T::Error> {
        // Dropping `receipts` reports the rollback to the hooks.
        self.inner.rollback().await
    }
}

impl<T: Finish<M>, M> Deref for Transaction<T, M> {
    type Target = T::Inner;

    fn deref(&self) -> &T::Inner {
        self.inner.inner()
    }
}

impl<T: Finish<M>, M> DerefMut for Transaction<T, M> {
    fn deref_mut(&mut self) -> &mut T::Inner {
        self.inner.inner_mut()
    }
}

/// The marker of guarded transactions.
#[derive(Debug)]
pub struct Guarded<M>(PhantomData<fn() -> M>);

#[diagnostic::do_not_recommend]
impl<T: Connection<M>, M> Connection<Guarded<M>> for Transaction<T, M> {
    type Error = T::Error;

    const DIALECT: Dialect = T::DIALECT;
    const REPORTS_COMMIT: bool = true;

    async fn insert(&mut self, insert: &Insert<'_>) -> Result<Vec<i64>, T::Error> {
        self.inner.insert(insert).await
    }

    fn wrote(&mut self, written: &Written) -> bool {
        self.receipts.written.push(written.clone());
        true
    }
}

/// The receipts of a guarded transaction. While any are left when it is dropped, the transaction was rolled back, or a
/// commit was cancelled half-way: its outcome is unknown then, and the cold path is asked to look.
#[derive(Debug)]
struct Receipts {
    outbox: Outbox,
    written: Vec<Written>,
    committing: bool,
}

impl Drop for Receipts {
    fn drop(&mut self) {
        for written in &self.written {
            if self.committing {
                written.look_for();
            } else {
                self.outbox.rolled_back(written);
            }
        }
    }
}
