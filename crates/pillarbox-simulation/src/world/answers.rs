use std::fmt;

use pillarbox_core::clock::Timestamp;
use pillarbox_core::ownership::{Acquired, Reclaimed, Renewal, Share};
use pillarbox_core::store::{Backlog, Fetched, FetchedRow, NodeStatus, PartitionBacklog, Purged, RowId, Writers};

/// An answer of the database, as the story tells it.
pub(crate) trait Brief {
    /// Writes it in a few words.
    fn write(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result;

    /// The same, to display.
    fn brief(&self) -> Told<'_, Self> {
        Told(self)
    }
}

/// An answer to display.
#[derive(Debug)]
pub(crate) struct Told<'a, T: ?Sized>(&'a T);

impl<T: Brief + ?Sized> fmt::Display for Told<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.write(f)
    }
}

macro_rules! as_debug {
    ($($answer:ty),*) => {$(
        impl Brief for $answer {
            fn write(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Debug::fmt(self, f)
            }
        }
    )*};
}

as_debug!(
    (),
    bool,
    Vec<i64>,
    Acquired,
    Renewal,
    Share,
    Reclaimed,
    Writers,
    Timestamp,
    Purged,
    Backlog,
    PartitionBacklog
);

impl Brief for Fetched {
    fn write(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = |row: &FetchedRow| (row.seq(), row.is_timed());
        write!(f, "{:?}", self.rows.iter().map(shown).collect::<Vec<_>>())?;
        write!(f, " next {:?}, {} interventions, heads {}", self.next_due, self.interventions, self.heads)
    }
}

impl Brief for Vec<RowId> {
    fn write(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter().map(|row| (row.seq, row.event_id.as_str()))).finish()
    }
}

impl Brief for Vec<NodeStatus> {
    fn write(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter().map(|status| (&status.node, status.lease_left))).finish()
    }
}
