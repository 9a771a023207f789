use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError};

use tokio::time::Instant;

use super::Forwarder;
use super::table::Table;
use crate::route::{RouteError, RouteRuntime, Routes};

/// The text of the log where a route that an operator has [paused](Forwarder::pause) has no successor.
pub const OPERATOR_PAUSE_ENDED: &str = "a route that an operator has paused sends nothing any more, and its pause is over: its events go as the \
     new routes say";

impl Forwarder {
    /// Replaces the routes while events are passed on. A call that is on its way ends with the routes it began with; the next one has the
    /// new ones. A route for whose name `keeps` is true stays at work as it is, with its limits, its pause and its counts; all others begin
    /// anew. A route with the name of one that an operator has [paused](Self::pause) begins paused, and has to be [resumed](Self::resume).
    ///
    /// Connections of publishers stay open, so that calls on their way can end: close those that no route names any more.
    ///
    /// # Errors
    /// As [`Routes::build`]; the routes stay as they were.
    pub fn replace(&self, routes: Routes, keeps: impl Fn(&str) -> bool) -> Result<(), RouteError> {
        let mut table = self.0.table.write().unwrap_or_else(PoisonError::into_inner);
        let kept: BTreeMap<Arc<str>, Arc<RouteRuntime>> = table
            .runtimes
            .iter()
            .filter(|runtime| keeps(&runtime.name))
            .map(|runtime| (Arc::clone(&runtime.name), Arc::clone(runtime)))
            .collect();
        let built = routes.built(&kept)?;
        let generation = table.generation + 1;
        let is_kept = |runtime: &Arc<RouteRuntime>| built.runtimes.iter().any(|other| Arc::ptr_eq(other, runtime));
        for runtime in table.runtimes.iter().filter(|runtime| !is_kept(runtime)) {
            // Calls of it may still be under way.
            runtime.meters.retire();
            stay_paused(runtime, &built.runtimes);
        }
        let (now, mut paused_until) = (Instant::now(), None);
        for output in table.runtimes.iter().filter_map(|runtime| runtime.output.as_ref()) {
            let mut types = output.pausable_types.lock();
            // None stays paused for a route that is no more.
            self.0.type_pause.resume(types.known.keys().map(|event_type| &**event_type));
            paused_until = paused_until.max(types.invalidate(now, generation));
        }
        for output in built.runtimes.iter().filter_map(|runtime| runtime.output.as_ref()) {
            let mut types = output.pausable_types.lock();
            types.generation = generation;
            types.were_paused(paused_until);
        }
        self.0.logged_types.lock().clear();
        *table = Arc::new(Table::new(built, generation));
        Ok(())
    }
}

/// The route that takes the place of one which an operator has paused begins paused too.
fn stay_paused(before: &RouteRuntime, all: &[Arc<RouteRuntime>]) {
    let Some(reason) = before.output.as_ref().and_then(|output| output.operator_pause.lock().clone()) else { return };
    let (route, reason) = (&*before.name, &*reason);
    let new = all.iter().find(|runtime| runtime.name == before.name);
    match new.and_then(|runtime| Some((runtime, runtime.output.as_ref()?))) {
        Some((runtime, output)) => {
            *output.operator_pause.lock() = Some(Arc::from(reason));
            runtime.report();
            tracing::warn!(
                route,
                reason,
                "a route that is configured anew stays paused by an operator, until it is resumed"
            );
        }
        None => tracing::warn!(route, reason, "{OPERATOR_PAUSE_ENDED}"),
    }
}
