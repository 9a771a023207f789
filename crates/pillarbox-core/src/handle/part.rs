//! The parts of a signature, for the code that `#[handler]` generates: each is named at the place where it is written, so that the compiler
//! shows a mistake there.

use std::future::Future;
use std::marker::PhantomData;

use super::batch::batch_handler;
use super::into_handler::function_handler;
use super::signature::{Answers, HandledEvent, PassedAs};
use super::{BatchHandler, BoxFuture, Delivery, EventKind, Handler, HandlerError, IntoOutcome, Outcome};
use crate::event::Decode;

/// The answer to one event.
pub type Answered = Result<Outcome, HandlerError>;

/// Reads an event.
pub type Read<P> = fn(&Delivery) -> Result<P, HandlerError>;

/// The event that a handler takes.
#[derive(Debug)]
pub struct EventPart<P>(PhantomData<fn() -> P>);

/// An event that can be read.
pub trait ReadPart<P> {
    /// The kind of the events.
    fn event_kind(&self) -> EventKind;

    /// Reads one.
    ///
    /// # Errors
    /// The errors of [`Delivery::decode`].
    fn read(&self, delivery: &Delivery) -> Result<P, HandlerError>;
}

impl<P: HandledEvent<Codec: Decode<P>>> ReadPart<P> for EventPart<P> {
    fn event_kind(&self) -> EventKind {
        P::event_kind()
    }

    fn read(&self, delivery: &Delivery) -> Result<P, HandlerError> {
        P::read(delivery)
    }
}

/// The kind of the event that a handler takes, and the function that reads it.
#[must_use]
pub fn event<P>() -> (EventKind, Read<P>)
where
    EventPart<P>: ReadPart<P>,
{
    (EventPart(PhantomData).event_kind(), |delivery| EventPart(PhantomData).read(delivery))
}

/// The handler that calls `call` with the result of `read`.
pub fn typed<P: 'static>(
    read: Read<P>,
    call: impl Fn(P, Delivery) -> BoxFuture<'static, Answered> + Send + Sync + 'static,
) -> impl Handler {
    function_handler(move |delivery| match read(&delivery) {
        Ok(event) => call(event, delivery),
        Err(error) => Box::pin(std::future::ready(Err(error))),
    })
}

/// The handler that calls `call` with deliveries.
pub fn handler(call: impl Fn(Delivery) -> BoxFuture<'static, Answered> + Send + Sync + 'static) -> impl Handler {
    function_handler(call)
}

/// The batch handler that calls `call`.
pub fn batch(
    call: impl Fn(Vec<Delivery>) -> BoxFuture<'static, Vec<Answered>> + Send + Sync + 'static,
) -> impl BatchHandler {
    batch_handler(call)
}

/// The delivery that a handler takes.
pub fn delivery<D>(delivery: Delivery) -> D
where
    Delivery: PassedAs<D>,
{
    delivery.pass()
}

/// The deliveries that a batch handler takes.
pub fn deliveries<D>(deliveries: Vec<Delivery>) -> D
where
    Vec<Delivery>: PassedAs<D>,
{
    deliveries.pass()
}

/// The answer of a handler.
///
/// # Errors
/// The errors of the handler.
pub fn outcome<O: IntoOutcome>(answer: O) -> Answered {
    answer.into_outcome()
}

/// The answers of a batch handler.
pub fn outcomes<O: Answers>(answers: O) -> Vec<Answered> {
    answers.into_outcomes()
}

/// The future of a handler, with its answer mapped by `map`.
pub fn boxed<F: Future + Send + 'static, T: 'static>(future: F, map: fn(F::Output) -> T) -> BoxFuture<'static, T> {
    Box::pin(async move { map(future.await) })
}
