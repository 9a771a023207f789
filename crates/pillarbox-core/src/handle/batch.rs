use std::future::Future;
use std::sync::Arc;

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
    label = "expected `async fn(Vec<Delivery>) -> Vec<R>`",
    note = "it answers once for each delivery, in order; R is (), Outcome, Result<(), E> or Result<Outcome, E>",
    note = "its future is Send: nothing that is not, such as an `Rc` or the guard of a std `Mutex`, is held across an await"
)]
pub trait IntoBatchHandler<R> {
    /// The engine's form of it.
    fn into_batch_handler(self) -> Arc<dyn BatchHandler>;
}

struct BatchFn<F>(F);

impl<F, Fut, R> BatchHandler for BatchFn<F>
where
    F: Fn(Vec<Delivery>) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Vec<R>> + Send + 'static,
    R: IntoOutcome,
{
    fn handle(&self, deliveries: Vec<Delivery>) -> BoxFuture<'_, Vec<Result<Outcome, HandlerError>>> {
        let future = (self.0)(deliveries);
        Box::pin(async move { future.await.into_iter().map(R::into_outcome).collect() })
    }
}

impl<F, Fut, R> IntoBatchHandler<R> for F
where
    F: Fn(Vec<Delivery>) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Vec<R>> + Send + 'static,
    R: IntoOutcome,
{
    fn into_batch_handler(self) -> Arc<dyn BatchHandler> {
        Arc::new(BatchFn(self))
    }
}

impl<H: BatchHandler> IntoBatchHandler<shape::Object> for H {
    fn into_batch_handler(self) -> Arc<dyn BatchHandler> {
        Arc::new(self)
    }
}
