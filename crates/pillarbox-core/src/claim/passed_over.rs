use std::collections::BTreeMap;

use crate::queue::{Class, Limits, Shares};

/// As many event types are left out of a fetch at once, for lack of room for their class.
const MAX_TYPES: usize = 1000;

/// The classes whose events are passed over, each with the `seq` above which the table has some that were left there.
#[derive(Debug, Default)]
pub(crate) struct PassedOver {
    from: BTreeMap<Class, i64>,
    /// Event types of which all are of one of these classes: the table need not be read to pass them over.
    types: BTreeMap<Box<str>, Class>,
}

/// A class of which more is to be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Wanted {
    pub(crate) class: Class,
    /// Nothing was left in the table at or below it.
    pub(crate) above: i64,
    /// The rows and bytes that there is room for.
    pub(crate) room: Limits,
}

impl PassedOver {
    /// Events of this class were left in the table above `seq`, if not below.
    pub(crate) fn left(&mut self, class: Class, above: i64) {
        let from = self.from.entry(class).or_insert(above);
        *from = above.min(*from);
    }

    /// All events of this type are of this class, of which some are passed over.
    pub(crate) fn has_type(&mut self, class: Class, event_type: &str) {
        if self.types.len() < MAX_TYPES && !self.types.contains_key(event_type) {
            self.types.insert(event_type.into(), class);
        }
    }

    /// The event types to leave out of a fetch, which may be one of a class that is passed over.
    pub(crate) fn types(&self, wanted: Option<Class>) -> impl Iterator<Item = &str> {
        self.types.iter().filter(move |(_, class)| Some(**class) != wanted).map(|(event_type, _)| &**event_type)
    }

    /// The class to read next of those that are passed over.
    pub(crate) fn wanted(&self, shares: &Shares) -> Option<Wanted> {
        let wanted = |(class, above): (&Class, &i64)| {
            Some(Wanted { class: *class, above: *above, room: shares.room_for(*class)? })
        };
        self.from.iter().filter_map(wanted).min_by_key(|wanted| wanted.above)
    }

    /// Of this class, everything at or below `seq` has been read.
    pub(crate) fn read(&mut self, class: Class, seq: i64) {
        if let Some(from) = self.from.get_mut(&class) {
            *from = seq;
        }
    }

    /// Nothing is left of this class.
    pub(crate) fn caught_up(&mut self, class: Class) {
        self.from.remove(&class);
        self.types.retain(|_, of| *of != class);
    }

    /// Rows above `seq` were given back to the table. A class is read from there again, or later rows of their keys would come first.
    pub(super) fn look_from(&mut self, seq: i64) {
        self.from.values_mut().for_each(|from| *from = seq.min(*from));
    }

    /// Rows may have appeared anywhere.
    pub(crate) fn start_over(&mut self) {
        self.from.values_mut().for_each(|from| *from = 0);
    }

    pub(crate) fn has(&self, class: Class) -> bool {
        self.from.contains_key(&class)
    }
}
