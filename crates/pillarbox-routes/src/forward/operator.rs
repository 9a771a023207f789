use std::sync::Arc;

use tokio::time::Instant;

use super::Forwarder;
use super::admission::OPERATOR_PAUSE_RECHECK_INTERVAL;

/// Operators' hands on a route.
impl Forwarder {
    /// Lets a paused route be tried out within a second, or by the next event. False if there is no such route, or it is not paused, or an
    /// operator has [paused](Self::pause) it.
    ///
    /// For operators who know that a broker is back. A try that fails leaves the route paused, as any other does.
    #[must_use]
    pub fn probe_now(&self, route: &str) -> bool {
        let Some(runtime) = self.0.runtime_named(route) else { return false };
        let output = runtime.output.as_ref().filter(|output| output.operator_pause.lock().is_none());
        output.is_some_and(|output| output.circuit.lock().probe_next(Instant::now()))
    }

    /// Lets a target that is paused by itself, or a server, be tried out by the next event for it. `target` is what the
    /// [status](crate::TargetStatus) calls it; if it calls several so, all of them are. False if none is paused, or each is being tried out.
    ///
    /// Events that wait for it come back when its pause would have ended, unless they are [made due](pillarbox_engine::maintain::PendingEvents).
    #[must_use]
    pub fn probe_target_now(&self, route: &str, target: &str) -> bool {
        let Some(runtime) = self.0.runtime_named(route) else { return false };
        let output = runtime.output.as_ref().filter(|output| output.operator_pause.lock().is_none());
        output
            .is_some_and(|output| output.targets.lock().probe_next(Instant::now(), |part| output.shown(part) == target))
    }

    /// Pauses a route until it is [resumed](Self::resume): nothing is sent to its destination, not even to try it out. Its events stay pending, and
    /// no attempt is counted; what was sent before is waited for. The reason is shown with its status and in the log. False if no route
    /// of that name sends anything.
    ///
    /// It holds in this process alone, and ends with it. A route of the same name that [takes the place](Self::replace) of this one is paused as
    /// well. To pause event types or handlers on all nodes, and beyond restarts, there is [`Pauses`](pillarbox_engine::maintain::Pauses).
    #[must_use]
    pub fn pause(&self, route: &str, reason: &str) -> bool {
        let Some(runtime) = self.0.runtime_named(route) else { return false };
        let Some(output) = &runtime.output else { return false };
        *output.operator_pause.lock() = Some(Arc::from(reason));
        runtime.report();
        self.0.pause_types(output, Instant::now() + OPERATOR_PAUSE_RECHECK_INTERVAL);
        tracing::warn!(
            route,
            reason,
            "a route is paused by an operator, on this node, until it is resumed; its events stay pending"
        );
        true
    }

    /// Resumes a route that an operator has [paused](Self::pause). If its destination was away before that, it is tried out as usual. False if there
    /// is no such route, or no operator has paused it.
    #[must_use]
    pub fn resume(&self, route: &str) -> bool {
        let Some(runtime) = self.0.runtime_named(route) else { return false };
        let Some(output) = runtime.output.as_ref().filter(|output| output.operator_pause.lock().take().is_some())
        else {
            return false;
        };
        tracing::info!(route, "a route is resumed by an operator");
        if output.circuit.lock().paused().is_none() {
            self.0.resume_types(&runtime, output, Instant::now());
        }
        true
    }
}
