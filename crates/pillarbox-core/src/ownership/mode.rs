use std::fmt;
use std::str::FromStr;

use super::Fence;
use crate::planted_bug;

/// The mode of a node: it decides which nodes may deliver a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum NodeMode {
    /// The one node that owns all partitions; further nodes wait as standbys.
    SingleNode,
    /// Any number of nodes; each row is delivered by the node that claimed it. No order.
    MultiNode,
    /// Any number of nodes, each the owner of some of the 256 groups of keys. The events of a key are delivered in their order,
    /// one at a time.
    Partitioned,
    /// One node with one worker, in the order of the table; further nodes wait as standbys.
    Ordered,
}

impl NodeMode {
    /// Its name in `outbox_node.mode`, in logs and in configuration.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::SingleNode => "single_node",
            Self::MultiNode => "multi_node",
            Self::Partitioned => "partitioned",
            Self::Ordered => "ordered",
        }
    }

    /// The basis of its nodes' right to a row.
    #[must_use]
    pub const fn fence(self) -> Fence {
        match self {
            Self::SingleNode | Self::Ordered => Fence::Table,
            Self::Partitioned => Fence::Partition,
            Self::MultiNode => Fence::Row,
        }
    }

    /// True if nodes of the two modes may run on the same table at the same time.
    #[must_use]
    pub fn coexists_with(self, other: Self) -> bool {
        self == other || planted_bug::is_active("modes_run_beside_each_other")
    }
}

impl fmt::Display for NodeMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for NodeMode {
    type Err = UnknownMode;

    fn from_str(name: &str) -> Result<Self, UnknownMode> {
        match name {
            "single_node" => Ok(Self::SingleNode),
            "multi_node" => Ok(Self::MultiNode),
            "partitioned" => Ok(Self::Partitioned),
            "ordered" => Ok(Self::Ordered),
            _ => Err(UnknownMode(name.to_owned())),
        }
    }
}

/// A mode of a later release, or a typing error.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown mode `{0}`; use single_node, multi_node, partitioned or ordered")]
pub struct UnknownMode(String);
