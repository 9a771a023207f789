use pillarbox_core::throttle::Throttle;

use crate::breaker::{Part, Transition};
use crate::route::{RouteOutput, RouteRuntime};

/// The lines of a kind in ten seconds: a handful of targets is named, and thousands are not.
const MAX_LINES: u32 = 10;

/// Tells of the targets of one route that are paused by themselves, and of those that go on. There may be many, and each pauses again and again:
/// a few are named, the next line speaks for the remainder too, and the status of the route has the others.
#[derive(Debug)]
pub(crate) struct TargetLog {
    paused: Throttle,
    resumed: Throttle,
}

impl Default for TargetLog {
    fn default() -> Self {
        Self { paused: Throttle::lines(MAX_LINES), resumed: Throttle::lines(MAX_LINES) }
    }
}

impl TargetLog {
    /// Not a field `target`: in a line of JSON that is the module which logs.
    pub(super) fn tell(
        &self,
        runtime: &RouteRuntime,
        output: &RouteOutput,
        part: &Part,
        transition: &Transition,
        problem: Option<&str>,
    ) {
        let (route, publisher) = (&*runtime.name, output.publisher.info().kind);
        match transition {
            // Each may have its own words at every try.
            Transition::None | Transition::StillPaused { .. } => {}
            Transition::Paused { pause } => {
                let Some(targets) = self.paused.report(1) else { return };
                tracing::warn!(
                    route,
                    publisher,
                    destination = output.shown(part),
                    targets,
                    ?pause,
                    problem = problem.unwrap_or_default(),
                    "a target is paused: it takes nothing, or asks for a pause; its events stay pending, no attempt is counted, and the route goes on"
                );
            }
            Transition::Resumed => {
                let Some(targets) = self.resumed.report(1) else { return };
                tracing::info!(
                    route,
                    publisher,
                    destination = output.shown(part),
                    targets,
                    "a target takes events again"
                );
            }
        }
    }
}
