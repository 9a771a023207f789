use std::time::Duration;

use super::HandlerError;
use crate::error::BoxError;

/// The decision of a handler about an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// It is delivered.
    Done,
    /// Not yet: it is snoozed, and delivered again after this long. It is not a failure and counts no attempt. A handler that
    /// failed and knows when to try again returns [`HandlerError::retry_after`], which counts one.
    Defer(Duration),
    /// It must not be tried again, for this reason.
    Dead(String),
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
