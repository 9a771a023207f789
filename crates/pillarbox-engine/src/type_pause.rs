use std::collections::BTreeMap;
use std::sync::Arc;

use pillarbox_core::lock::Mutex;
use pillarbox_core::planted_bug;
use tokio::time::Instant;

/// The number of types that can be paused at once. Events of further ones are read, and deferred one by one.
const MAX_TYPES: usize = 1000;

/// Keeps events of some types in the table for a while: they are not read, so that they take no memory, cost the database
/// nothing, and hold up no event of another type. Cheap to clone; given to an outbox by
/// [`type_pause`](crate::run::OutboxBuilder::type_pause).
///
/// It is for handlers that pass events on to a place that takes none at the moment. In mode `partitioned`, later events of the
/// same key whose type is not paused go on: order holds among those that go to one place. Mode `ordered` has none.
///
/// ```
/// use std::time::Duration;
/// use pillarbox_engine::run::{TypePause, Outbox};
/// use pillarbox_memory::MemoryStore;
/// use tokio::time::Instant;
///
/// let pause = TypePause::new();
/// let builder = Outbox::single_node(MemoryStore::new()).type_pause(pause.clone());
/// pause.pause("order.placed", Instant::now() + Duration::from_secs(30));
/// # drop(builder);
/// ```
#[derive(Debug, Clone, Default)]
pub struct TypePause(Arc<Mutex<BTreeMap<Box<str>, Instant>>>);

/// The event types that a reader of the table last saw paused.
#[derive(Debug, Default)]
pub(crate) struct SeenTypes(Vec<Box<str>>);

/// The event types that are paused now.
#[derive(Debug, Default)]
pub(crate) struct Paused {
    /// In alphabetical order.
    pub(crate) types: Vec<Box<str>>,
    /// True if a type that was paused before is not any more: its rows may be anywhere below those that were read since.
    pub(crate) resumed: bool,
    /// The time at which the next of them is to be read again.
    pub(crate) next: Option<Instant>,
}

impl TypePause {
    /// A pause of no type yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Events of this type stay in the table until then, unless more than a thousand types do. What is in memory already is
    /// delivered; if its handler answers with [`HandlerError::deferred`](pillarbox_core::handle::HandlerError::deferred), it is forgotten,
    /// and its row stays as it is. A later end takes the place of an earlier one.
    pub fn pause(&self, event_type: &str, until: Instant) {
        self.pause_all([event_type], until);
    }

    /// As [`pause`](Self::pause), of all these types at once.
    pub fn pause_all<'a>(&self, event_types: impl IntoIterator<Item = &'a str>, until: Instant) {
        let mut paused = self.0.lock();
        for event_type in event_types {
            if let Some(end) = paused.get_mut(event_type) {
                *end = (*end).max(until);
            } else if paused.len() < MAX_TYPES {
                paused.insert(event_type.into(), until);
            }
        }
    }

    /// Events of these types are read again, all of them from the same moment on: one that is left out would be overtaken by later
    /// ones of its key.
    pub fn resume<'a>(&self, event_types: impl IntoIterator<Item = &'a str>) {
        let mut paused = self.0.lock();
        for event_type in event_types {
            paused.remove(event_type);
        }
    }

    /// True if events of this type are paused now.
    pub(crate) fn is_paused(&self, event_type: &str) -> bool {
        self.0.lock().get(event_type).is_some_and(|until| *until > Instant::now())
    }

    /// True if all of these types are still paused.
    pub(crate) fn are_paused(&self, event_types: &[Box<str>]) -> bool {
        let (paused, now) = (self.0.lock(), Instant::now());
        event_types.iter().all(|event_type| paused.get(event_type).is_some_and(|until| *until > now))
    }

    /// Returns the types that are paused at `now`, and the changes since `seen`, which it brings up to date.
    pub(crate) fn paused(&self, seen: &mut SeenTypes, now: Instant) -> Paused {
        let mut paused = self.0.lock();
        if paused.is_empty() && seen.0.is_empty() {
            return Paused::default();
        }
        paused.retain(|_, until| *until > now);
        let types: Vec<Box<str>> = paused.keys().cloned().collect();
        let next = paused.values().min().copied();
        drop(paused);
        let resumed = seen.0.iter().any(|before| types.binary_search(before).is_err())
            && !planted_bug::is_active("type_resume_unnoticed");
        seen.0.clone_from(&types);
        Paused { types, resumed, next }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_type_is_paused_until_its_time_and_then_looked_for() {
        let (pause, mut seen, start) = (TypePause::new(), SeenTypes::default(), Instant::now());
        let at = |seconds| start + Duration::from_secs(seconds);
        pause.pause("a", at(2));
        pause.pause("b", at(5));
        pause.pause("a", at(1));
        let paused = pause.paused(&mut seen, start);
        assert_eq!((paused.types, paused.resumed, paused.next), (vec!["a".into(), "b".into()], false, Some(at(2))));
        let paused = pause.paused(&mut seen, at(2));
        assert_eq!((paused.types, paused.resumed, paused.next), (vec!["b".into()], true, Some(at(5))));
        assert!(!pause.paused(&mut seen, at(3)).resumed, "told once");
        pause.resume(["b"]);
        assert!(pause.paused(&mut seen, at(3)).resumed);
    }

    #[test]
    fn every_reader_hears_of_it() {
        let (pause, start) = (TypePause::new(), Instant::now());
        let (mut one, mut other) = (SeenTypes::default(), SeenTypes::default());
        pause.pause("a", start + Duration::from_secs(1));
        pause.paused(&mut one, start);
        pause.paused(&mut other, start);
        let later = start + Duration::from_secs(1);
        assert!(pause.paused(&mut one, later).resumed && pause.paused(&mut other, later).resumed);
    }

    #[test]
    fn it_is_bounded() {
        let (pause, until) = (TypePause::new(), Instant::now() + Duration::from_secs(1));
        (0..2 * MAX_TYPES).for_each(|number| pause.pause(&number.to_string(), until));
        assert_eq!(pause.paused(&mut SeenTypes::default(), Instant::now()).types.len(), MAX_TYPES);
    }
}
