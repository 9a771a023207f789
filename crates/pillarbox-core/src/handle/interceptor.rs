use std::sync::Arc;

use super::{Delivery, HandlerError, Outcome};
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

    /// Runs after the handler, in reverse order, if `before` of this interceptor succeeded; with the decision of the
    /// handler, or the error that took its place.
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

/// An interceptor that somebody else holds as well, to ask it later.
impl<I: Interceptor> Interceptor for Arc<I> {
    fn before(&self, delivery: &Delivery) -> impl Future<Output = Result<(), BoxError>> + Send {
        (**self).before(delivery)
    }

    fn after(
        &self,
        delivery: &Delivery,
        ended: Result<&Outcome, &HandlerError>,
    ) -> impl Future<Output = Result<(), BoxError>> + Send {
        (**self).after(delivery, ended)
    }
}
