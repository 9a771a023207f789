use std::time::Duration;

use pillarbox_core::handle::HandlerError;
use pillarbox_core::publisher::{FailureScope, PublishError, PublishErrorKind};
use tokio::time::Instant;

use super::answer::Answer;
use super::findings::part_of;
use super::forwarder::Inner;
use crate::breaker::Parts;
use crate::route::{RouteOutput, RouteRuntime};

/// The time that an event stays away.
pub(super) enum Delay {
    /// For a pause that the log tells of, or for a short while.
    Usual(Duration),
    /// For trouble that has lasted, while its route and its target go on: nothing else would tell of it.
    Prolonged(Duration),
}

impl Delay {
    pub(super) fn length(self) -> Duration {
        match self {
            Self::Usual(length) | Self::Prolonged(length) => length,
        }
    }
}

impl Inner {
    /// The time that an event stays away whose destination did not take it: the pause of its route, which ends at `paused`, or of its
    /// target. Without a pause the destination takes others: unavailable events are deferred for longer each time, and events that are
    /// refused individually are retried one after the other. `None` where the destination is not to blame.
    pub(super) fn delay(
        &self,
        output: &RouteOutput,
        error: &PublishError,
        parts: Option<&Parts>,
        paused: Option<Instant>,
        now: Instant,
    ) -> Option<Delay> {
        let own = parts.and_then(|parts| output.targets.lock().paused_until(parts));
        if let Some(until) = paused.max(own) {
            return Some(Delay::Usual(self.spread(until.saturating_duration_since(now))));
        }
        match (error.kind(), error.scope()) {
            // It waits for another message, and nothing is known about its destination.
            (PublishErrorKind::Unavailable, FailureScope::Message) => {
                Some(Delay::Usual(output.backoffs.lock().shortest()))
            }
            (PublishErrorKind::Unavailable, _) => {
                let mut backoffs = output.backoffs.lock();
                let delay = backoffs.delay(part_of(error, parts), now);
                let is_longest = delay >= backoffs.longest();
                drop(backoffs);
                // Over half of it, so that a destination which takes some at a time is not asked for all at once.
                let spread = delay.mul_f64(0.5 + self.random.next_f64() / 2.0);
                Some(if is_longest { Delay::Prolonged(spread) } else { Delay::Usual(spread) })
            }
            (PublishErrorKind::Misconfigured, _) => Some(Delay::Prolonged(output.retry_spacing.lock().delay(now))),
            (PublishErrorKind::Temporary | PublishErrorKind::Permanent, _) => None,
        }
    }

    /// Defers an event until its route, or its target, may go on, without an attempt.
    pub(super) fn defer(&self, runtime: &RouteRuntime, until: Instant, why: &str) -> Answer {
        runtime.meters.deferred.increment(1);
        let delay = until.saturating_duration_since(Instant::now());
        Err(HandlerError::deferred_on_this_node(self.spread(delay), format!("route `{}` {why}", runtime.name)))
    }

    /// A tenth more at random, so that what was deferred together does not come back at once.
    fn spread(&self, delay: Duration) -> Duration {
        delay.mul_f64(1.0 + self.random.next_f64() / 10.0)
    }
}
