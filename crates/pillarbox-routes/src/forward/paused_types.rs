use pillarbox_core::handle::Delivery;
use tokio::time::Instant;

use super::forwarder::Inner;
use super::table::Table;
use crate::route::{RouteOutput, RouteRuntime};

/// The pausable types that a route remembers; events of others are read from the table though it is paused.
const MAX_PAUSABLE_TYPES: usize = 1000;

impl Inner {
    /// Leaves the route's events in the table, as far as their type says that they are.
    pub(super) fn pause_types(&self, output: &RouteOutput, until: Instant) {
        let mut types = output.pausable_types.lock();
        types.pause(Instant::now(), until);
        self.type_pause.pause_all(types.known.keys().map(|event_type| &**event_type), until);
        types.are_paused(Instant::now());
    }

    /// Reads the events of the route from the table again.
    pub(super) fn resume_types(&self, runtime: &RouteRuntime, output: &RouteOutput, now: Instant) {
        let mut types = output.pausable_types.lock();
        types.resume(now);
        self.type_pause.resume(types.known.keys().map(|event_type| &**event_type));
        drop(types);
        runtime.report();
    }
}

/// Remembers the types of events that take this route, if none of their type takes another. Returns whether there was a new one, and the
/// end of the time in which earlier events than these may have been left in the table, if there was one.
pub(super) fn note_types(
    table: &Table,
    index: usize,
    output: &RouteOutput,
    events: &[&Delivery],
) -> (bool, Option<Instant>) {
    let mut types = output.pausable_types.lock();
    // If the routes were replaced meanwhile, other types may be alone with this one now.
    let is_current = types.generation == table.generation;
    let (mut is_new, mut last, mut paused_until) = (false, "", None);
    for event in events {
        let event_type = event.event_type();
        if is_current
            && event_type != last
            && types.known.len() < MAX_PAUSABLE_TYPES
            && !types.known.contains_key(event_type)
        {
            let is_alone = table.is_alone_with(index, event_type);
            is_new |= is_alone && types.learn(event_type, Instant::now());
        }
        paused_until = paused_until.max(types.end_before(event_type, event.queued_at()));
        last = event_type;
    }
    (is_new, paused_until)
}
