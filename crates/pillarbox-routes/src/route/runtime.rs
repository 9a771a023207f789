use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use pillarbox_core::handle::Delivery;
use pillarbox_core::lock::Mutex;
use pillarbox_core::publisher::{Message, Publisher};
use tokio::time::Instant;

use super::rule::Remake;
use crate::forward::{Stranded, TargetLog};
use crate::guard::{Backoffs, Circuit, Limits, Part, Parts, Targets};
use crate::observe::Meters;
use crate::select::{Predicate, Selector};
use crate::shape::{Format, HeaderRules, Outline, Template};

/// A route at work.
#[derive(Debug)]
pub(crate) struct RouteRuntime {
    pub(crate) name: Arc<str>,
    pub(crate) selector: Selector,
    /// `None`: what it takes goes nowhere.
    pub(crate) sink: Option<Sink>,
    pub(crate) meters: Meters,
}

impl RouteRuntime {
    /// Brings its gauges up to date. To be called without a lock of its sink.
    pub(crate) fn report(&self) {
        let Some(sink) = &self.sink else { return };
        self.meters.report(|| {
            let is_paused = sink.by_hand.lock().is_some() || sink.circuit.lock().paused().is_some();
            (is_paused, sink.targets.lock().all_paused().count())
        });
    }
}

/// The place to which a route sends: the broker, and the form of the messages.
pub(crate) struct Sink {
    pub(crate) publisher: Arc<dyn Publisher>,
    pub(crate) target: Template,
    pub(crate) key: Option<Template>,
    pub(crate) format: Format,
    pub(crate) source: Box<str>,
    pub(crate) headers: HeaderRules,
    pub(crate) only: Option<Predicate>,
    pub(crate) remake: Option<Remake>,
    pub(crate) limits: Limits,
    pub(crate) circuit: Mutex<Circuit>,
    /// The targets and servers in trouble, where the target depends on the event.
    pub(crate) targets: Mutex<Targets>,
    /// The delays of events that were not taken while others were.
    pub(crate) backoffs: Mutex<Backoffs>,
    pub(crate) types: Mutex<Types>,
    /// The reason, while an operator has it paused.
    pub(crate) by_hand: Mutex<Option<Arc<str>>>,
    pub(crate) stranded: Stranded,
    pub(crate) target_log: TargetLog,
}

/// The types of the events that have come this way and of which none goes another: what can be held back.
#[derive(Debug, Default)]
pub(crate) struct Types {
    /// Each with the time from which on it is held back with the others; `None` for one that came while they were, until it is too.
    pub(crate) known: BTreeMap<Box<str>, Option<Instant>>,
    /// The generation of the routes among which that is so.
    pub(crate) generation: u64,
    /// Until when events of these types are left in the table, or were last.
    held_until: Option<Instant>,
}

impl Types {
    /// Their events are left in the table until then; a later end takes the place of an earlier one.
    pub(crate) fn hold(&mut self, now: Instant, until: Instant) {
        if !self.known.is_empty() && until > now {
            self.held_until = self.held_until.max(Some(until));
        }
    }

    /// The types that came to be known during a hold are held back with the others from now on.
    pub(crate) fn are_held(&mut self, now: Instant) {
        self.known.values_mut().filter(|since| since.is_none()).for_each(|since| *since = Some(now));
    }

    /// Remembers a type. Returns true if it is new.
    pub(crate) fn learn(&mut self, event_type: &str, now: Instant) -> bool {
        let since = if self.held_until.is_some_and(|end| end > now) { None } else { Some(now) };
        self.known.insert(event_type.into(), since).is_none()
    }

    /// Their events are read again from now on.
    pub(crate) fn release(&mut self, now: Instant) {
        self.held_until = self.held_until.map(|end| end.min(now));
    }

    /// Other routes have the place of these: which types are alone with one has to be found anew. Returns until when events were left in
    /// the table.
    pub(crate) fn begin_anew(&mut self, now: Instant, generation: u64) -> Option<Instant> {
        self.release(now);
        self.known.clear();
        self.generation = generation;
        self.held_until
    }

    /// Events that come this way now were left in the table until then, perhaps for another route.
    pub(crate) fn were_held(&mut self, until: Option<Instant>) {
        self.held_until = self.held_until.max(until);
    }

    /// The end of the hold during which an event may have come into memory, at `since`: its type was not one of those that are held. `None`
    /// if there was none. Earlier events of its key may have been left in the table then.
    pub(crate) fn end_before(&self, event_type: &str, since: Option<Instant>) -> Option<Instant> {
        let could_be_held = since.is_some_and(|since| {
            self.known.get(event_type).is_some_and(|known| known.is_some_and(|known| known < since))
        });
        self.held_until.filter(|end| !could_be_held && since.is_none_or(|since| since <= *end))
    }
}

impl Sink {
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
        self.refuse_reserved(&target)?;
        let outline = Outline { target, key, kind: info.kind, source: &self.source };
        let mut message = self.format.shape(event, outline, &self.headers)?;
        message.tenant = event.tenant_id().map(Into::into);
        match &self.remake {
            Some(remake) => remake(event, message).map(Some),
            None => Ok(Some(message)),
        }
    }

    /// Refuses a target that a value of the event has made one of the broker's own.
    fn refuse_reserved(&self, target: &str) -> Result<(), String> {
        let reserved = self.publisher.info().reserved.filter(|first| target.starts_with(*first));
        match reserved.zip(self.target.prefix()) {
            Some((reserved, prefix)) if !prefix.starts_with(reserved) => Err(format!(
                "the target {:?} would begin with `{reserved}`, as the broker's own do; begin `to` with text of its own, such as `events/`",
                self.publisher.shown(target)
            )),
            _ => Ok(()),
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
}

impl fmt::Debug for Sink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The target may hold a secret, as some URLs do.
        f.debug_struct("Sink").field("publisher", self.publisher.info()).finish_non_exhaustive()
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
        old.learn("held", start);
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
    fn an_event_that_came_in_before_its_type_could_be_held_is_put_off_after_a_later_hold_too() {
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let mut types = Types::default();
        types.learn("held", start);
        types.hold(at(1), at(2));
        types.learn("other", at(3));
        types.hold(at(5), at(6));
        assert_eq!(types.end_before("other", Some(at(1))), Some(at(6)));
        assert_eq!(types.end_before("other", Some(at(4))), None, "no type was held then, or it would not have come in");
        assert_eq!(types.end_before("held", Some(at(3))), None);
        assert_eq!(types.end_before("held", None), Some(at(6)));
    }

    #[test]
    fn a_type_that_came_during_a_hold_counts_as_held_once_it_is() {
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let mut types = Types::default();
        types.learn("held", start);
        types.hold(at(1), at(9));
        types.learn("other", at(2));
        assert_eq!(
            types.end_before("other", Some(at(3))),
            Some(at(9)),
            "it may have been read while only the first was held"
        );
        types.are_held(at(4));
        assert_eq!(types.end_before("other", Some(at(3))), Some(at(9)));
        assert_eq!(types.end_before("other", Some(at(5))), None);
    }
}
