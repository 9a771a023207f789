use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError};

use tokio::time::Instant;

use super::Forwarder;
use super::forwarder::Table;
use crate::route::{Line, RouteError, Routes};

impl Forwarder {
    /// Puts other routes in the place of these while events are passed on. A call that is on its way ends with the routes it
    /// began with; the next one has the new ones. A route whose name `keeps` is true for stays at work as it is, with its limits,
    /// its pause and its counts; all others begin anew.
    ///
    /// Connections of publishers stay open, so that calls on their way can end: close those that no route names any more.
    ///
    /// # Errors
    /// As [`Routes::build`]; the routes stay as they were.
    pub fn replace(&self, routes: Routes, keeps: impl Fn(&str) -> bool) -> Result<(), RouteError> {
        let mut table = self.0.table.write().unwrap_or_else(PoisonError::into_inner);
        let kept: BTreeMap<Arc<str>, Arc<Line>> = table
            .lines
            .iter()
            .filter(|line| keeps(&line.name))
            .map(|line| (Arc::clone(&line.name), Arc::clone(line)))
            .collect();
        // Before any of the new ones is made, whose gauges have the same names.
        let built = routes.built(&kept)?;
        let generation = table.generation + 1;
        let is_kept = |line: &Arc<Line>| built.lines.iter().any(|other| Arc::ptr_eq(other, line));
        let is_named = |line: &Arc<Line>| built.lines.iter().any(|other| other.name == line.name);
        for line in table.lines.iter().filter(|line| !is_kept(line) && !is_named(line)) {
            line.meters.rest();
        }
        let (now, mut held_until) = (Instant::now(), None);
        for sending in table.lines.iter().filter_map(|line| line.sending.as_ref()) {
            let mut types = sending.types();
            // None is held for a route that is no more.
            self.0.gate.release(types.known.keys().map(|held| &**held));
            held_until = held_until.max(types.begin_anew(now, generation));
        }
        for sending in built.lines.iter().filter_map(|line| line.sending.as_ref()) {
            let mut types = sending.types();
            types.generation = generation;
            types.were_held(held_until);
        }
        self.0.told.lock().unwrap_or_else(PoisonError::into_inner).clear();
        *table = Arc::new(Table::new(built, generation));
        Ok(())
    }
}
