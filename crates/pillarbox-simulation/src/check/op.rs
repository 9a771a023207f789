use pillarbox_core::ownership::{Epochs, Fence, NodeId};
use pillarbox_core::row::{Change, Verdict};
use pillarbox_core::store::{BegunAttempt, Purgeable, RowId};

/// A verdict that is recorded by the transaction of its handler.
#[derive(Debug, Clone)]
pub struct Completion {
    /// The node that delivers.
    pub node: NodeId,
    /// The kind of its right to the row.
    pub fence: Fence,
    /// The verdict.
    pub verdict: Verdict,
}

/// A statement that may change the database, as the checks see it.
#[derive(Debug, Clone)]
pub enum Op {
    /// A node registers.
    Join(NodeId),
    /// A node asks for all partitions.
    Acquire(NodeId),
    /// A node gives and takes partitions.
    Rebalance(NodeId, Epochs),
    /// A node renews its lease.
    Renew(NodeId),
    /// A node unregisters.
    Leave(NodeId),
    /// A node evicts another.
    Evict(NodeId),
    /// A node takes rows.
    Claim(NodeId),
    /// A node gives rows back.
    Release(NodeId, Vec<RowId>),
    /// Dead nodes are evicted, and their rows freed.
    Reclaim(NodeId),
    /// Rows get a partition.
    AssignPartitions(Vec<(RowId, u8)>),
    /// Rows lose their due time.
    PromoteDue(Vec<RowId>),
    /// A node announces an attempt.
    Begin(NodeId, Fence, BegunAttempt),
    /// A node records verdicts.
    Settle(NodeId, Fence, Vec<Verdict>),
    /// An operator makes DEAD rows NEW.
    Replay(Vec<i64>),
    /// An operator deletes DEAD rows.
    Discard(Vec<i64>),
    /// An operator makes waiting rows due.
    RetryNow(Vec<i64>),
    /// An operator ends pending rows without a delivery.
    Cancel(Vec<i64>),
    /// Old rows are deleted.
    Purge(Purgeable),
    /// A transaction of a writer or a handler commits these rows: their `seq`, event and handler; and verdicts on the events of handlers.
    Commit(Vec<(i64, u32, u8)>, Vec<Completion>),
    /// Another program inserts a row of this event.
    Foreign(u32),
}

impl Op {
    /// True if it may change the table of nodes.
    pub(super) fn concerns_nodes(&self) -> bool {
        matches!(
            self,
            Self::Join(_)
                | Self::Acquire(_)
                | Self::Rebalance(..)
                | Self::Renew(_)
                | Self::Leave(_)
                | Self::Evict(_)
                | Self::Reclaim(_)
        )
    }

    /// True if it puts off rows that a claim holds, without counting an attempt.
    pub(crate) fn puts_off_claimed_rows(&self) -> bool {
        let puts_off = |verdict: &Verdict| matches!(verdict.change, Change::Retry { attempts, .. } if attempts == verdict.expected.attempts);
        matches!(self, Self::Settle(_, Fence::Row, verdicts) if verdicts.iter().any(puts_off))
    }

    /// True if it may change rows of events.
    pub(super) fn concerns_rows(&self) -> bool {
        !self.concerns_nodes() || matches!(self, Self::Reclaim(_))
    }
}
