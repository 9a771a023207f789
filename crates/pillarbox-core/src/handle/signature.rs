//! Functions as handlers, taken apart: the arguments, the answer, and the requirements on each.
//!
//! A function is told by the number of its arguments alone. Only then is each part checked, by a trait of its own, so that the compiler
//! names the part that is wrong instead of saying that the whole is no handler.

use std::future::Future;
use std::marker::PhantomData;

use super::{Delivery, EventKind, HandlerError, IntoOutcome, Outcome, shape};
use crate::event::{Decode, Event};

/// A function, or a wrapped one, by the number of its arguments.
pub trait Signature<Shape> {
    /// Its parts.
    type Form;

    /// Takes it apart.
    fn form(self) -> Self::Form;
}

/// A function `F` that takes the arguments `A` and returns `R`.
#[derive(Debug)]
pub struct Call<F, A, R> {
    pub(super) function: F,
    parts: PhantomData<fn(A) -> R>,
}

impl<F, A, R> Call<F, A, R> {
    pub(super) fn new(function: F) -> Self {
        Self { function, parts: PhantomData }
    }
}

impl<F, A, R> Signature<shape::One<A>> for F
where
    F: Fn(A) -> R,
{
    type Form = Call<F, (A,), R>;

    fn form(self) -> Self::Form {
        Call::new(self)
    }
}

impl<F, A, B, R> Signature<shape::Two<A, B>> for F
where
    F: Fn(A, B) -> R,
{
    type Form = Call<F, (A, B), R>;

    fn form(self) -> Self::Form {
        Call::new(self)
    }
}

/// The event that a handler takes: a type that derives [`Event`], by value.
#[diagnostic::on_unimplemented(
    message = "a handler cannot take `{Self}` as its event",
    label = "the event that this takes is not one",
    note = "an event is a type with #[derive(Serialize, Deserialize, Event)] and #[event(name = \"…\")]; it is taken by value, not by reference",
    note = "the event comes first, its `Delivery` second; a function of a `Delivery` alone does not say which events it takes: register it with `handle_type` or `handle_all`, or say `event = \"…\"` in its `#[handler]`"
)]
pub trait HandledEvent: Sized {
    /// The codec by which it is read.
    type Codec;

    /// Its kind.
    fn event_kind() -> EventKind;

    /// Reads it.
    ///
    /// # Errors
    /// The errors of [`Delivery::decode`].
    fn read(delivery: &Delivery) -> Result<Self, HandlerError>
    where
        Self::Codec: Decode<Self>;
}

#[diagnostic::do_not_recommend]
impl<P: Event> HandledEvent for P {
    type Codec = P::Codec;

    fn event_kind() -> EventKind {
        EventKind::of::<P>()
    }

    fn read(delivery: &Delivery) -> Result<Self, HandlerError>
    where
        P::Codec: Decode<P>,
    {
        delivery.decode()
    }
}

/// The argument of a handler, as the argument `D` that takes it. It is implemented for the given, so that the type of an argument which is not
/// written out is inferred.
#[diagnostic::on_unimplemented(
    message = "a handler takes its `{Self}` here, not `{D}`",
    label = "expected `{Self}`, by value",
    note = "a handler takes an event, an event and then its `Delivery`, or a `Delivery` alone; a batch handler takes a `Vec<Delivery>`",
    note = "a function that takes a typed event is registered with `handle`, which reads the event's name from its type"
)]
pub trait PassedAs<D> {
    /// Passes it on.
    fn pass(self) -> D;
}

impl PassedAs<Self> for Delivery {
    fn pass(self) -> Self {
        self
    }
}

impl PassedAs<Self> for Vec<Delivery> {
    fn pass(self) -> Self {
        self
    }
}

/// The future that a handler returns.
#[diagnostic::on_unimplemented(
    message = "a handler is async, and this one returns `{Self}`",
    label = "not async: it returns no future",
    note = "write `async fn` or `async |…|`; one that blocks its thread is wrapped: `blocking(…)`"
)]
pub trait Answer: Future<Output = Self::Answered> {
    /// The answer of the future.
    type Answered;
}

#[diagnostic::do_not_recommend]
impl<F: Future> Answer for F {
    type Answered = F::Output;
}

/// The answers of a batch handler: a vector.
#[diagnostic::on_unimplemented(
    message = "a batch handler cannot return `{Self}`",
    label = "expected a `Vec`",
    note = "it returns a `Vec` with an answer for each delivery, in order; an answer is (), Outcome, Result<(), E> or Result<Outcome, E>"
)]
pub trait Answers {
    /// The engine's form of them.
    fn into_outcomes(self) -> Vec<Result<Outcome, HandlerError>>;
}

impl<R: IntoOutcome> Answers for Vec<R> {
    fn into_outcomes(self) -> Vec<Result<Outcome, HandlerError>> {
        self.into_iter().map(R::into_outcome).collect()
    }
}
