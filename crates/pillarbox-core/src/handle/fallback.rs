use std::fmt;
use std::future::Future;

use super::{BoxFuture, Delivery, HandlerError, IntoOutcome, Outcome};

/// What runs once in place of giving an event up: an `async fn(Delivery, Failure)`.
///
/// It is called when the handler's retries are exhausted, or its error is not worth a retry, right after the last attempt.
/// If it succeeds the event is DONE, and if it fails or panics the event is DEAD with what it said. Nothing of it is tried
/// again. As a handler, it may run more than once for an event if its process or the database fails.
///
/// It is also called for a payload that its handler's event cannot be read from. An event that no handler takes, whose row
/// makes no event, or that has ended its process as often as it may goes DEAD without it.
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
    message = "`{Self}` is not a fallback",
    label = "expected `async fn(Delivery, Failure)`",
    note = "it returns (), Outcome, Result<(), E> or Result<Outcome, E>, where E is an error that is Send and Sync",
    note = "its future is Send: nothing that is not, such as an `Rc` or the guard of a std `Mutex`, is held across an await"
)]
pub trait Fallback: Send + Sync + 'static {
    /// Handles an event that is about to be given up.
    fn recover(&self, delivery: Delivery, failure: Failure) -> BoxFuture<'_, Result<Outcome, HandlerError>>;
}

impl<F, Fut> Fallback for F
where
    F: Fn(Delivery, Failure) -> Fut + Send + Sync + 'static,
    Fut: Future<Output: IntoOutcome> + Send + 'static,
{
    fn recover(&self, delivery: Delivery, failure: Failure) -> BoxFuture<'_, Result<Outcome, HandlerError>> {
        let future = self(delivery, failure);
        Box::pin(async move { future.await.into_outcome() })
    }
}

/// Why an event is about to be given up. What it is and which handler it was for says the
/// [`Delivery`](super::Delivery) beside it, which is that of the last attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    failures: u32,
    error: String,
    reason: FailureReason,
}

/// What an event is given up for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FailureReason {
    /// It has failed as often as it may.
    Exhausted,
    /// It would fail again: the error is unrecoverable, a filter says so, or the handler decided that it is dead.
    NotRetryable,
}

impl Failure {
    pub(crate) fn new(failures: u32, error: String, reason: FailureReason) -> Self {
        Self { failures, error, reason }
    }

    /// How many calls of the handler have failed, as it stands in the row: the last one included, unless it called its
    /// error unrecoverable or the event dead, which counts no attempt.
    #[must_use]
    pub fn failures(&self) -> u32 {
        self.failures
    }

    /// What the last call said, with its causes, in at most 4000 characters.
    #[must_use]
    pub fn error(&self) -> &str {
        &self.error
    }

    /// Why there will be no further call.
    #[must_use]
    pub fn reason(&self) -> FailureReason {
        self.reason
    }

    /// Whether it failed as often as it may; otherwise another call would not have helped.
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
        })
    }
}
