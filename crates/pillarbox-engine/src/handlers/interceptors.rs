use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use pillarbox_core::handle::{BoxFuture, Delivery, HandlerError, Interceptor, Outcome};
use pillarbox_core::throttle::Throttle;

use super::{Contexts, guarded};

/// An [`Interceptor`] behind a pointer.
trait Erased: Send + Sync {
    fn before<'a>(&'a self, delivery: &'a Delivery) -> BoxFuture<'a, Result<(), HandlerError>>;
    fn after<'a>(
        &'a self,
        delivery: &'a Delivery,
        ended: Result<&'a Outcome, &'a HandlerError>,
    ) -> BoxFuture<'a, Result<(), String>>;
}

impl<I: Interceptor> Erased for I {
    fn before<'a>(&'a self, delivery: &'a Delivery) -> BoxFuture<'a, Result<(), HandlerError>> {
        // The error's own classification is the user's code as well.
        Box::pin(async { Interceptor::before(self, delivery).await.map_err(HandlerError::classify) })
    }
    fn after<'a>(
        &'a self,
        delivery: &'a Delivery,
        ended: Result<&'a Outcome, &'a HandlerError>,
    ) -> BoxFuture<'a, Result<(), String>> {
        Box::pin(async move { Interceptor::after(self, delivery, ended).await.map_err(|error| error.to_string()) })
    }
}

/// All interceptors of an outbox, and the contexts: what runs around its handlers.
#[derive(Clone, Default)]
pub(crate) struct Interceptors {
    all: Vec<Arc<dyn Erased>>,
    pub(crate) contexts: Contexts,
    /// The throttle of those that fail after a handler.
    complaints: Arc<Throttle>,
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
            match guarded(|| interceptor.before(delivery)).await {
                Ok(Ok(())) => {
                    ran.fetch_add(1, Ordering::Relaxed);
                }
                Ok(Err(error)) => return Err(error),
                Err(panic) => {
                    let error = format!("an interceptor panicked before the handler: {panic}");
                    return Err(HandlerError::retryable(error));
                }
            }
        }
        Ok(())
    }

    /// Runs `after` of the first `ran`, the last one first.
    pub(crate) async fn after(&self, ran: usize, delivery: &Delivery, ended: Result<&Outcome, &HandlerError>) {
        for interceptor in self.all.iter().take(ran).rev() {
            match guarded(|| interceptor.after(delivery, ended)).await {
                Ok(Ok(())) => {}
                Ok(Err(error)) => self.failed_after(delivery, &error),
                Err(panic) => self.failed_after(delivery, &format!("it panicked: {panic}")),
            }
        }
    }

    /// Logs that one has failed after the handler of an event. One line in ten seconds speaks for all such events.
    pub(crate) fn failed_after(&self, delivery: &Delivery, error: &str) {
        if let Some(events) = self.complaints.report(1) {
            tracing::warn!(
                events,
                event_id = delivery.id().as_str(),
                event_type = delivery.event_type(),
                handler = delivery.handler_id(),
                error,
                "an interceptor failed after the handler"
            );
        }
    }
}

impl fmt::Debug for Interceptors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} interceptors, {:?}", self.all.len(), self.contexts)
    }
}
