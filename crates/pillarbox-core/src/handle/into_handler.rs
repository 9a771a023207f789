use std::future::Future;
use std::sync::Arc;

use super::{BoxFuture, Delivery, Handler, HandlerError, IntoOutcome, Outcome, Route};
use crate::event::{Decode, Event};

/// The shapes a handler can have. They exist so that one trait can cover functions of different signatures; they are
/// inferred and never written.
pub mod shape {
    use std::marker::PhantomData;

    /// `async fn(Payload)`
    #[derive(Debug)]
    pub struct Typed<P>(PhantomData<P>);
    /// `async fn(Payload, Delivery)`
    #[derive(Debug)]
    pub struct TypedWithDelivery<P>(PhantomData<P>);
    /// `async fn(Delivery)`
    #[derive(Debug)]
    pub struct Generic;
    /// An object that implements `Handler`.
    #[derive(Debug)]
    pub struct Object;
    /// `blocking(…)` around one of the others.
    #[derive(Debug)]
    pub struct Blocking<S>(PhantomData<S>);
    /// `in_transaction(…)` around one of the others.
    #[derive(Debug)]
    pub struct InTransaction<S, T, M>(PhantomData<(S, T, M)>);
}

/// A handler of events of any type: `async fn(Delivery)`, or an object that implements [`Handler`].
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a handler of deliveries",
    label = "expected an async function that takes a `Delivery`",
    note = "a handler of deliveries is `async fn(Delivery)`, a closure like it, or a type that implements `Handler`; one that is not async is wrapped: `blocking(…)`",
    note = "it returns (), Outcome, Result<(), E> or Result<Outcome, E>, where E is an error that is Send and Sync",
    note = "its future is Send: nothing that is not, such as an `Rc` or the guard of a std `Mutex`, is held across an await",
    note = "a function that takes a typed event is registered with `handle`, which reads the event's name from its type"
)]
pub trait IntoHandler<Shape> {
    /// The engine's form of it.
    fn into_handler(self) -> Arc<dyn Handler>;
}

/// A handler of one type of event, known from its signature: `async fn(Payload)` or `async fn(Payload, Delivery)`,
/// where the payload derives [`Event`] and can be read by its codec: `Deserialize` for JSON.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a handler of a typed event",
    label = "expected `async fn(Payload)` or `async fn(Payload, Delivery)`",
    note = "the payload comes first and by value; its type derives `Event`, and `Deserialize` unless it names a codec other than JSON",
    note = "the function or closure is async; one that is not is wrapped: `blocking(…)`",
    note = "it returns (), Outcome, Result<(), E> or Result<Outcome, E>, where E is an error that is Send and Sync",
    note = "its future is Send: nothing that is not, such as an `Rc` or the guard of a std `Mutex`, is held across an await",
    note = "a function that takes only a `Delivery` does not say which events it handles: register it with `handle_type` or `handle_all`, or say `event = \"…\"` in its `#[handler]`",
    note = "what has the attribute `#[handler]` is registered with `handler`"
)]
pub trait EventHandler<Shape> {
    /// The route of the events that it handles.
    fn route() -> Route;

    /// The engine's form of it.
    fn into_handler(self) -> Arc<dyn Handler>;
}

/// A handler made of a function that boxes its own future.
struct HandlerFn<F>(F);

impl<F> Handler for HandlerFn<F>
where
    F: Fn(Delivery) -> BoxFuture<'static, Result<Outcome, HandlerError>> + Send + Sync + 'static,
{
    fn handle(&self, delivery: Delivery) -> BoxFuture<'_, Result<Outcome, HandlerError>> {
        (self.0)(delivery)
    }
}

/// The handler that answers with the outcome of what `call` returns, or with the error for which nothing was called.
pub(super) fn handler<Fut>(
    call: impl Fn(Delivery) -> Result<Fut, HandlerError> + Send + Sync + 'static,
) -> Arc<dyn Handler>
where
    Fut: Future<Output: IntoOutcome> + Send + 'static,
{
    Arc::new(HandlerFn(move |delivery| -> BoxFuture<'static, _> {
        match call(delivery) {
            Ok(future) => Box::pin(async move { future.await.into_outcome() }),
            Err(error) => Box::pin(std::future::ready(Err(error))),
        }
    }))
}

impl<F, P, Fut> EventHandler<shape::Typed<P>> for F
where
    F: Fn(P) -> Fut + Send + Sync + 'static,
    P: Event<Codec: Decode<P>> + 'static,
    Fut: Future<Output: IntoOutcome> + Send + 'static,
{
    fn route() -> Route {
        Route::of::<P>()
    }

    fn into_handler(self) -> Arc<dyn Handler> {
        handler(move |delivery| Ok(self(delivery.decode()?)))
    }
}

impl<F, P, Fut> EventHandler<shape::TypedWithDelivery<P>> for F
where
    F: Fn(P, Delivery) -> Fut + Send + Sync + 'static,
    P: Event<Codec: Decode<P>> + 'static,
    Fut: Future<Output: IntoOutcome> + Send + 'static,
{
    fn route() -> Route {
        Route::of::<P>()
    }

    fn into_handler(self) -> Arc<dyn Handler> {
        handler(move |delivery| Ok(self(delivery.decode()?, delivery)))
    }
}

impl<F, Fut> IntoHandler<shape::Generic> for F
where
    F: Fn(Delivery) -> Fut + Send + Sync + 'static,
    Fut: Future<Output: IntoOutcome> + Send + 'static,
{
    fn into_handler(self) -> Arc<dyn Handler> {
        handler(move |delivery| Ok(self(delivery)))
    }
}

impl<H: Handler> IntoHandler<shape::Object> for H {
    fn into_handler(self) -> Arc<dyn Handler> {
        Arc::new(self)
    }
}
