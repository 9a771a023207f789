use std::collections::BTreeMap;

use tokio::time::Instant;

/// The types of the events that have taken this route and of which none takes another: those that can be paused, so that their events are
/// left in the table.
#[derive(Debug, Default)]
pub(crate) struct PausableTypes {
    /// Each with the time from which on it is paused with the others; `None` for one that came while they were paused, until it is too.
    pub(crate) known: BTreeMap<Box<str>, Option<Instant>>,
    /// The generation of the routes among which that is so.
    pub(crate) generation: u64,
    /// The end of the time for which events of these types are left in the table, or last were.
    paused_until: Option<Instant>,
}

impl PausableTypes {
    /// Their events are left in the table until then; a later end takes the place of an earlier one.
    pub(crate) fn pause(&mut self, now: Instant, until: Instant) {
        if !self.known.is_empty() && until > now {
            self.paused_until = self.paused_until.max(Some(until));
        }
    }

    /// The types that came to be known during a pause are paused with the others from now on.
    pub(crate) fn are_paused(&mut self, now: Instant) {
        self.known.values_mut().filter(|since| since.is_none()).for_each(|since| *since = Some(now));
    }

    /// Remembers a type. Returns true if it is new.
    pub(crate) fn learn(&mut self, event_type: &str, now: Instant) -> bool {
        let since = if self.paused_until.is_some_and(|end| end > now) { None } else { Some(now) };
        self.known.insert(event_type.into(), since).is_none()
    }

    /// Their events are read again from now on.
    pub(crate) fn resume(&mut self, now: Instant) {
        self.paused_until = self.paused_until.map(|end| end.min(now));
    }

    /// Forgets the types, as other routes have replaced these. Returns until when events were left in the table.
    pub(crate) fn invalidate(&mut self, now: Instant, generation: u64) -> Option<Instant> {
        self.resume(now);
        self.known.clear();
        self.generation = generation;
        self.paused_until
    }

    /// Events that come this way now were left in the table until then, perhaps for another route.
    pub(crate) fn were_paused(&mut self, until: Option<Instant>) {
        self.paused_until = self.paused_until.max(until);
    }

    /// The end of the pause during which an event may have come into memory, at `since`: its type was not one of those that are paused. `None`
    /// if there was none. Earlier events of its key may have been left in the table then.
    pub(crate) fn end_before(&self, event_type: &str, since: Option<Instant>) -> Option<Instant> {
        let could_be_paused = since.is_some_and(|since| {
            self.known.get(event_type).is_some_and(|known| known.is_some_and(|known| known < since))
        });
        self.paused_until.filter(|end| !could_be_paused && since.is_none_or(|since| since <= *end))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn events_read_before_routes_were_replaced_are_deferred_if_events_were_paused_then() {
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let (mut old, mut new) = (PausableTypes::default(), PausableTypes::default());
        old.learn("paused", start);
        old.pause(at(1), at(9));
        new.were_paused(old.invalidate(at(3), 1));
        for types in [&old, &new] {
            assert_eq!(
                types.end_before("paused", Some(at(2))),
                Some(at(3)),
                "which types are alone is not known any more"
            );
            assert_eq!(types.end_before("other", Some(at(2))), Some(at(3)));
            assert_eq!(types.end_before("other", Some(at(4))), None);
        }
    }

    #[test]
    fn an_event_that_came_in_before_its_type_could_be_paused_is_deferred_after_a_later_pause_too() {
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let mut types = PausableTypes::default();
        types.learn("paused", start);
        types.pause(at(1), at(2));
        types.learn("other", at(3));
        types.pause(at(5), at(6));
        assert_eq!(types.end_before("other", Some(at(1))), Some(at(6)));
        assert_eq!(
            types.end_before("other", Some(at(4))),
            None,
            "no type was paused then, or it would not have come in"
        );
        assert_eq!(types.end_before("paused", Some(at(3))), None);
        assert_eq!(types.end_before("paused", None), Some(at(6)));
    }

    #[test]
    fn a_type_that_came_during_a_pause_counts_as_paused_once_it_is() {
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let mut types = PausableTypes::default();
        types.learn("paused", start);
        types.pause(at(1), at(9));
        types.learn("other", at(2));
        assert_eq!(
            types.end_before("other", Some(at(3))),
            Some(at(9)),
            "it may have been read while only the first was paused"
        );
        types.are_paused(at(4));
        assert_eq!(types.end_before("other", Some(at(3))), Some(at(9)));
        assert_eq!(types.end_before("other", Some(at(5))), None);
    }
}
