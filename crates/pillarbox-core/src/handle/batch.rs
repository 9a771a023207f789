use std::sync::Arc;

use super::signature::{Answer, Call, PassedAs};
use super::{BoxFuture, Delivery, HandlerError, IntoOutcome, Outcome, shape};

/// A handler of many events at once, as the engine calls it. Async functions from `Vec<Delivery>` to a vector of answers
/// become one by themselves.
#[auto_impl::auto_impl(Arc)]
pub trait BatchHandler: Send + Sync + 'static {
    /// Handles events and answers for each, in the order of the deliveries. An event without an answer counts as failed;
    /// a panic counts as a failure of all of them.
    fn handle(&self, deliveries: Vec<Delivery>) -> BoxFuture<'_, Vec<Result<Outcome, HandlerError>>>;

    /// The number of the event's lane: events of one lane may share a batch. A handler that passes events on to several places gives
    /// each place a number, so that a slow place holds up no event that goes elsewhere.
    ///
    /// It is asked while the queue is locked, so it has to be quick.
    fn lane(&self, delivery: &Delivery) -> u64 {
        let _ = delivery;
        0
    }

    /// The number of lanes. With more than one, none takes more than half of the workers and of the memory, so that there is
    /// always some left for the others.
    fn lanes(&self) -> usize {
        1
    }

    /// True if all events of this one's type are of its lane. Then they can be left in the table by their type while the lane has no
    /// room for them; others are read for that.
    fn has_type_alone(&self, delivery: &Delivery) -> bool {
        let _ = delivery;
        false
    }
}

/// A handler of events in batches: `async fn(Vec<Delivery>) -> Vec<R>`, with one answer for each delivery, in order; or an
/// object that implements [`BatchHandler`].
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a batch handler",
    label = "expected an async function of a `Vec<Delivery>`, or a type that implements `BatchHandler`",
    note = "it takes one argument"
)]
pub trait IntoBatchHandler<Shape> {
    /// The engine's form of it.
    fn into_batch_handler(self) -> Arc<dyn BatchHandler>;
}

impl<S, H: BatchSignature<S, Form: BatchForm>> IntoBatchHandler<S> for H {
    fn into_batch_handler(self) -> Arc<dyn BatchHandler> {
        self.form().into_batch_handler()
    }
}

/// As [`Signature`](super::signature::Signature): a trait of its own, since an object may be a handler of both kinds.
pub trait BatchSignature<Shape> {
    /// Its parts.
    type Form;

    /// Takes it apart.
    fn form(self) -> Self::Form;
}

impl<F, A, R> BatchSignature<shape::One<A>> for F
where
    F: Fn(A) -> R,
{
    type Form = Call<F, (A,), R>;

    fn form(self) -> Self::Form {
        Call::new(self)
    }
}

/// A function that takes batches, taken apart.
#[diagnostic::on_unimplemented(
    message = "this is not a batch handler",
    label = "expected `async fn(Vec<Delivery>) -> Vec<R>`",
    note = "it answers once for each delivery, in order; R is (), Outcome, Result<(), E> or Result<Outcome, E>"
)]
pub trait BatchForm {
    /// The engine's form of it.
    fn into_batch_handler(self) -> Arc<dyn BatchHandler>;
}

struct BatchFn<F>(F);

impl<F> BatchHandler for BatchFn<F>
where
    F: Fn(Vec<Delivery>) -> BoxFuture<'static, Vec<Result<Outcome, HandlerError>>> + Send + Sync + 'static,
{
    fn handle(&self, deliveries: Vec<Delivery>) -> BoxFuture<'_, Vec<Result<Outcome, HandlerError>>> {
        (self.0)(deliveries)
    }
}

/// The batch handler that calls `call`.
pub(super) fn batch_handler(
    call: impl Fn(Vec<Delivery>) -> BoxFuture<'static, Vec<Result<Outcome, HandlerError>>> + Send + Sync + 'static,
) -> impl BatchHandler {
    BatchFn(call)
}

impl<F, A, R, O> BatchForm for Call<F, (A,), R>
where
    F: Fn(A) -> R + Send + Sync + 'static,
    A: 'static,
    Vec<Delivery>: PassedAs<A>,
    R: Answer<Answered = Vec<O>> + Send + 'static,
    O: IntoOutcome,
{
    fn into_batch_handler(self) -> Arc<dyn BatchHandler> {
        Arc::new(batch_handler(move |deliveries| {
            let future = (self.function)(deliveries.pass());
            Box::pin(async move { future.await.into_iter().map(O::into_outcome).collect() })
        }))
    }
}

/// An object that implements [`BatchHandler`].
#[derive(Debug)]
pub struct BatchObject<H>(H);

impl<H: BatchHandler> BatchSignature<shape::Object> for H {
    type Form = BatchObject<H>;

    fn form(self) -> Self::Form {
        BatchObject(self)
    }
}

impl<H: BatchHandler> BatchForm for BatchObject<H> {
    fn into_batch_handler(self) -> Arc<dyn BatchHandler> {
        Arc::new(self.0)
    }
}
