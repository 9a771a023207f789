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

impl<E: Into<BoxError>> IntoOutcome for Result<(), E> {
    fn into_outcome(self) -> Result<Outcome, HandlerError> {
        self.map(|()| Outcome::Done).map_err(HandlerError::classify)
    }
}

impl<E: Into<BoxError>> IntoOutcome for Result<Outcome, E> {
    fn into_outcome(self) -> Result<Outcome, HandlerError> {
        self.map_err(HandlerError::classify)
    }
}
