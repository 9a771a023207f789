use tokio::time::Instant;

use super::findings::{Findings, escalated, may_stand_for_whole};
use super::forwarder::Inner;
use crate::breaker::{CallResult, Parts, Transition};
use crate::route::{RouteOutput, RouteRuntime};

impl Inner {
    /// Tells the breakers of the route and of its targets; until when the route is paused, if it is. `failed` has the tenants and the parts of
    /// events that a part of the destination did not take.
    pub(super) fn learn_all<'a>(
        &self,
        runtime: &RouteRuntime,
        output: &RouteOutput,
        now: Instant,
        found: &Findings,
        failed: impl Iterator<Item = (Option<&'a str>, &'a Parts)>,
    ) -> Option<Instant> {
        let mut new_trouble = Vec::new();
        if !found.parts.is_empty() {
            let stands_for_whole = may_stand_for_whole(found);
            let mut targets = output.targets.lock();
            let mut transitions = Vec::new();
            for (part, called) in &found.parts {
                let changed = targets.ended(part, now, called.clone());
                if changed.is_new && stands_for_whole(part) {
                    new_trouble.push((part, called));
                }
                if changed.transition != Transition::None {
                    transitions.push((part, changed.transition, targets.paused(part).map(|(_, problem)| problem)));
                }
            }
            drop(targets);
            runtime.report();
            for (part, transition, problem) in transitions {
                output.target_log.tell(runtime, output, part, &transition, problem.as_deref());
            }
        }
        if found.whole == Some(CallResult::Well) {
            output.tenants.lock().recovered();
        }
        let tenants = failed
            .filter(|(_, parts)| parts.each().any(|part| new_trouble.iter().any(|(new, _)| *new == part)))
            .map(|(tenant, _)| tenant);
        let speaks_against_whole = !new_trouble.is_empty() && output.tenants.lock().trouble(tenants, now);
        let trouble = new_trouble.iter().map(|(_, called)| *called).filter(|_| speaks_against_whole);
        let whole = found.whole.clone().or_else(|| escalated(trouble));
        whole.and_then(|called| self.learn(runtime, output, now, called))
    }

    /// Tells the breaker, and says of what changed; until when the route is paused, if it is.
    pub(super) fn learn(
        &self,
        runtime: &RouteRuntime,
        output: &RouteOutput,
        now: Instant,
        called: CallResult,
    ) -> Option<Instant> {
        let (transition, paused) = {
            let mut circuit = output.circuit.lock();
            (circuit.ended(now, called), circuit.paused())
        };
        let info = output.publisher.info();
        match transition {
            Transition::None => {}
            Transition::Paused { pause } | Transition::StillPaused { pause } => {
                runtime.report();
                let problem = paused.as_ref().map(|(_, problem)| problem.to_string()).unwrap_or_default();
                let message = if matches!(transition, Transition::Paused { .. }) {
                    "a route is paused: its destination takes nothing, or asks for a pause; its events stay pending, and no attempt is counted"
                } else {
                    "a route is still paused, for another reason than before"
                };
                let (route, publisher, address) = (&*runtime.name, info.kind, info.address.as_str());
                tracing::warn!(route, publisher, address, ?pause, problem, "{message}");
            }
            Transition::Resumed => {
                // One that an operator has paused stays so.
                if output.operator_pause.lock().is_none() {
                    self.resume_types(runtime, output, now);
                }
                tracing::info!(
                    route = &*runtime.name,
                    publisher = info.kind,
                    "a route goes on: its destination takes events again"
                );
            }
        }
        let until = paused.map(|(until, _)| until);
        if let Some(until) = until {
            self.pause_types(output, until);
        }
        until
    }
}
