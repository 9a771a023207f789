use pillarbox_core::handle::{Delivery, HandlerError, Outcome};
use pillarbox_core::store::NO_ROUTE;

use super::answer::Answer;
use super::forwarder::Inner;
use crate::route::Unrouted;

/// Event types without a route that the log names.
const MAX_LOGGED_TYPES: usize = 1000;

impl Inner {
    /// The answer for an event that no route takes.
    pub(super) fn unrouted(&self, unrouted: Unrouted, event: &Delivery) -> Answer {
        self.unrouted_events.increment(1);
        let is_first = {
            let mut logged = self.logged_types.lock();
            logged.len() < MAX_LOGGED_TYPES && logged.insert(event.event_type().into())
        };
        if is_first {
            let event_type = event.event_type();
            tracing::warn!(
                event_type,
                event_id = event.id().as_str(),
                ?unrouted,
                "no route takes events of a type; said once for each type"
            );
        }
        let problem = || {
            let (event_type, aggregate_type) = (event.event_type(), event.aggregate_type());
            format!("{NO_ROUTE}event type `{event_type}` of aggregate type `{aggregate_type}`")
        };
        match unrouted {
            Unrouted::Dead => Err(HandlerError::unrecoverable(problem())),
            Unrouted::Park(delay) => Err(HandlerError::unroutable(delay, problem())),
            Unrouted::Drop => Ok(Outcome::Done),
        }
    }
}
