//! The user's code for an event type: its arguments, its answers, its registration.

mod batch;
mod blocking;
mod blocking_transaction;
mod delivery;
mod error;
mod event_kind;
mod fallback;
mod interceptor;
mod into_handler;
mod outcome;
#[doc(hidden)]
pub mod part;
mod signature;
mod transaction;

pub use batch::{BatchHandler, IntoBatchHandler};
pub use blocking::{Blocking, blocking};
pub use delivery::{AbandonedThreads, DeliveringNode, Delivery, Path};
pub use error::{HandlerError, HandlerErrorKind};
pub use event_kind::EventKind;
pub use fallback::{Failure, FailureReason, Fallback, IntoDecision, IntoObserved, OnDead};
pub use interceptor::Interceptor;
pub use into_handler::{EventHandler, IntoHandler, shape};
pub use outcome::{IntoOutcome, Outcome};
#[doc(hidden)]
pub use transaction::{BegunTransaction, EventCompletion, Handling, ReadyToCommit, TransactionalHandler};
pub use transaction::{Handled, HandlerTransaction, InTransaction, in_transaction};

use std::future::Future;
use std::pin::Pin;

/// A boxed future, as handlers return.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// A handler as the engine calls it. Functions and closures become one by themselves; implement it for a handler that
/// is chosen at run time.
#[auto_impl::auto_impl(Arc)]
pub trait Handler: Send + Sync + 'static {
    /// Handles one event. It may be called again for the same event: after an error, a crash, or a lost lease.
    fn handle(&self, delivery: Delivery) -> BoxFuture<'_, Result<Outcome, HandlerError>>;

    /// The handler as it works in a transaction; `None` for any that was not made by [`in_transaction`].
    #[doc(hidden)]
    fn transactional(&self) -> Option<&dyn TransactionalHandler> {
        None
    }
}
