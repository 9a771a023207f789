use std::time::Duration;

use super::HandlerError;
use crate::error::BoxError;

/// The decision of a handler about an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// It is delivered.
    Done,
    /// It is delivered, and the row keeps this text as the position at which the receiver has it: see [`delivered_as`](Self::delivered_as).
    DeliveredAs(String),
    /// Not yet: it is deferred, and delivered again after this long, at least 10 ms and at most 365 days. It is not a failure and counts no attempt. A
    /// handler that failed and knows when to try again returns [`HandlerError::retry_after`], which counts one.
    Defer(Duration),
    /// It must not be tried again, for this reason.
    Dead(String),
}

impl Outcome {
    /// It is delivered, and its receiver knows it by this text: a broker's offset, an id in an answer. The row keeps it in its column
    /// `delivered_as`, where it is kept at all, and callers that wait for the delivery receive it.
    ///
    /// A text that is no [`Position`](crate::row::Position), since it is longer than 300 bytes or has control characters, is not kept: the event is
    /// delivered all the same, and the log says so.
    ///
    /// ```
    /// use pillarbox_core::handle::{HandlerError, Outcome};
    /// # async fn send(_: String) -> Result<u64, std::io::Error> { Ok(1) }
    ///
    /// async fn forward(payment: String) -> Result<Outcome, HandlerError> {
    ///     let number = send(payment).await.map_err(HandlerError::retryable)?;
    ///     Ok(Outcome::delivered_as(format!("payments/{number}")))
    /// }
    /// ```
    pub fn delivered_as(position: impl Into<String>) -> Self {
        Self::DeliveredAs(position.into())
    }

    /// True if the event is delivered.
    #[must_use]
    pub const fn is_delivered(&self) -> bool {
        matches!(self, Self::Done | Self::DeliveredAs(_))
    }
}

/// The return type of a handler: `()`, [`Outcome`], `Result<(), E>` or `Result<Outcome, E>`.
///
/// `E` is any error, including `Box<dyn Error + Send + Sync>`, `anyhow::Error` and `String`. Every error is retryable
/// unless it is, or is caused by, a [`HandlerError`] that says otherwise.
#[diagnostic::on_unimplemented(
    message = "a handler cannot return `{Self}`",
    label = "not an outcome",
    note = "return (), Outcome, Result<(), E> or Result<Outcome, E>, where E is an error that is Send and Sync"
)]
pub trait IntoOutcome {
    /// The engine's form of it.
    ///
    /// # Errors
    /// The handler's error, classified.
    fn into_outcome(self) -> Result<Outcome, HandlerError>;
}

impl IntoOutcome for () {
    fn into_outcome(self) -> Result<Outcome, HandlerError> {
        Ok(Outcome::Done)
    }
}

impl IntoOutcome for Outcome {
    fn into_outcome(self) -> Result<Outcome, HandlerError> {
        Ok(self)
    }
}

impl<E: IntoFailure> IntoOutcome for Result<(), E> {
    fn into_outcome(self) -> Result<Outcome, HandlerError> {
        self.map(|()| Outcome::Done).map_err(E::into_failure)
    }
}

impl<E: IntoFailure> IntoOutcome for Result<Outcome, E> {
    fn into_outcome(self) -> Result<Outcome, HandlerError> {
        self.map_err(E::into_failure)
    }
}

/// The error of a handler: anything that becomes a [`BoxError`].
#[diagnostic::on_unimplemented(
    message = "a handler cannot fail with `{Self}`",
    label = "the error in its result is not one",
    note = "an error is a `HandlerError`, a text, or a type that implements `std::error::Error` and is Send, Sync and 'static; so are `Box<dyn Error + Send + Sync>` and `anyhow::Error`"
)]
pub trait IntoFailure {
    /// The engine's form of it.
    fn into_failure(self) -> HandlerError;
}

#[diagnostic::do_not_recommend]
impl<E: Into<BoxError>> IntoFailure for E {
    fn into_failure(self) -> HandlerError {
        HandlerError::classify(self)
    }
}
