//! Handlers that block their thread, in the transaction in which their event becomes DONE.

use std::fmt;
use std::marker::PhantomData;
use std::ops::DerefMut;
use std::sync::Arc;

use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use super::blocking::{AwaitedThread, Blocking, InThread};
use super::into_handler::{DeliveryForm, EventForm};
use super::signature::{HandledEvent, PassedAs, Signature};
use super::transaction::{
    BegunTransaction, EventCompletion, Handling, InTransaction, ReadyToCommit, TransactionalHandler, commit, marked,
    refuse,
};
use super::{BoxFuture, Delivery, EventKind, Handler, HandlerError, IntoOutcome, Outcome, shape};
use crate::error::BoxError;
use crate::event::Decode;
use crate::write::{Begin, Finish, OpenTransactions, Statement, Synchronous, Transaction, now};

/// The side of a blocking driver's transaction on which statements run.
type Inner<'c, D, M> = <<&'c mut D as Begin<M>>::Transaction as Finish<M>>::Inner;

/// The result of a source, a connection or an error, and the marker of its adapter.
type Given<C, E, M> = PhantomData<fn() -> (Result<C, E>, M)>;

/// The work of one event on a thread that may block, from the begin of its transaction to the commit. It goes on as far as it is told to:
/// when nobody waits any more, the transaction is rolled back.
struct Thread {
    open: Arc<OpenTransactions>,
    mark: Option<Statement<'static>>,
    begun: oneshot::Sender<Result<(), BoxError>>,
    deliveries: oneshot::Receiver<(Delivery, InThread)>,
    answers: oneshot::Sender<Result<Outcome, HandlerError>>,
    completions: oneshot::Receiver<EventCompletion>,
    ended: oneshot::Sender<Result<(), HandlerError>>,
}

impl Thread {
    fn run<S, C, D, E, M, F>(self, source: &S, call: F)
    where
        S: Fn() -> Result<C, E>,
        C: DerefMut<Target = D>,
        E: Into<BoxError>,
        for<'c> &'c mut D: Begin<M> + Synchronous<M>,
        F: for<'t, 'c> FnOnce(Delivery, &'t mut Inner<'c, D, M>) -> Result<Outcome, HandlerError>,
    {
        let mut connection = match source() {
            Ok(connection) => connection,
            Err(error) => return drop(self.begun.send(Err(error.into()))),
        };
        let mut transaction = match begin(&mut *connection, &self.open, self.mark) {
            Ok(transaction) => transaction,
            Err(error) => return drop(self.begun.send(Err(error))),
        };
        if self.begun.send(Ok(())).is_err() {
            return;
        }
        let Ok((delivery, in_thread)) = self.deliveries.blocking_recv() else { return };
        let answer = call(delivery, &mut transaction);
        // The handler has ended; what follows is ours.
        drop(in_thread);
        if !matches!(&answer, Ok(outcome) if outcome.is_delivered()) {
            // Before the answer, so that nothing stands in the way of the verdict.
            drop(transaction);
            return drop(self.answers.send(answer));
        }
        if self.answers.send(answer).is_err() {
            return;
        }
        let Ok(completion) = self.completions.blocking_recv() else { return };
        drop(self.ended.send(now(commit(transaction, &completion))));
    }
}

fn begin<B, M>(
    connection: B,
    open: &Arc<OpenTransactions>,
    mark: Option<Statement<'static>>,
) -> Result<Transaction<B::Transaction, M>, BoxError>
where
    B: Begin<M> + Synchronous<M>,
{
    let transaction = now(connection.begin())?;
    Ok(now(marked(Transaction::new(transaction, open), mark))?)
}

/// A handler of a shape that is called by `call`.
struct Called<S, C, E, M, F> {
    source: Arc<S>,
    call: Arc<F>,
    connection: Given<C, E, M>,
}

impl<S, C, D, E, M, F> TransactionalHandler for Called<S, C, E, M, F>
where
    S: Fn() -> Result<C, E> + Send + Sync + 'static,
    C: DerefMut<Target = D> + 'static,
    D: 'static,
    E: Into<BoxError> + 'static,
    M: 'static,
    for<'c> &'c mut D: Begin<M> + Synchronous<M>,
    F: for<'t, 'c> Fn(Delivery, &'t mut Inner<'c, D, M>) -> Result<Outcome, HandlerError> + Send + Sync + 'static,
{
    fn begin<'a>(
        &'a self,
        open: &'a Arc<OpenTransactions>,
        mark: Option<Statement<'static>>,
    ) -> BoxFuture<'a, Result<Box<dyn BegunTransaction + 'a>, BoxError>> {
        Box::pin(async move {
            let (begun, has_begun) = oneshot::channel();
            let (delivery, deliveries) = oneshot::channel();
            let (answers, answer) = oneshot::channel();
            let (completion, completions) = oneshot::channel();
            let (ended, end) = oneshot::channel();
            let thread = Thread { open: Arc::clone(open), mark, begun, deliveries, answers, completions, ended };
            let (source, call) = (Arc::clone(&self.source), Arc::clone(&self.call));
            let task = tokio::task::spawn_blocking(move || {
                thread.run(&*source, |delivery, inner: &mut Inner<'_, D, M>| call(delivery, inner));
            });
            match has_begun.await {
                Ok(Ok(())) => Ok(Box::new(Begun { task, delivery, answer, completion, end }) as _),
                Ok(Err(error)) => Err(error),
                Err(_) => Err(gone(task).await.to_string().into()),
            }
        })
    }
}

/// The error of a thread that has ended without an answer. Its panic continues here, where the worker turns it into a failure.
async fn gone(task: JoinHandle<()>) -> HandlerError {
    if let Err(failed) = task.await
        && let Ok(panic) = failed.try_into_panic()
    {
        std::panic::resume_unwind(panic);
    }
    HandlerError::interrupted("the runtime is shutting down")
}

/// The worker's side of a thread on which a transaction is open.
struct Begun {
    task: JoinHandle<()>,
    delivery: oneshot::Sender<(Delivery, InThread)>,
    answer: oneshot::Receiver<Result<Outcome, HandlerError>>,
    completion: oneshot::Sender<EventCompletion>,
    end: oneshot::Receiver<Result<(), HandlerError>>,
}

impl BegunTransaction for Begun {
    fn handle<'a>(self: Box<Self>, delivery: Delivery) -> BoxFuture<'a, Result<Handling, HandlerError>>
    where
        Self: 'a,
    {
        Box::pin(async move {
            let Self { task, delivery: deliveries, answer, completion, end } = *self;
            let (awaited, in_thread) = AwaitedThread::new(delivery.abandoned(), task.abort_handle());
            if deliveries.send((delivery, in_thread)).is_err() {
                return Err(gone(task).await);
            }
            let answered = answer.await;
            drop(awaited);
            match answered {
                Ok(Ok(outcome)) if outcome.is_delivered() => {
                    Ok(Handling::Done { ready: Box::new(Ready { task, completion, end }), outcome })
                }
                Ok(other) => Ok(Handling::Otherwise(other?)),
                Err(_) => Err(gone(task).await),
            }
        })
    }
}

struct Ready {
    task: JoinHandle<()>,
    completion: oneshot::Sender<EventCompletion>,
    end: oneshot::Receiver<Result<(), HandlerError>>,
}

impl ReadyToCommit for Ready {
    fn commit<'a>(self: Box<Self>, completion: EventCompletion) -> BoxFuture<'a, Result<(), HandlerError>>
    where
        Self: 'a,
    {
        Box::pin(async move {
            let Self { task, completion: completions, end } = *self;
            // Sent or not: a thread that is gone answers nothing.
            drop(completions.send(completion));
            match end.await {
                Ok(ended) => ended,
                Err(_) => Err(gone(task).await),
            }
        })
    }
}

impl<S, C, E, M, F> Handler for Called<S, C, E, M, F>
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

/// A function that blocks its thread and works in a transaction, taken apart: without the transaction, which is its last argument.
pub struct BlockingTransactionalCall<S, F, A, C, E, M, R> {
    source: Arc<S>,
    function: Arc<F>,
    connection: Given<C, E, M>,
    parts: PhantomData<fn(A) -> R>,
}

impl<S, F, A, C, E, M, R> fmt::Debug for BlockingTransactionalCall<S, F, A, C, E, M, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BlockingTransactionalCall").finish_non_exhaustive()
    }
}

impl<S, F, A, C, E, M, R> BlockingTransactionalCall<S, F, A, C, E, M, R> {
    fn new(wrapped: InTransaction<S, Blocking<F>>) -> Self {
        let function = wrapped.handler.function();
        Self { source: wrapped.source, function, connection: PhantomData, parts: PhantomData }
    }
}

#[diagnostic::do_not_recommend]
impl<S, F, A, C, D, E, M, R> Signature<shape::InBlockingTransaction<shape::One<A>, C, E, M>>
    for InTransaction<S, Blocking<F>>
where
    S: Fn() -> Result<C, E>,
    C: DerefMut<Target = D>,
    D: 'static,
    for<'c> &'c mut D: Begin<M>,
    F: for<'t, 'c> Fn(A, &'t mut Inner<'c, D, M>) -> R,
{
    type Form = BlockingTransactionalCall<S, F, (A,), C, E, M, R>;

    fn form(self) -> Self::Form {
        BlockingTransactionalCall::new(self)
    }
}

#[diagnostic::do_not_recommend]
impl<S, F, A, B, C, D, E, M, R> Signature<shape::InBlockingTransaction<shape::Two<A, B>, C, E, M>>
    for InTransaction<S, Blocking<F>>
where
    S: Fn() -> Result<C, E>,
    C: DerefMut<Target = D>,
    D: 'static,
    for<'c> &'c mut D: Begin<M>,
    F: for<'t, 'c> Fn(A, B, &'t mut Inner<'c, D, M>) -> R,
{
    type Form = BlockingTransactionalCall<S, F, (A, B), C, E, M, R>;

    fn form(self) -> Self::Form {
        BlockingTransactionalCall::new(self)
    }
}

impl<S, F, P, C, D, E, M, R> EventForm for BlockingTransactionalCall<S, F, (P,), C, E, M, R>
where
    S: Fn() -> Result<C, E> + Send + Sync + 'static,
    C: DerefMut<Target = D> + 'static,
    D: 'static,
    E: Into<BoxError> + 'static,
    M: 'static,
    for<'c> &'c mut D: Begin<M> + Synchronous<M>,
    F: for<'t, 'c> Fn(P, &'t mut Inner<'c, D, M>) -> R + Send + Sync + 'static,
    P: HandledEvent<Codec: Decode<P>> + 'static,
    R: IntoOutcome + 'static,
{
    fn event_kind() -> EventKind {
        P::event_kind()
    }

    fn into_handler(self) -> Arc<dyn Handler> {
        let Self { source, function, .. } = self;
        called(source, move |delivery: Delivery, inner: &mut Inner<'_, D, M>| {
            function(P::read(&delivery)?, inner).into_outcome()
        })
    }
}

impl<S, F, P, A, C, D, E, M, R> EventForm for BlockingTransactionalCall<S, F, (P, A), C, E, M, R>
where
    S: Fn() -> Result<C, E> + Send + Sync + 'static,
    C: DerefMut<Target = D> + 'static,
    D: 'static,
    E: Into<BoxError> + 'static,
    M: 'static,
    for<'c> &'c mut D: Begin<M> + Synchronous<M>,
    F: for<'t, 'c> Fn(P, A, &'t mut Inner<'c, D, M>) -> R + Send + Sync + 'static,
    P: HandledEvent<Codec: Decode<P>> + 'static,
    A: 'static,
    Delivery: PassedAs<A>,
    R: IntoOutcome + 'static,
{
    fn event_kind() -> EventKind {
        P::event_kind()
    }

    fn into_handler(self) -> Arc<dyn Handler> {
        let Self { source, function, .. } = self;
        called(source, move |delivery: Delivery, inner: &mut Inner<'_, D, M>| {
            function(P::read(&delivery)?, delivery.pass(), inner).into_outcome()
        })
    }
}

impl<S, F, A, C, D, E, M, R> DeliveryForm for BlockingTransactionalCall<S, F, (A,), C, E, M, R>
where
    S: Fn() -> Result<C, E> + Send + Sync + 'static,
    C: DerefMut<Target = D> + 'static,
    D: 'static,
    E: Into<BoxError> + 'static,
    M: 'static,
    for<'c> &'c mut D: Begin<M> + Synchronous<M>,
    F: for<'t, 'c> Fn(A, &'t mut Inner<'c, D, M>) -> R + Send + Sync + 'static,
    A: 'static,
    Delivery: PassedAs<A>,
    R: IntoOutcome + 'static,
{
    fn into_handler(self) -> Arc<dyn Handler> {
        let Self { source, function, .. } = self;
        called(source, move |delivery: Delivery, inner: &mut Inner<'_, D, M>| {
            function(delivery.pass(), inner).into_outcome()
        })
    }
}

fn called<S, C, D, E, M, F>(source: Arc<S>, call: F) -> Arc<dyn Handler>
where
    S: Fn() -> Result<C, E> + Send + Sync + 'static,
    C: DerefMut<Target = D> + 'static,
    D: 'static,
    E: Into<BoxError> + 'static,
    M: 'static,
    for<'c> &'c mut D: Begin<M> + Synchronous<M>,
    F: for<'t, 'c> Fn(Delivery, &'t mut Inner<'c, D, M>) -> Result<Outcome, HandlerError> + Send + Sync + 'static,
{
    Arc::new(Called { source, call: Arc::new(call), connection: PhantomData })
}
