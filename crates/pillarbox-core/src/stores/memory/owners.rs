use std::collections::BTreeMap;

use crate::ownership::{NodeId, Partitions};

/// The partition table: which node owns which of the 256.
#[derive(Debug, Default)]
pub(super) struct Owners {
    /// Nodes that own at least one.
    owned: BTreeMap<NodeId, Partitions>,
    /// Those whose last owner died, until another node takes them. SQL stores write `?` into them.
    died: Partitions,
    /// How often partitions were taken.
    epoch: i64,
}

/// What a node took, and what of it had an owner before that died.
#[derive(Debug, Clone, Copy)]
pub(super) struct Taken {
    pub(super) gained: Partitions,
    pub(super) unclean: Partitions,
}

impl Owners {
    pub(super) fn of(&self, node: &NodeId) -> Partitions {
        self.owned.get(node).copied().unwrap_or_default()
    }

    pub(super) fn epoch(&self) -> i64 {
        self.epoch
    }

    /// A node other than `node` that owns some.
    pub(super) fn other_than(&self, node: &NodeId) -> Option<&NodeId> {
        self.owned.keys().find(|owner| *owner != node)
    }

    /// Those that nobody owns.
    pub(super) fn free(&self) -> Partitions {
        self.owned.values().fold(Partitions::ALL, |free, owned| free.difference(*owned))
    }

    /// Gives `node` what is free of `wanted`.
    pub(super) fn take(&mut self, node: &NodeId, wanted: Partitions) -> Taken {
        let gained = self.free().intersection(wanted);
        let unclean = gained.intersection(self.died);
        if !gained.is_empty() {
            self.died = self.died.difference(gained);
            self.owned.insert(node.clone(), self.of(node).union(gained));
            self.epoch += 1;
        }
        Taken { gained, unclean }
    }

    /// Frees what `node` owns of `given`.
    pub(super) fn give(&mut self, node: &NodeId, given: Partitions) {
        let kept = self.of(node).difference(given);
        if kept.is_empty() {
            self.owned.remove(node);
        } else {
            self.owned.insert(node.clone(), kept);
        }
    }

    /// Frees everything of the owners that are not `alive`; they had no time to give it.
    pub(super) fn clear(&mut self, alive: impl Fn(&NodeId) -> bool) {
        for (_, left) in self.owned.extract_if(.., |owner, _| !alive(owner)) {
            self.died = self.died.union(left);
        }
    }
}
