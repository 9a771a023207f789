use pillarbox_core::handle::Delivery;
use pillarbox_core::publisher::{PublishError, PublishErrorKind, Receipt};
use pillarbox_core::throttle::Throttle;

use crate::route::{RouteRuntime, Sink};

/// Warns of events that their destination refuses for themselves for long, or until somebody changes something, while their route and their target go
/// on: nothing else would tell of them, and they are put off for as long as that lasts.
#[derive(Debug, Default)]
pub(crate) struct Stranded(Throttle);

impl Stranded {
    /// The refusal of an event, if `receipt` is one. One line in ten seconds speaks for all refusals since the last one.
    pub(super) fn tell(&self, runtime: &RouteRuntime, sink: &Sink, event: &Delivery, receipt: &Receipt) {
        let Err(error) = receipt else { return };
        if !matches!(error.kind(), PublishErrorKind::Misconfigured | PublishErrorKind::Unavailable) {
            return;
        }
        if let Some(events) = self.0.report(1) {
            warn(runtime, sink, event, error, events);
        }
    }
}

/// The broker's words name a target as it may be shown, as they do in `last_error`.
fn warn(runtime: &RouteRuntime, sink: &Sink, event: &Delivery, error: &PublishError, events: u64) {
    tracing::warn!(
        route = &*runtime.name,
        publisher = sink.publisher.info().kind,
        event_id = event.id().as_str(),
        event_type = event.event_type(),
        events,
        problem = %error,
        "events are put off again and again: their destination refuses them for themselves, while their route goes on; no attempt is \
         counted, and they never go DEAD; change what the problem names, or give them up with `pillarbox pending cancel`"
    );
}
