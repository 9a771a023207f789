use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pillarbox_core::handle::Delivery;
use pillarbox_core::publisher::{Message, Publisher};
use tokio::time::Instant;

use super::rule::{Filter, Remake};
use crate::guard::{Circuit, Limits, Part, Parts, Targets};
use crate::observe::Meters;
use crate::select::Selector;
use crate::shape::{Format, HeaderRules, Outline, Template};

/// A route at work.
#[derive(Debug)]
pub(crate) struct Line {
    pub(crate) name: Arc<str>,
    pub(crate) selector: Selector,
    /// `None`: what it takes goes nowhere.
    pub(crate) sending: Option<Sending>,
    pub(crate) meters: Meters,
}

/// How a route sends.
pub(crate) struct Sending {
    pub(crate) publisher: Arc<dyn Publisher>,
    pub(crate) target: Template,
    pub(crate) key: Option<Template>,
    pub(crate) format: Format,
    pub(crate) source: Box<str>,
    pub(crate) headers: HeaderRules,
    pub(crate) only: Option<Filter>,
    pub(crate) remake: Option<Remake>,
    pub(crate) limits: Limits,
    pub(crate) circuit: Mutex<Circuit>,
    /// The targets and servers in trouble, where the target depends on the event.
    pub(crate) targets: Mutex<Targets>,
    pub(crate) types: Mutex<Types>,
}

/// The types of the events that have come this way and of which none goes another: what can be held back.
#[derive(Debug, Default)]
pub(crate) struct Types {
    /// Each with the time from which on it is held back with the others.
    pub(crate) known: BTreeMap<Box<str>, Instant>,
    /// The generation of the routes among which that is so.
    pub(crate) generation: u64,
    held: Held,
}

/// From when until when events of some types are left in the table, or were, if they are or were.
pub(crate) type Held = Option<(Instant, Instant)>;

impl Types {
    /// Their events are left in the table until then; a later end takes the place of an earlier one.
    pub(crate) fn hold(&mut self, now: Instant, until: Instant) {
        if !self.known.is_empty() && until > now {
            let from = self.held.filter(|(_, end)| *end > now).map_or(now, |(from, _)| from);
            let end = self.held.map_or(until, |(_, end)| end.max(until));
            self.held = Some((from, end));
        }
    }

    /// Their events are read again from now on.
    pub(crate) fn release(&mut self, now: Instant) {
        self.held = self.held.map(|(from, end)| (from, end.min(now)));
    }

    /// Other routes have the place of these: which types are alone with one has to be found anew. Returns when events were left in the
    /// table.
    pub(crate) fn begin_anew(&mut self, now: Instant, generation: u64) -> Held {
        self.release(now);
        self.known.clear();
        self.generation = generation;
        self.held
    }

    /// Events that come this way now were left in the table then, perhaps for another route.
    pub(crate) fn were_held(&mut self, held: Held) {
        self.held = union(self.held, held);
    }

    /// The end of the hold during which an event came into memory, at `since`, though its type was not held; `None` if there was none.
    /// Earlier events of its key may have been left in the table then.
    pub(crate) fn end_before(&self, event_type: &str, since: Option<Instant>) -> Option<Instant> {
        let (from, end) = self.held?;
        let was_held = self.known.get(event_type).is_some_and(|known| *known < from);
        (!was_held && since.is_none_or(|since| since <= end)).then_some(end)
    }
}

/// The time in which either was held.
pub(crate) fn union(one: Held, other: Held) -> Held {
    match (one, other) {
        (Some((from, end)), Some((other_from, other_end))) => Some((from.min(other_from), end.max(other_end))),
        (one, other) => one.or(other),
    }
}

impl Sending {
    /// The message of an event; `None` if it is not to be sent. An error says what will never fit.
    pub(crate) fn message(&self, event: &Delivery) -> Result<Option<Message>, String> {
        if self.only.as_ref().is_some_and(|only| !only(event)) {
            return Ok(None);
        }
        let key = match &self.key {
            Some(key) => Some(key.fill(event)?),
            None => event.key().map(Arc::from),
        };
        let info = self.publisher.info();
        let target = self.target.fill_target(event, info.targets)?;
        let outline = Outline { target, key, kind: info.kind, source: &self.source };
        let mut message = self.format.shape(event, outline, &self.headers)?;
        message.tenant = event.tenant_id().map(Into::into);
        match &self.remake {
            Some(remake) => remake(event, message).map(Some),
            None => Ok(Some(message)),
        }
    }

    /// The parts of the destination that a message needs; `None` if they are the same for every event.
    pub(crate) fn parts(&self, message: &Message) -> Option<Parts> {
        if self.target.fixed() == Some(&*message.target) {
            return None;
        }
        let server = self.publisher.server(&message.target).map(|server| Part::Server(server.into()));
        Some(Parts { server, target: Part::Target(Arc::clone(&message.target)) })
    }

    /// A part of the destination, as it may be shown.
    pub(crate) fn shown(&self, part: &Part) -> String {
        match part {
            Part::Server(server) => server.to_string(),
            Part::Target(target) => self.publisher.shown(target).into_owned(),
        }
    }

    pub(crate) fn targets(&self) -> MutexGuard<'_, Targets> {
        self.targets.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn circuit(&self) -> MutexGuard<'_, Circuit> {
        self.circuit.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn types(&self) -> MutexGuard<'_, Types> {
        self.types.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Sending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The target may hold a secret, as some URLs do.
        f.debug_struct("Sending").field("publisher", self.publisher.info()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn what_came_into_memory_before_routes_were_replaced_is_put_off_where_events_were_held_then() {
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let (mut old, mut new) = (Types::default(), Types::default());
        old.known.insert("held".into(), start);
        old.hold(at(1), at(9));
        new.were_held(old.begin_anew(at(3), 1));
        for types in [&old, &new] {
            assert_eq!(
                types.end_before("held", Some(at(2))),
                Some(at(3)),
                "which types are alone is not known any more"
            );
            assert_eq!(types.end_before("other", Some(at(2))), Some(at(3)));
            assert_eq!(types.end_before("other", Some(at(4))), None);
        }
    }

    #[test]
    fn the_holds_of_all_routes_count() {
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        assert_eq!(union(None, Some((at(1), at(2)))), Some((at(1), at(2))));
        assert_eq!(union(Some((at(1), at(2))), None), Some((at(1), at(2))));
        assert_eq!(union(Some((at(1), at(4))), Some((at(0), at(2)))), Some((at(0), at(4))));
        assert_eq!(union(None, None), None);
    }
}
