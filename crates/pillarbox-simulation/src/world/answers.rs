use std::fmt::Debug;

use pillarbox_core::clock::Timestamp;
use pillarbox_core::ownership::{Acquired, Rebalanced, Reclaimed, Renewal};
use pillarbox_core::store::{
    Backlog, Fetched, FetchedRow, InboxConsumer, Interventions, NodeStatus, PartitionBacklog, Pause, Purged, RowId,
    RowState, Writers,
};

/// An answer of the database, as the story tells it.
pub(crate) trait Brief: Debug {
    /// The answer in a few words.
    fn brief(&self) -> String {
        format!("{self:?}")
    }
}

impl Brief for () {}
impl Brief for bool {}
impl Brief for u64 {}
impl Brief for i64 {}
impl Brief for Vec<i64> {}
impl Brief for Acquired {}
impl Brief for Renewal {}
impl Brief for Rebalanced {}
impl Brief for Reclaimed {}
impl Brief for Writers {}
impl Brief for Timestamp {}
impl Brief for Purged {}
impl Brief for Backlog {}
impl Brief for PartitionBacklog {}
impl Brief for Vec<InboxConsumer> {}
impl Brief for Interventions {}
impl Brief for Vec<Pause> {}

impl Brief for Fetched {
    fn brief(&self) -> String {
        let shown = |row: &FetchedRow| (row.seq(), row.is_timed());
        let rows: Vec<_> = self.rows.iter().map(shown).collect();
        format!("{rows:?} next {:?}, {} interventions, heads {}", self.next_due, self.interventions, self.has_heads)
    }
}

impl Brief for Vec<RowId> {
    fn brief(&self) -> String {
        format!("{:?}", self.iter().map(|row| (row.seq, row.event_id.as_str())).collect::<Vec<_>>())
    }
}

impl Brief for Vec<RowState> {
    fn brief(&self) -> String {
        format!("{:?}", self.iter().map(|row| (row.event_id.as_str(), row.status)).collect::<Vec<_>>())
    }
}

impl Brief for Vec<NodeStatus> {
    fn brief(&self) -> String {
        format!("{:?}", self.iter().map(|status| (&status.node, status.lease_left)).collect::<Vec<_>>())
    }
}
