use std::fmt;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures_util::FutureExt as _;

use super::{BoxFuture, Delivery, HandlerError, Outcome};
use crate::context::Contexts;
use crate::error::BoxError;

/// Code that runs around every handler: tenants, log contexts, checks that apply to all events.
///
/// ```
/// use pillarbox_core::error::BoxError;
/// use pillarbox_core::handle::{Delivery, Interceptor};
///
/// struct KnownTenants;
///
/// impl Interceptor for KnownTenants {
///     async fn before(&self, delivery: &Delivery) -> Result<(), BoxError> {
///         match delivery.tenant_id() {
///             Some(_) => Ok(()),
///             None => Err("the event names no tenant".into()),
///         }
///     }
/// }
/// ```
pub trait Interceptor: Send + Sync + 'static {
    /// Runs before the handler, in registration order.
    ///
    /// # Errors
    /// An error is a failed attempt: the handler and the interceptors after this one are skipped. A
    /// [`HandlerError`] decides what kind of failure it is, as a handler's does.
    fn before(&self, _delivery: &Delivery) -> impl Future<Output = Result<(), BoxError>> + Send {
        std::future::ready(Ok(()))
    }

    /// Runs after the handler, in reverse order, if `before` of this interceptor succeeded; with what the handler
    /// decided, or the error of what failed.
    ///
    /// # Errors
    /// An error is logged and changes nothing.
    fn after(
        &self,
        _delivery: &Delivery,
        _ended: Result<&Outcome, &HandlerError>,
    ) -> impl Future<Output = Result<(), BoxError>> + Send {
        std::future::ready(Ok(()))
    }
}

/// An [`Interceptor`] behind a pointer.
trait Erased: Send + Sync {
    fn before<'a>(&'a self, delivery: &'a Delivery) -> BoxFuture<'a, Result<(), BoxError>>;
    fn after<'a>(
        &'a self,
        delivery: &'a Delivery,
        ended: Result<&'a Outcome, &'a HandlerError>,
    ) -> BoxFuture<'a, Result<(), BoxError>>;
}

impl<I: Interceptor> Erased for I {
    fn before<'a>(&'a self, delivery: &'a Delivery) -> BoxFuture<'a, Result<(), BoxError>> {
        Box::pin(Interceptor::before(self, delivery))
    }
    fn after<'a>(
        &'a self,
        delivery: &'a Delivery,
        ended: Result<&'a Outcome, &'a HandlerError>,
    ) -> BoxFuture<'a, Result<(), BoxError>> {
        Box::pin(Interceptor::after(self, delivery, ended))
    }
}

/// All interceptors of an outbox, and the contexts: what runs around its handlers.
#[derive(Clone, Default)]
pub(crate) struct Interceptors {
    all: Vec<Arc<dyn Erased>>,
    pub(crate) contexts: Contexts,
}

impl Interceptors {
    pub(crate) fn push(&mut self, interceptor: impl Interceptor) {
        self.all.push(Arc::new(interceptor));
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Runs `before` of each, counts those that ran to their end, and returns the failure that stopped them.
    pub(crate) async fn before(&self, delivery: &Delivery, ran: &AtomicUsize) -> Result<(), HandlerError> {
        for interceptor in &self.all {
            let before = AssertUnwindSafe(async { interceptor.before(delivery).await }).catch_unwind();
            let error: BoxError = match before.await {
                Ok(Ok(())) => {
                    ran.fetch_add(1, Ordering::Relaxed);
                    continue;
                }
                Ok(Err(error)) => error,
                Err(_panic) => "an interceptor panicked before the handler".into(),
            };
            return Err(HandlerError::classify(error));
        }
        Ok(())
    }

    /// Runs `after` of the first `ran`, the last one first.
    pub(crate) async fn after(&self, ran: usize, delivery: &Delivery, ended: Result<&Outcome, &HandlerError>) {
        for interceptor in self.all.iter().take(ran).rev() {
            let after = AssertUnwindSafe(async { interceptor.after(delivery, ended).await }).catch_unwind();
            match after.await {
                Ok(Ok(())) => {}
                Ok(Err(error)) => tracing::warn!(error, id = %delivery.id(), "an interceptor failed after the handler"),
                Err(_panic) => tracing::error!(id = %delivery.id(), "an interceptor panicked after the handler"),
            }
        }
    }
}

impl fmt::Debug for Interceptors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} interceptors, {:?}", self.all.len(), self.contexts)
    }
}
