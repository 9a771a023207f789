use pillarbox_core::handle::Delivery;
use pillarbox_core::publisher::{PublishErrorKind, Receipt};
use pillarbox_core::throttle::Throttle;

use crate::route::{RouteRuntime, Sink};

/// Warns of events that their destination refuses for themselves, or has not taken for long, while their route and their target go on: nothing
/// else would tell of them, and they are put off for as long as that lasts.
#[derive(Debug, Default)]
pub(crate) struct Stranded {
    refused: Throttle,
    unavailable: Throttle,
}

impl Stranded {
    /// The failure of an event, if `receipt` is one. One line in ten seconds speaks for all of its kind since the last one.
    pub(super) fn tell(&self, runtime: &RouteRuntime, sink: &Sink, event: &Delivery, receipt: &Receipt) {
        let Err(error) = receipt else { return };
        let (throttle, message) = match error.kind() {
            PublishErrorKind::Misconfigured => (
                &self.refused,
                "events are put off again and again: their destination refuses them for themselves, while their route goes on; no \
                 attempt is counted, and they never go DEAD; change what the problem names, or give them up with \
                 `pillarbox pending cancel`",
            ),
            PublishErrorKind::Unavailable => (
                &self.unavailable,
                "events have been put off for long: their destination takes others and not these, while their route goes on; no \
                 attempt is counted, and they are delivered once it takes them: see to what the problem names",
            ),
            PublishErrorKind::Temporary | PublishErrorKind::Permanent => return,
        };
        let Some(events) = throttle.report(1) else { return };
        // The broker's words name a target as it may be shown, as they do in `last_error`.
        tracing::warn!(
            route = &*runtime.name,
            publisher = sink.publisher.info().kind,
            event_id = event.id().as_str(),
            event_type = event.event_type(),
            events,
            problem = error.to_string(),
            "{message}"
        );
    }
}
