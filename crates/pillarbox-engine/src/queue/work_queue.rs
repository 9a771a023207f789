use std::sync::Arc;

use pillarbox_core::row::Change;
use pillarbox_core::store::RowId;

use super::keyed_queue::Decided;
use super::{Class, Item, KeyedQueue, ReadyQueue};
use crate::operator_pauses::OperatorPauses;

/// The largest number of events that a search for more of a call passes over.
pub(super) const MAX_PASSED_OVER: usize = 1000;

/// The queue from which workers take events.
#[derive(Debug, Clone)]
pub(crate) enum WorkQueue {
    /// Two queues, in which the events have no order, or the one of the table.
    Ready(Arc<ReadyQueue>),
    /// One queue, in which the events of a key keep theirs.
    Keyed(Arc<KeyedQueue>),
}

impl WorkQueue {
    /// The next event; `None` once the queue is closed and empty.
    pub(crate) async fn pop(&self) -> Option<Item> {
        match self {
            Self::Ready(ready) => ready.pop().await,
            Self::Keyed(keyed) => keyed.pop().await,
        }
    }

    /// Up to `max` of the events of a class that would be next and are `wanted`.
    pub(crate) fn pop_more(&self, class: Class, max: usize, wanted: impl Fn(&Item) -> bool) -> Vec<Item> {
        match self {
            Self::Ready(ready) => ready.pop_more(class, max, wanted),
            Self::Keyed(keyed) => keyed.pop_more(class, max, wanted),
        }
    }

    /// An event has been decided about: `change` is to be recorded, or it is `None` and the row was found to have changed.
    pub(crate) fn ended(&self, seq: i64, change: Option<&Change>) -> Decided {
        match self {
            Self::Ready(_) => Decided::default(),
            Self::Keyed(keyed) => keyed.ended(seq, change),
        }
    }

    /// An event is left in the table as it is, and with it those behind it.
    pub(crate) fn left(&self, seq: i64) -> Decided {
        match self {
            Self::Ready(_) => Decided::default(),
            Self::Keyed(keyed) => keyed.left(seq),
        }
    }

    /// These verdicts are recorded, or never will be. Returns the lowest row from which on to read again, if any.
    pub(crate) fn recorded(&self, verdicts: impl IntoIterator<Item = (i64, bool)>) -> Option<i64> {
        match self {
            Self::Ready(_) => None,
            Self::Keyed(keyed) => keyed.recorded(verdicts),
        }
    }

    /// True if a key waits in memory for an event that has failed, of which the table does not know yet.
    pub(crate) fn waits_for_failed(&self, seq: i64) -> bool {
        match self {
            Self::Ready(_) => false,
            Self::Keyed(keyed) => keyed.waits_for_failed(seq),
        }
    }

    /// Payload bytes of the events that wait or run.
    pub(crate) fn content_bytes(&self) -> usize {
        match self {
            Self::Ready(ready) => ready.shares().content_bytes(),
            Self::Keyed(keyed) => keyed.shares().content_bytes(),
        }
    }

    /// The number of waiting events that came from memory, and of those that came from the table.
    pub(crate) fn depths(&self) -> (usize, usize) {
        match self {
            Self::Ready(ready) => ready.depths(),
            Self::Keyed(keyed) => (0, keyed.depth()),
        }
    }

    /// Takes nothing more in; what is queued can still be popped.
    pub(crate) fn close(&self) {
        match self {
            Self::Ready(ready) => ready.close(),
            Self::Keyed(keyed) => keyed.close(),
        }
    }

    /// Throws away what is queued and would begin without a read of the table, and returns it: the table still has it. `in_order` says that
    /// all events keep the order of the table.
    pub(crate) fn drop_waiting(&self, in_order: bool, pauses: &OperatorPauses) -> Dropped {
        match self {
            Self::Ready(ready) => ready.drop_waiting(in_order, pauses),
            Self::Keyed(keyed) => Dropped { read_anew: keyed.drop_waiting(), paused: Vec::new() },
        }
    }

    /// Closes and throws away what is queued: the table still has it.
    pub(crate) fn abandon(&self) -> usize {
        match self {
            Self::Ready(ready) => ready.abandon(),
            Self::Keyed(keyed) => keyed.abandon(),
        }
    }
}

/// The events that were thrown away from a queue: the table has them.
#[derive(Debug, Default)]
pub(crate) struct Dropped {
    /// The events that this node reads anew.
    pub(crate) read_anew: Vec<i64>,
    /// The paused events, for any node to take once they are resumed.
    pub(crate) paused: Vec<RowId>,
}

impl Dropped {
    pub(super) fn is_empty(&self) -> bool {
        self.read_anew.is_empty() && self.paused.is_empty()
    }

    /// Adds one that was in a queue. One that its last node may have died of stays this node's in the table, where that is written.
    pub(super) fn push(&mut self, item: &Item, is_paused: bool) {
        if is_paused && !item.is_announced() {
            self.paused.push(item.row.id());
        } else {
            self.read_anew.push(item.row.seq);
        }
    }
}
