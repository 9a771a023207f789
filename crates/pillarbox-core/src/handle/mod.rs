//! The user's code for an event type: what it is given, what it answers, how it is found.

mod batch;
mod blocking;
mod delivery;
mod error;
mod fallback;
mod interceptor;
mod into_handler;
mod outcome;
mod registration;
mod router;

pub use batch::{BatchHandler, IntoBatchHandler};
pub use blocking::{Blocking, blocking};
pub(crate) use delivery::Deliverer;
pub use delivery::{Delivery, Path};
pub use error::HandlerError;
pub(crate) use error::HandlerErrorKind;
pub use fallback::{Failure, FailureReason, Fallback, IntoDecision, IntoObserved, OnDead};
pub use interceptor::Interceptor;
pub(crate) use interceptor::Interceptors;
pub use into_handler::{EventHandler, IntoHandler, shape};
pub use outcome::{IntoOutcome, Outcome};
pub(crate) use registration::check_id;
pub use registration::{Register, Registration, on, on_all, on_any, on_any_batch, on_batch, on_type};
pub use router::{DuplicateHandler, Route, Unroutable};
pub(crate) use router::{Homeless, Registered, Router, Target};

use std::future::Future;
use std::pin::Pin;

/// A boxed future, as handlers return.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// A handler as the engine calls it. Functions and closures become one by themselves; implement it for a handler that
/// is chosen at run time.
pub trait Handler: Send + Sync + 'static {
    /// Handles one event. It may be called again for the same event: after an error, a crash, or a lost lease.
    fn handle(&self, delivery: Delivery) -> BoxFuture<'_, Result<Outcome, HandlerError>>;
}
