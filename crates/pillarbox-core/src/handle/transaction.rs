//! Handlers that work in the transaction in which their event becomes DONE: each effect in the same database exactly once.

use std::error::Error;
use std::fmt;
use std::future::Future;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use tokio::sync::{Mutex, OwnedMutexGuard};

use super::into_handler::{DeliveryForm, EventForm};
use super::signature::{Answer, HandledEvent, PassedAs, Signature};
use super::{BoxFuture, Delivery, EventKind, Handler, HandlerError, IntoOutcome, Outcome, shape};
use crate::error::BoxError;
use crate::event::Decode;
use crate::ownership::{Fence, NodeId};
use crate::planted_bug;
use crate::row::Verdict;
use crate::store::Store;
use crate::write::{
    Action, Begin, Command, Connection, ConnectionId, Dialect, Finish, Guarded, Insert, Lookup, OpenTransactions,
    Receipts, Statement, Transaction,
};

/// Wraps a handler so that it gets a transaction of the outbox's database, in which its event becomes DONE. Its writes in that
/// transaction happen exactly once, even across crashes.
///
/// `source` begins the transactions: a pool of a driver that the outbox can [write](crate::write::Connection) with. The handler takes its
/// arguments as any other, and after them a [`HandlerTransaction`], for which every adapter has a short name. When it answers
/// [`Outcome::Done`] or [`Outcome::delivered_as`], its event is recorded as DONE on the same connection, and both are committed together. When it fails, defers or
/// gives up, all is rolled back, and the event is tried again or goes DEAD as usual.
///
/// A node that is not the event's owner any more cannot commit: its transaction is rolled back, and the new owner's counts. Events that
/// the handler writes in the transaction commit with it, and take the hot path where the mode has one.
///
/// With a driver that blocks its thread, `source` is a function that gives a connection, such as `move || pool.get()`, and the handler is a
/// [`blocking`](super::blocking) one, which borrows the transaction as its last argument: `&mut PgConnection` with diesel,
/// `&mut rusqlite::Transaction<'_>` with rusqlite. It writes events by `delivery.outbox()?.blocking()`.
///
/// Only effects in this transaction happen exactly once. A call to another system happens at least once, as in any handler.
///
/// The time limit of the handler holds for the begin and for the commit as well, each for itself. The transaction is open while the handler
/// runs; on SQLite, where one transaction at a time can write, it begins with the write lock.
///
/// ```text
/// async fn book(delivery: Delivery, mut tx: PgTx) -> Result<(), sqlx::Error> {
///     let book = sqlx::query("INSERT INTO booking (event_id) VALUES ($1)").bind(delivery.id().as_str());
///     book.execute(&mut *tx).await?;
///     Ok(())
/// }
/// // .handle_type("payment.received", in_transaction(pool, book))
/// ```
pub fn in_transaction<S, F>(source: S, handler: F) -> InTransaction<S, F> {
    InTransaction { source: Arc::new(source), handler: Arc::new(handler) }
}

/// See [`in_transaction`].
pub struct InTransaction<S, F> {
    pub(super) source: Arc<S>,
    pub(super) handler: Arc<F>,
}

impl<S, F> fmt::Debug for InTransaction<S, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InTransaction").finish_non_exhaustive()
    }
}

/// The transaction that a handler works in; see [`in_transaction`]. Its event becomes DONE when it commits, after the handler.
///
/// It dereferences to the driver's type that runs statements, and events are written on it as on the guard of `Outbox::begin`. The handler
/// must not end it, which only a statement such as `COMMIT` would do: its event would be delivered again. Nor may the handler keep it: one
/// that is not dropped when the handler returns is not committed.
#[derive(Debug)]
pub struct HandlerTransaction<T, M>(OwnedMutexGuard<Transaction<T, M>>);

impl<T: Finish<M>, M> Deref for HandlerTransaction<T, M> {
    type Target = T::Inner;

    fn deref(&self) -> &T::Inner {
        &self.0
    }
}

impl<T: Finish<M>, M> DerefMut for HandlerTransaction<T, M> {
    fn deref_mut(&mut self) -> &mut T::Inner {
        &mut self.0
    }
}

/// The marker of [handlers' transactions](HandlerTransaction).
#[derive(Debug)]
pub struct Handled<M>(PhantomData<fn() -> M>);

#[diagnostic::do_not_recommend]
impl<T: Connection<M>, M> Connection<Handled<M>> for HandlerTransaction<T, M> {
    type Error = T::Error;

    fn dialect(&self) -> Dialect {
        Connection::<Guarded<M>>::dialect(&*self.0)
    }

    fn in_transaction(&mut self) -> Option<bool> {
        Connection::<Guarded<M>>::in_transaction(&mut *self.0)
    }

    fn insert(&mut self, insert: &Insert<'_>) -> impl Future<Output = Result<Vec<i64>, T::Error>> + Send {
        Connection::<Guarded<M>>::insert(&mut *self.0, insert)
    }

    fn run(&mut self, command: &Command<'_>) -> impl Future<Output = Result<u64, T::Error>> + Send {
        Connection::<Guarded<M>>::run(&mut *self.0, command)
    }

    fn read(&mut self, lookup: &Lookup<'_>) -> impl Future<Output = Result<Vec<String>, T::Error>> + Send {
        Connection::<Guarded<M>>::read(&mut *self.0, lookup)
    }

    fn id(&self) -> ConnectionId {
        Connection::<Guarded<M>>::id(&*self.0)
    }

    fn receipts(&self) -> Option<&Arc<Receipts>> {
        Connection::<Guarded<M>>::receipts(&*self.0)
    }
}

/// A handler that works in a transaction, as the engine calls it.
#[doc(hidden)]
pub trait TransactionalHandler: Send + Sync {
    /// Begins a transaction for one event, registered with `open`, with the [mark](crate::store::Store::mark_transaction) of the store.
    ///
    /// # Errors
    /// The driver's. The event has no part in them.
    fn begin<'a>(
        &'a self,
        open: &'a Arc<OpenTransactions>,
        mark: Option<Statement<'static>>,
    ) -> BoxFuture<'a, Result<Box<dyn BegunTransaction + 'a>, BoxError>>;
}

/// A transaction that was begun for an event.
#[doc(hidden)]
pub trait BegunTransaction: Send {
    /// Handles the event in it, and answers with the transaction, ready to be committed, if the event is delivered.
    fn handle<'a>(self: Box<Self>, delivery: Delivery) -> BoxFuture<'a, Result<Handling, HandlerError>>
    where
        Self: 'a;
}

/// The answer of a handler that works in a transaction.
#[doc(hidden)]
pub enum Handling {
    /// The event is delivered once this is committed.
    Done {
        /// The transaction.
        ready: Box<dyn ReadyToCommit>,
        /// The answer, which says that the event is delivered.
        outcome: Outcome,
    },
    /// It is not, and all was rolled back.
    Otherwise(Outcome),
}

impl fmt::Debug for Handling {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Done { outcome, .. } => f.debug_tuple("Done").field(outcome).finish(),
            Self::Otherwise(outcome) => f.debug_tuple("Otherwise").field(outcome).finish(),
        }
    }
}

/// A transaction in which an event was handled.
#[doc(hidden)]
pub trait ReadyToCommit: Send {
    /// Makes the change that completes the event, of one row, and commits. Dropping it rolls it back.
    ///
    /// # Errors
    /// The row is not as it was delivered or not the node's any more, or the driver's error; after that of the commit the outcome is
    /// unknown.
    fn commit<'a>(self: Box<Self>, completion: EventCompletion) -> BoxFuture<'a, Result<(), HandlerError>>
    where
        Self: 'a;
}

/// The change that completes an event, for whichever thread makes it.
#[doc(hidden)]
#[derive(Debug)]
pub struct EventCompletion {
    pub store: Arc<dyn Store>,
    pub node: NodeId,
    pub fence: Fence,
    pub verdict: Verdict,
}

struct Ready<T, M>(Transaction<T, M>);

impl<T, M, E> ReadyToCommit for Ready<T, M>
where
    T: Connection<M> + Finish<M, Error = E> + Send,
    E: Error + Send + Sync + 'static,
{
    fn commit<'a>(self: Box<Self>, completion: EventCompletion) -> BoxFuture<'a, Result<(), HandlerError>>
    where
        Self: 'a,
    {
        Box::pin(async move { commit(self.0, &completion).await })
    }
}

/// Completes an event in the transaction in which it was handled, and commits.
pub(super) async fn commit<T, M, E>(
    mut transaction: Transaction<T, M>,
    completion: &EventCompletion,
) -> Result<(), HandlerError>
where
    T: Connection<M> + Finish<M, Error = E>,
    E: Error + Send + Sync + 'static,
{
    if !planted_bug::is_active("transaction_commits_without_its_event") {
        let EventCompletion { store, node, fence, verdict } = completion;
        let command = store.complete(node, *fence, verdict);
        match Connection::<Guarded<M>>::run(&mut transaction, &command).await {
            Ok(1) => {}
            Ok(_) if planted_bug::is_active("transaction_of_a_stale_owner_commits") => {}
            Ok(_) => return Err(HandlerError::interrupted(NOT_OURS)),
            Err(error) => return Err(failed(NOT_RECORDED, &error)),
        }
    }
    transaction.commit().await.map_err(|error| failed(NOT_COMMITTED, &error))
}

/// A transaction with the [mark](Store::mark_transaction) of the store, if that has one.
pub(super) async fn marked<T: Connection<M>, M>(
    mut transaction: Transaction<T, M>,
    mark: Option<Statement<'static>>,
) -> Result<Transaction<T, M>, <T as Connection<M>>::Error> {
    if let Some(statement) = mark {
        let mark = Command { action: Action::Mark, statements: vec![statement] };
        Connection::<Guarded<M>>::run(&mut transaction, &mark).await?;
    }
    Ok(transaction)
}

/// The problem of a completion that changes no row.
const NOT_OURS: &str = "the handler's transaction was rolled back: its event is another node's by now, was changed meanwhile, or is not in the \
    database of the handler's transactions; give `in_transaction` a pool of the outbox's database";

const NOT_RECORDED: &str = "its event could not be recorded as DONE, so the handler's transaction was rolled back";
const NOT_COMMITTED: &str =
    "the commit of the handler's transaction failed; if it has happened all the same, this failure counts for nothing";

fn failed(problem: &str, error: &dyn Error) -> HandlerError {
    HandlerError::interrupted(format!("{problem}: {}", text(error)))
}

/// An error with its causes.
fn text(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    for _ in 0..16 {
        let Some(error) = cause else { break };
        let said = error.to_string();
        if !text.ends_with(&said) {
            text = format!("{text}: {said}");
        }
        cause = error.source();
    }
    text
}

/// A handler of a shape that is called by `call`.
struct Called<S, T, M, C> {
    source: Arc<S>,
    call: C,
    marker: PhantomData<fn() -> (T, M)>,
}

impl<S, T, M, E, C, Fut> TransactionalHandler for Called<S, T, M, C>
where
    S: Send + Sync + 'static,
    for<'s> &'s S: Begin<M, Transaction = T, Error = E>,
    T: Connection<M> + Finish<M, Error = E> + Send + 'static,
    M: 'static,
    E: Error + Send + Sync + 'static,
    C: Fn(Delivery, HandlerTransaction<T, M>) -> Result<Fut, HandlerError> + Send + Sync + 'static,
    Fut: Future<Output: IntoOutcome> + Send + 'static,
{
    fn begin<'a>(
        &'a self,
        open: &'a Arc<OpenTransactions>,
        mark: Option<Statement<'static>>,
    ) -> BoxFuture<'a, Result<Box<dyn BegunTransaction + 'a>, BoxError>> {
        Box::pin(async move {
            let transaction = marked(Transaction::new(Begin::begin(&*self.source).await?, open), mark).await?;
            Ok(Box::new(Begun { transaction, call: &self.call }) as _)
        })
    }
}

/// A transaction, and the handler that is to work in it.
struct Begun<'h, T, M, C> {
    transaction: Transaction<T, M>,
    call: &'h C,
}

impl<T, M, E, C, Fut> BegunTransaction for Begun<'_, T, M, C>
where
    T: Connection<M> + Finish<M, Error = E> + Send + 'static,
    M: 'static,
    E: Error + Send + Sync + 'static,
    C: Fn(Delivery, HandlerTransaction<T, M>) -> Result<Fut, HandlerError> + Send + Sync + 'static,
    Fut: Future<Output: IntoOutcome> + Send + 'static,
{
    fn handle<'a>(self: Box<Self>, delivery: Delivery) -> BoxFuture<'a, Result<Handling, HandlerError>>
    where
        Self: 'a,
    {
        Box::pin(async move {
            let Self { transaction, call } = *self;
            let place = Arc::new(Mutex::new(transaction));
            let lent = HandlerTransaction(Arc::clone(&place).lock_owned().await);
            let outcome = call(delivery, lent)?.await.into_outcome()?;
            if !outcome.is_delivered() {
                return Ok(Handling::Otherwise(outcome));
            }
            let transaction = Arc::try_unwrap(place).map_err(|_| {
                HandlerError::interrupted(
                    "the handler has kept its transaction, so that it cannot be committed; drop it before the handler returns",
                )
            })?;
            Ok(Handling::Done { ready: Box::new(Ready(transaction.into_inner())), outcome })
        })
    }
}

/// The answer to a call without an engine: nothing would record the event.
pub(super) fn refuse() -> BoxFuture<'static, Result<Outcome, HandlerError>> {
    let problem = "a handler with a transaction is called by an outbox alone, which commits it";
    Box::pin(std::future::ready(Err(HandlerError::unrecoverable(problem))))
}

impl<S, T, M, C> Handler for Called<S, T, M, C>
where
    Self: TransactionalHandler + 'static,
{
    fn handle(&self, _: Delivery) -> BoxFuture<'_, Result<Outcome, HandlerError>> {
        refuse()
    }

    fn transactional(&self) -> Option<&dyn TransactionalHandler> {
        Some(self)
    }
}

/// A function that works in a transaction, taken apart: without the transaction, which is its last argument.
#[derive(Debug)]
pub struct TransactionalCall<S, F, A, T, M, R> {
    wrapped: InTransaction<S, F>,
    parts: PhantomData<fn(A, T, M) -> R>,
}

#[diagnostic::do_not_recommend]
impl<S, F, A, T, M, R> Signature<shape::InTransaction<shape::One<A>, T, M>> for InTransaction<S, F>
where
    F: Fn(A, HandlerTransaction<T, M>) -> R,
{
    type Form = TransactionalCall<S, F, (A,), T, M, R>;

    fn form(self) -> Self::Form {
        TransactionalCall { wrapped: self, parts: PhantomData }
    }
}

#[diagnostic::do_not_recommend]
impl<S, F, A, B, T, M, R> Signature<shape::InTransaction<shape::Two<A, B>, T, M>> for InTransaction<S, F>
where
    F: Fn(A, B, HandlerTransaction<T, M>) -> R,
{
    type Form = TransactionalCall<S, F, (A, B), T, M, R>;

    fn form(self) -> Self::Form {
        TransactionalCall { wrapped: self, parts: PhantomData }
    }
}

impl<S, F, P, T, M, E, R> EventForm for TransactionalCall<S, F, (P,), T, M, R>
where
    S: Send + Sync + 'static,
    for<'s> &'s S: Begin<M, Transaction = T, Error = E>,
    T: Connection<M> + Finish<M, Error = E> + Send + 'static,
    M: 'static,
    E: Error + Send + Sync + 'static,
    F: Fn(P, HandlerTransaction<T, M>) -> R + Send + Sync + 'static,
    P: HandledEvent<Codec: Decode<P>> + 'static,
    R: Answer<Answered: IntoOutcome> + Send + 'static,
{
    fn event_kind() -> EventKind {
        P::event_kind()
    }

    fn into_handler(self) -> Arc<dyn Handler> {
        let InTransaction { source, handler } = self.wrapped;
        called(source, move |delivery: Delivery, transaction| Ok(handler(P::read(&delivery)?, transaction)))
    }
}

impl<S, F, P, D, T, M, E, R> EventForm for TransactionalCall<S, F, (P, D), T, M, R>
where
    S: Send + Sync + 'static,
    for<'s> &'s S: Begin<M, Transaction = T, Error = E>,
    T: Connection<M> + Finish<M, Error = E> + Send + 'static,
    M: 'static,
    E: Error + Send + Sync + 'static,
    F: Fn(P, D, HandlerTransaction<T, M>) -> R + Send + Sync + 'static,
    P: HandledEvent<Codec: Decode<P>> + 'static,
    D: 'static,
    Delivery: PassedAs<D>,
    R: Answer<Answered: IntoOutcome> + Send + 'static,
{
    fn event_kind() -> EventKind {
        P::event_kind()
    }

    fn into_handler(self) -> Arc<dyn Handler> {
        let InTransaction { source, handler } = self.wrapped;
        called(source, move |delivery: Delivery, transaction| {
            Ok(handler(P::read(&delivery)?, delivery.pass(), transaction))
        })
    }
}

impl<S, F, D, T, M, E, R> DeliveryForm for TransactionalCall<S, F, (D,), T, M, R>
where
    S: Send + Sync + 'static,
    for<'s> &'s S: Begin<M, Transaction = T, Error = E>,
    T: Connection<M> + Finish<M, Error = E> + Send + 'static,
    M: 'static,
    E: Error + Send + Sync + 'static,
    F: Fn(D, HandlerTransaction<T, M>) -> R + Send + Sync + 'static,
    D: 'static,
    Delivery: PassedAs<D>,
    R: Answer<Answered: IntoOutcome> + Send + 'static,
{
    fn into_handler(self) -> Arc<dyn Handler> {
        let InTransaction { source, handler } = self.wrapped;
        called(source, move |delivery, transaction| Ok(handler(delivery.pass(), transaction)))
    }
}

fn called<S, T, M, E, C, Fut>(source: Arc<S>, call: C) -> Arc<dyn Handler>
where
    S: Send + Sync + 'static,
    for<'s> &'s S: Begin<M, Transaction = T, Error = E>,
    T: Connection<M> + Finish<M, Error = E> + Send + 'static,
    M: 'static,
    E: Error + Send + Sync + 'static,
    C: Fn(Delivery, HandlerTransaction<T, M>) -> Result<Fut, HandlerError> + Send + Sync + 'static,
    Fut: Future<Output: IntoOutcome> + Send + 'static,
{
    Arc::new(Called { source, call, marker: PhantomData })
}
