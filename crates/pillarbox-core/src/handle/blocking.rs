use std::marker::PhantomData;
use std::sync::Arc;

use super::{
    BoxFuture, Delivery, EventHandler, Handler, HandlerError, IntoHandler, IntoOutcome, Outcome, Route, shape,
};
use crate::event::{Decode, Event};

/// Wraps a handler that is not async, so that it runs on a thread where blocking is allowed.
///
/// A worker waits for it, so no more than `workers` of them run at once. Shutdown cannot interrupt it: past the drain
/// timeout its verdict is no longer recorded.
///
/// ```
/// use pillarbox_core::handle::{Delivery, blocking};
/// use pillarbox_core::run::Outbox;
/// # use pillarbox_core::stores::memory::MemoryStore;
/// # fn print_label(_: &Delivery) -> std::io::Result<()> { Ok(()) }
/// let outbox = Outbox::single_node(MemoryStore::new())
///     .handle_type("label.wanted", blocking(|delivery: Delivery| print_label(&delivery)));
/// ```
pub fn blocking<F>(handler: F) -> Blocking<F> {
    Blocking(Arc::new(handler))
}

/// See [`blocking`].
#[derive(Debug)]
pub struct Blocking<F>(Arc<F>);

struct BlockingFn<F, S>(Arc<F>, PhantomData<fn() -> S>);

/// Runs `call` on a blocking thread; a panic there continues here, where the worker turns it into a failure.
async fn off_thread<R: Send + 'static>(
    call: impl FnOnce() -> R + Send + 'static,
    then: impl FnOnce(R) -> Result<Outcome, HandlerError>,
) -> Result<Outcome, HandlerError> {
    match tokio::task::spawn_blocking(call).await {
        Ok(returned) => then(returned),
        Err(failed) => match failed.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            Err(_) => Err(HandlerError::interrupted("the runtime is shutting down")),
        },
    }
}

impl<F, P, R> Handler for BlockingFn<F, shape::Typed<P>>
where
    F: Fn(P) -> R + Send + Sync + 'static,
    P: Event<Codec: Decode<P>> + Send + 'static,
    R: IntoOutcome + Send + 'static,
{
    fn handle(&self, delivery: Delivery) -> BoxFuture<'_, Result<Outcome, HandlerError>> {
        let handler = Arc::clone(&self.0);
        Box::pin(async move {
            let payload = delivery.decode()?;
            off_thread(move || handler(payload), R::into_outcome).await
        })
    }
}

impl<F, P, R> Handler for BlockingFn<F, shape::TypedWithDelivery<P>>
where
    F: Fn(P, Delivery) -> R + Send + Sync + 'static,
    P: Event<Codec: Decode<P>> + Send + 'static,
    R: IntoOutcome + Send + 'static,
{
    fn handle(&self, delivery: Delivery) -> BoxFuture<'_, Result<Outcome, HandlerError>> {
        let handler = Arc::clone(&self.0);
        Box::pin(async move {
            let payload = delivery.decode()?;
            off_thread(move || handler(payload, delivery), R::into_outcome).await
        })
    }
}

impl<F, R> Handler for BlockingFn<F, shape::Generic>
where
    F: Fn(Delivery) -> R + Send + Sync + 'static,
    R: IntoOutcome + Send + 'static,
{
    fn handle(&self, delivery: Delivery) -> BoxFuture<'_, Result<Outcome, HandlerError>> {
        let handler = Arc::clone(&self.0);
        Box::pin(off_thread(move || handler(delivery), R::into_outcome))
    }
}

#[diagnostic::do_not_recommend]
impl<F, P, R> EventHandler<shape::Blocking<shape::Typed<P>>> for Blocking<F>
where
    F: Fn(P) -> R + Send + Sync + 'static,
    P: Event<Codec: Decode<P>> + Send + 'static,
    R: IntoOutcome + Send + 'static,
{
    fn route() -> Route {
        Route::of::<P>()
    }

    fn into_handler(self) -> Arc<dyn Handler> {
        Arc::new(BlockingFn::<F, shape::Typed<P>>(self.0, PhantomData))
    }
}

#[diagnostic::do_not_recommend]
impl<F, P, R> EventHandler<shape::Blocking<shape::TypedWithDelivery<P>>> for Blocking<F>
where
    F: Fn(P, Delivery) -> R + Send + Sync + 'static,
    P: Event<Codec: Decode<P>> + Send + 'static,
    R: IntoOutcome + Send + 'static,
{
    fn route() -> Route {
        Route::of::<P>()
    }

    fn into_handler(self) -> Arc<dyn Handler> {
        Arc::new(BlockingFn::<F, shape::TypedWithDelivery<P>>(self.0, PhantomData))
    }
}

#[diagnostic::do_not_recommend]
impl<F, R> IntoHandler<shape::Blocking<shape::Generic>> for Blocking<F>
where
    F: Fn(Delivery) -> R + Send + Sync + 'static,
    R: IntoOutcome + Send + 'static,
{
    fn into_handler(self) -> Arc<dyn Handler> {
        Arc::new(BlockingFn::<F, shape::Generic>(self.0, PhantomData))
    }
}
