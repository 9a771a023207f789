use std::sync::Arc;

use pillarbox_core::row::Change;

use super::keys::Ended;
use super::{Class, Item, KeyLanes, Lanes};

/// The queue from which workers take events.
#[derive(Debug, Clone)]
pub(crate) enum Feed {
    /// Two queues, in which the events have no order, or the one of the table.
    Lanes(Arc<Lanes>),
    /// One queue, in which the events of a key keep theirs.
    Keys(Arc<KeyLanes>),
}

impl Feed {
    /// The next event; `None` once the feed is closed and empty.
    pub(crate) async fn pop(&self) -> Option<Item> {
        match self {
            Self::Lanes(lanes) => lanes.pop().await,
            Self::Keys(keys) => keys.pop().await,
        }
    }

    /// Up to `max` of the events of a class that would be next and are `wanted`.
    pub(crate) fn pop_more(&self, class: Class, max: usize, wanted: impl Fn(&Item) -> bool) -> Vec<Item> {
        match self {
            Self::Lanes(lanes) => lanes.pop_more(class, max, wanted),
            Self::Keys(keys) => keys.pop_more(class, max, wanted),
        }
    }

    /// An event has been decided about: `change` is to be recorded, or it is `None` and the row was found to have changed.
    pub(crate) fn ended(&self, seq: i64, change: Option<&Change>) -> Ended {
        match self {
            Self::Lanes(_) => Ended::default(),
            Self::Keys(keys) => keys.ended(seq, change),
        }
    }

    /// An event is left in the table as it is, and with it those behind it.
    pub(crate) fn left(&self, seq: i64) -> Ended {
        match self {
            Self::Lanes(_) => Ended::default(),
            Self::Keys(keys) => keys.left(seq),
        }
    }

    /// These verdicts are recorded, or never will be. Returns the lowest row from which on to look again, if any.
    pub(crate) fn recorded(&self, verdicts: impl IntoIterator<Item = (i64, bool)>) -> Option<i64> {
        match self {
            Self::Lanes(_) => None,
            Self::Keys(keys) => keys.recorded(verdicts),
        }
    }

    /// Payload bytes of the events that wait or run.
    pub(crate) fn payload_bytes(&self) -> usize {
        match self {
            Self::Lanes(lanes) => lanes.shares().payload_bytes(),
            Self::Keys(keys) => keys.shares().payload_bytes(),
        }
    }

    /// The number of waiting events that came from memory, and of those that came from the table.
    pub(crate) fn depths(&self) -> (usize, usize) {
        match self {
            Self::Lanes(lanes) => lanes.depths(),
            Self::Keys(keys) => (0, keys.depth()),
        }
    }

    /// Takes nothing more in; what is queued can still be popped.
    pub(crate) fn close(&self) {
        match self {
            Self::Lanes(lanes) => lanes.close(),
            Self::Keys(keys) => keys.close(),
        }
    }

    /// Closes and throws away what is queued: the table still has it.
    pub(crate) fn abandon(&self) -> usize {
        match self {
            Self::Lanes(lanes) => lanes.abandon(),
            Self::Keys(keys) => keys.abandon(),
        }
    }
}
