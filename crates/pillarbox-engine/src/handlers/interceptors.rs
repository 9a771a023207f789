use std::fmt;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures_util::FutureExt as _;
use pillarbox_core::error::BoxError;
use pillarbox_core::handle::{BoxFuture, Delivery, HandlerError, Interceptor, Outcome};

use super::Contexts;

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
                Ok(Err(error)) => {
                    tracing::warn!(event_id = delivery.id().as_str(), error, "an interceptor failed after the handler");
                }
                Err(_panic) => {
                    tracing::error!(event_id = delivery.id().as_str(), "an interceptor panicked after the handler");
                }
            }
        }
    }
}

impl fmt::Debug for Interceptors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} interceptors, {:?}", self.all.len(), self.contexts)
    }
}
