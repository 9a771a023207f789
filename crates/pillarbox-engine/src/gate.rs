use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pillarbox_core::plants;
use tokio::time::Instant;

/// As many types as are held back at once; what is more is read and put off one by one.
const MAX_TYPES: usize = 1000;

/// Keeps events of some types in the table for a while: they are not read, so that they take no memory, cost the database
/// nothing, and hold up no event of another type. Cheap to clone; given to an outbox by
/// [`gate`](crate::run::OutboxBuilder::gate).
///
/// It is for handlers that pass events on to a place that takes none at the moment. In mode `partitioned`, later events of the
/// same key whose type is not held go on: order holds among those that go to one place. Mode `ordered` knows no gate.
///
/// ```
/// use std::time::Duration;
/// use pillarbox_engine::run::{Gate, Outbox};
/// use pillarbox_memory::MemoryStore;
/// use tokio::time::Instant;
///
/// let gate = Gate::new();
/// let builder = Outbox::single_node(MemoryStore::new()).gate(gate.clone());
/// gate.hold("order.placed", Instant::now() + Duration::from_secs(30));
/// # drop(builder);
/// ```
#[derive(Debug, Clone, Default)]
pub struct Gate(Arc<Mutex<BTreeMap<Box<str>, Instant>>>);

/// The event types that a reader of the table last saw held back by a gate.
#[derive(Debug, Default)]
pub(crate) struct Seen(Vec<Box<str>>);

/// The event types that a gate holds back now.
#[derive(Debug, Default)]
pub(crate) struct Held {
    /// In alphabetical order.
    pub(crate) types: Vec<Box<str>>,
    /// True if a type that was held back before is not any more: its rows may be anywhere below those that were read since.
    pub(crate) reopened: bool,
    /// The time at which the next of them is to be read again.
    pub(crate) next: Option<Instant>,
}

impl Gate {
    /// A gate that holds nothing back.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<Box<str>, Instant>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Events of this type stay in the table until then, unless more than a thousand types do. What is in memory already is
    /// delivered; if its handler answers with [`HandlerError::deferred`](pillarbox_core::handle::HandlerError::deferred), it is forgotten,
    /// and its row stays as it is. A later end takes the place of an earlier one.
    pub fn hold(&self, event_type: &str, until: Instant) {
        self.hold_all([event_type], until);
    }

    /// As [`hold`](Self::hold), of all these types at once.
    pub fn hold_all<'a>(&self, event_types: impl IntoIterator<Item = &'a str>, until: Instant) {
        let mut held = self.lock();
        for event_type in event_types {
            if let Some(end) = held.get_mut(event_type) {
                *end = (*end).max(until);
            } else if held.len() < MAX_TYPES {
                held.insert(event_type.into(), until);
            }
        }
    }

    /// Events of these types are read again, all of them from the same moment on: one that is left out would be overtaken by later
    /// ones of its key.
    pub fn release<'a>(&self, event_types: impl IntoIterator<Item = &'a str>) {
        let mut held = self.lock();
        for event_type in event_types {
            held.remove(event_type);
        }
    }

    /// True if events of this type are held back now.
    pub(crate) fn holds(&self, event_type: &str) -> bool {
        self.lock().get(event_type).is_some_and(|until| *until > Instant::now())
    }

    /// True if all of these types are still held back.
    pub(crate) fn holds_all(&self, event_types: &[Box<str>]) -> bool {
        let (held, now) = (self.lock(), Instant::now());
        event_types.iter().all(|event_type| held.get(event_type).is_some_and(|until| *until > now))
    }

    /// Returns the types that are held back at `now`, and the changes since `seen`, which it brings up to date.
    pub(crate) fn held(&self, seen: &mut Seen, now: Instant) -> Held {
        let mut held = self.lock();
        if held.is_empty() && seen.0.is_empty() {
            return Held::default();
        }
        held.retain(|_, until| *until > now);
        let types: Vec<Box<str>> = held.keys().cloned().collect();
        let next = held.values().min().copied();
        drop(held);
        let reopened =
            seen.0.iter().any(|before| types.binary_search(before).is_err()) && !plants::is("gate_reopens_unnoticed");
        seen.0.clone_from(&types);
        Held { types, reopened, next }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_type_is_held_until_its_time_and_then_looked_for() {
        let (gate, mut seen, start) = (Gate::new(), Seen::default(), Instant::now());
        let at = |seconds| start + Duration::from_secs(seconds);
        gate.hold("a", at(2));
        gate.hold("b", at(5));
        gate.hold("a", at(1));
        let held = gate.held(&mut seen, start);
        assert_eq!((held.types, held.reopened, held.next), (vec!["a".into(), "b".into()], false, Some(at(2))));
        let held = gate.held(&mut seen, at(2));
        assert_eq!((held.types, held.reopened, held.next), (vec!["b".into()], true, Some(at(5))));
        assert!(!gate.held(&mut seen, at(3)).reopened, "told once");
        gate.release(["b"]);
        assert!(gate.held(&mut seen, at(3)).reopened);
    }

    #[test]
    fn every_reader_hears_of_it() {
        let (gate, start) = (Gate::new(), Instant::now());
        let (mut one, mut other) = (Seen::default(), Seen::default());
        gate.hold("a", start + Duration::from_secs(1));
        gate.held(&mut one, start);
        gate.held(&mut other, start);
        let later = start + Duration::from_secs(1);
        assert!(gate.held(&mut one, later).reopened && gate.held(&mut other, later).reopened);
    }

    #[test]
    fn it_is_bounded() {
        let (gate, until) = (Gate::new(), Instant::now() + Duration::from_secs(1));
        (0..2 * MAX_TYPES).for_each(|number| gate.hold(&number.to_string(), until));
        assert_eq!(gate.held(&mut Seen::default(), Instant::now()).types.len(), MAX_TYPES);
    }
}
