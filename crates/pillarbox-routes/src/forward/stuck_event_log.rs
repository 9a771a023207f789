use pillarbox_core::handle::Delivery;
use pillarbox_core::publisher::{PublishErrorKind, Receipt};
use pillarbox_core::throttle::Throttle;

use crate::route::{RouteOutput, RouteRuntime};

/// Warns of events that their destination refuses individually, or has not taken for long, while their route and their target go on: nothing
/// else would tell of them, and they are deferred for as long as that lasts.
#[derive(Debug, Default)]
pub(crate) struct StuckEventLog {
    refused: Throttle,
    unavailable: Throttle,
}

impl StuckEventLog {
    /// Logs the failure of an event, if `receipt` is one. One line in ten seconds stands for all of its kind since the last one.
    pub(super) fn warn(&self, runtime: &RouteRuntime, output: &RouteOutput, event: &Delivery, receipt: &Receipt) {
        let Err(error) = receipt else { return };
        let (throttle, message) = match error.kind() {
            PublishErrorKind::Misconfigured => (
                &self.refused,
                "events are deferred repeatedly: their destination refuses them individually, while their route goes on; no \
                 attempt is counted, and they never go DEAD; change what the problem names, or give them up with \
                 `pillarbox pending cancel`",
            ),
            PublishErrorKind::Unavailable => (
                &self.unavailable,
                "events have been deferred for long: their destination takes others and not these, while their route goes on; no \
                 attempt is counted, and they are delivered once it takes them: see to what the problem names",
            ),
            PublishErrorKind::Temporary | PublishErrorKind::Permanent => return,
        };
        let Some(events) = throttle.report(1) else { return };
        // The broker's words name a target as it may be shown, as they do in `last_error`.
        tracing::warn!(
            route = &*runtime.name,
            publisher = output.publisher.info().kind,
            event_id = event.id().as_str(),
            event_type = event.event_type(),
            events,
            problem = error.to_string(),
            "{message}"
        );
    }
}
