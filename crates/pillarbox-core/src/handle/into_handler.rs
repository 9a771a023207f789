use std::future::Future;
use std::sync::Arc;

use super::signature::{Answer, Call, HandledEvent, PassedAs, Signature};
use super::{BoxFuture, Delivery, EventKind, Handler, HandlerError, IntoOutcome, Outcome};
use crate::event::Decode;

/// The shapes a handler can have. They exist so that one trait can cover functions of different signatures; they are
/// inferred and never written.
pub mod shape {
    use std::marker::PhantomData;

    /// A function of one argument: an event, or a delivery.
    #[derive(Debug)]
    pub struct One<A>(PhantomData<A>);
    /// A function of two arguments: an event and its delivery.
    #[derive(Debug)]
    pub struct Two<A, B>(PhantomData<(A, B)>);
    /// An object that implements `Handler`, or `BatchHandler`.
    #[derive(Debug)]
    pub struct Object;
    /// `blocking(…)` around one of the functions.
    #[derive(Debug)]
    pub struct Blocking<S>(PhantomData<S>);
    /// `in_transaction(…)` around one of the functions.
    #[derive(Debug)]
    pub struct InTransaction<S, T, M>(PhantomData<(S, T, M)>);
    /// `in_transaction(…)` around a `blocking(…)` function.
    #[derive(Debug)]
    pub struct InBlockingTransaction<S, C, E, M>(PhantomData<(S, C, E, M)>);
}

/// A handler of events of any type: `async fn(Delivery)`, or an object that implements [`Handler`].
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a handler of deliveries",
    label = "expected an async function of a `Delivery`, or a type that implements `Handler`",
    note = "it takes one argument"
)]
pub trait IntoHandler<Shape> {
    /// The engine's form of it.
    fn into_handler(self) -> Arc<dyn Handler>;
}

impl<S, H: Signature<S, Form: DeliveryForm>> IntoHandler<S> for H {
    fn into_handler(self) -> Arc<dyn Handler> {
        self.form().into_handler()
    }
}

/// A handler of one type of event, known from its signature: `async fn(Payload)` or `async fn(Payload, Delivery)`,
/// where the payload derives [`Event`](crate::event::Event) and can be read by its codec: `Deserialize` for JSON.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a handler of a typed event",
    label = "expected an async function of an event, or of an event and its `Delivery`",
    note = "it takes one argument or two; an object that implements `Handler` is registered with `handle_type` or `handle_all`",
    note = "what has the attribute `#[handler]` is registered with `handler`",
    note = "in `in_transaction` the transaction of the driver is the last argument, by value: `async fn(Event, Delivery, Tx)`"
)]
pub trait EventHandler<Shape> {
    /// The kind of the events that it handles.
    fn event_kind() -> EventKind;

    /// The engine's form of it.
    fn into_handler(self) -> Arc<dyn Handler>;
}

impl<S, H: Signature<S, Form: EventForm>> EventHandler<S> for H {
    fn event_kind() -> EventKind {
        H::Form::event_kind()
    }

    fn into_handler(self) -> Arc<dyn Handler> {
        self.form().into_handler()
    }
}

/// A function that takes deliveries of any type, taken apart.
#[diagnostic::on_unimplemented(
    message = "this is not a handler of deliveries",
    label = "expected a function of one argument, its `Delivery`",
    note = "a function that takes an event and its `Delivery` is registered with `handle`, which reads the event's name from its type"
)]
pub trait DeliveryForm {
    /// The engine's form of it.
    fn into_handler(self) -> Arc<dyn Handler>;
}

/// A function that takes a typed event, taken apart.
#[diagnostic::on_unimplemented(
    message = "this does not say which events it handles",
    label = "expected `async fn(Payload)` or `async fn(Payload, Delivery)`",
    note = "register it with `handle_type` or `handle_all`"
)]
pub trait EventForm {
    /// The kind of the events that it takes.
    fn event_kind() -> EventKind;

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

/// The handler that calls `call`.
pub(super) fn function_handler(
    call: impl Fn(Delivery) -> BoxFuture<'static, Result<Outcome, HandlerError>> + Send + Sync + 'static,
) -> impl Handler {
    HandlerFn(call)
}

/// The handler that answers with the outcome of the future that `call` returns, or with the error that kept it from the call.
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

impl<F, P, R> EventForm for Call<F, (P,), R>
where
    F: Fn(P) -> R + Send + Sync + 'static,
    P: HandledEvent<Codec: Decode<P>> + 'static,
    R: Answer<Answered: IntoOutcome> + Send + 'static,
{
    fn event_kind() -> EventKind {
        P::event_kind()
    }

    fn into_handler(self) -> Arc<dyn Handler> {
        handler(move |delivery| Ok((self.function)(P::read(&delivery)?)))
    }
}

impl<F, P, D, R> EventForm for Call<F, (P, D), R>
where
    F: Fn(P, D) -> R + Send + Sync + 'static,
    P: HandledEvent<Codec: Decode<P>> + 'static,
    D: 'static,
    Delivery: PassedAs<D>,
    R: Answer<Answered: IntoOutcome> + Send + 'static,
{
    fn event_kind() -> EventKind {
        P::event_kind()
    }

    fn into_handler(self) -> Arc<dyn Handler> {
        handler(move |delivery| Ok((self.function)(P::read(&delivery)?, delivery.pass())))
    }
}

impl<F, D, R> DeliveryForm for Call<F, (D,), R>
where
    F: Fn(D) -> R + Send + Sync + 'static,
    D: 'static,
    Delivery: PassedAs<D>,
    R: Answer<Answered: IntoOutcome> + Send + 'static,
{
    fn into_handler(self) -> Arc<dyn Handler> {
        handler(move |delivery| Ok((self.function)(delivery.pass())))
    }
}

/// An object that implements [`Handler`].
#[derive(Debug)]
pub struct Object<H>(H);

impl<H: Handler> Signature<shape::Object> for H {
    type Form = Object<H>;

    fn form(self) -> Self::Form {
        Object(self)
    }
}

impl<H: Handler> DeliveryForm for Object<H> {
    fn into_handler(self) -> Arc<dyn Handler> {
        Arc::new(self.0)
    }
}
