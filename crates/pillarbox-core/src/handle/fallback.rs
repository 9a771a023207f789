use std::fmt;
use std::future::Future;

use super::{BoxFuture, Delivery, HandlerError, Outcome};
use crate::error::BoxError;

/// Replaces the outcome of an event whose handler has failed for good: an `async fn(Delivery, Failure)` that says what becomes
/// of it, such as one that sends it another way. To be told of DEAD events and leave them DEAD, use [`OnDead`].
///
/// It is called once when the handler's retries are exhausted, or its error is not worth a retry, right after the last
/// attempt. With [`Outcome::Done`] the event is DONE and keeps the handler's error in `last_error`, but no position, unless
/// `delete_done` removes its row; with [`Outcome::Dead`], an
/// error or a panic it is DEAD with both errors, and with [`Outcome::Defer`] too: nothing is deferred any more. Nothing of it is
/// tried again. As a handler, it may run more than once for an event if its process or the database fails.
///
/// It is also called for a payload that its handler's event cannot be read from. An event that no handler takes, whose row
/// makes no event, or that has ended its process as often as it may goes DEAD without it.
///
/// ```
/// use pillarbox_core::error::BoxError;
/// use pillarbox_core::handle::{Delivery, Failure, Outcome};
///
/// # async fn send_letter(_: &Delivery) -> Result<(), BoxError> { Ok(()) }
/// async fn by_letter(delivery: Delivery, _: Failure) -> Result<Outcome, BoxError> {
///     send_letter(&delivery).await?;
///     Ok(Outcome::Done)
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a fallback",
    label = "expected `async fn(Delivery, Failure)` that returns Outcome or Result<Outcome, E>",
    note = "a fallback decides: with Outcome::Done the event is DONE; to be told of DEAD events only, use `on_dead`",
    note = "its future is Send: nothing that is not, such as an `Rc` or the guard of a std `Mutex`, is held across an await"
)]
pub trait Fallback: Send + Sync + 'static {
    /// Decides about an event that is about to be given up.
    fn recover(&self, delivery: Delivery, failure: Failure) -> BoxFuture<'_, Result<Outcome, HandlerError>>;
}

impl<F, Fut> Fallback for F
where
    F: Fn(Delivery, Failure) -> Fut + Send + Sync + 'static,
    Fut: Future<Output: IntoDecision> + Send + 'static,
{
    fn recover(&self, delivery: Delivery, failure: Failure) -> BoxFuture<'_, Result<Outcome, HandlerError>> {
        let future = self(delivery, failure);
        Box::pin(async move { future.await.into_decision() })
    }
}

/// The return type of a fallback: [`Outcome`] or `Result<Outcome, E>`. It is never `()`, so that a fallback which only sends
/// a message does not make failures vanish.
#[diagnostic::on_unimplemented(
    message = "a fallback cannot return `{Self}`",
    label = "not an outcome",
    note = "return Outcome or Result<Outcome, E>; to be told of DEAD events and leave them DEAD, use `on_dead`"
)]
pub trait IntoDecision {
    /// The engine's form of it.
    ///
    /// # Errors
    /// The fallback's error.
    fn into_decision(self) -> Result<Outcome, HandlerError>;
}

impl IntoDecision for Outcome {
    fn into_decision(self) -> Result<Outcome, HandlerError> {
        Ok(self)
    }
}

impl<E: Into<BoxError>> IntoDecision for Result<Outcome, E> {
    fn into_decision(self) -> Result<Outcome, HandlerError> {
        self.map_err(HandlerError::classify)
    }
}

/// Observes events that go DEAD: an `async fn(Delivery, Failure)`. The event stays DEAD, whatever it does; an error or a
/// panic of it is logged. To replace the outcome, use a [`Fallback`].
///
/// It is called when the event is given up, after a fallback that could not help, and right before DEAD is recorded: should
/// the process or the database fail in between, the event is delivered again and may be observed again. It is also called
/// for an event that no handler takes, but not for one whose row makes no event, or that has ended its process as often as
/// it may.
///
/// ```
/// use pillarbox_core::error::BoxError;
/// use pillarbox_core::handle::{Delivery, Failure};
///
/// async fn tell_support(delivery: Delivery, failure: Failure) -> Result<(), BoxError> {
///     println!("{} failed {} times: {}", delivery.id(), failure.failures(), failure.error());
///     Ok(())
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot observe DEAD events",
    label = "expected `async fn(Delivery, Failure)` that returns () or Result<(), E>",
    note = "the event stays DEAD; to decide what becomes of it, use a fallback",
    note = "its future is Send: nothing that is not, such as an `Rc` or the guard of a std `Mutex`, is held across an await"
)]
pub trait OnDead: Send + Sync + 'static {
    /// Observes an event that goes DEAD.
    fn observe(&self, delivery: Delivery, failure: Failure) -> BoxFuture<'_, Result<(), HandlerError>>;
}

impl<F, Fut> OnDead for F
where
    F: Fn(Delivery, Failure) -> Fut + Send + Sync + 'static,
    Fut: Future<Output: IntoObserved> + Send + 'static,
{
    fn observe(&self, delivery: Delivery, failure: Failure) -> BoxFuture<'_, Result<(), HandlerError>> {
        let future = self(delivery, failure);
        Box::pin(async move { future.await.into_observed() })
    }
}

/// The return type of an observer of DEAD events: `()` or `Result<(), E>`.
#[diagnostic::on_unimplemented(
    message = "an observer of DEAD events cannot return `{Self}`",
    label = "expected () or Result<(), E>",
    note = "the event stays DEAD; to decide what becomes of it, use a fallback"
)]
pub trait IntoObserved {
    /// The engine's form of it.
    ///
    /// # Errors
    /// The observer's error.
    fn into_observed(self) -> Result<(), HandlerError>;
}

impl IntoObserved for () {
    fn into_observed(self) -> Result<(), HandlerError> {
        Ok(())
    }
}

impl<E: Into<BoxError>> IntoObserved for Result<(), E> {
    fn into_observed(self) -> Result<(), HandlerError> {
        self.map_err(HandlerError::classify)
    }
}

/// The failure for which an event is about to be given up. The [`Delivery`](super::Delivery) beside it, which is that
/// of the last attempt, names the event and its handler.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    failures: u32,
    error: String,
    reason: FailureReason,
}

/// The reason for which an event is given up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FailureReason {
    /// It has failed as often as it may.
    Exhausted,
    /// It would fail again: the error is unrecoverable, a filter says so, or the handler decided that it is dead.
    NotRetryable,
    /// No handler takes it.
    Unroutable,
}

impl Failure {
    /// The failure of an event after so many failed calls.
    #[must_use]
    pub fn new(failures: u32, error: String, reason: FailureReason) -> Self {
        Self { failures, error, reason }
    }

    /// The number of failed calls of the handler, as it stands in the row: the last one included, unless it called its
    /// error unrecoverable or the event dead, which counts no attempt.
    #[must_use]
    pub fn failures(&self) -> u32 {
        self.failures
    }

    /// The text of the error for which it is given up, with its causes, in at most 4000 characters: that of the last call, and of a fallback
    /// that failed.
    #[must_use]
    pub fn error(&self) -> &str {
        &self.error
    }

    /// The reason why there is no further call.
    #[must_use]
    pub fn reason(&self) -> FailureReason {
        self.reason
    }

    /// True if it failed as often as it may; otherwise another call would not have helped.
    #[must_use]
    pub fn is_exhausted(&self) -> bool {
        self.reason == FailureReason::Exhausted
    }
}

impl fmt::Display for FailureReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Exhausted => "exhausted",
            Self::NotRetryable => "not retryable",
            Self::Unroutable => "no handler takes it",
        })
    }
}
