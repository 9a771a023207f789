use std::collections::BTreeMap;

use pillarbox_core::ownership::{Epochs, NodeId, Partitions};
use pillarbox_core::planted_bug;

/// The partition table: the owner of each of the 256 partitions.
#[derive(Debug, Clone, Default)]
pub(super) struct Owners {
    /// Nodes that own at least one.
    owned: BTreeMap<NodeId, Partitions>,
    /// Partitions whose last owner died, until another node takes them. SQL stores write `?` into them.
    died: Partitions,
    /// The epoch of each partition, which grows whenever it is taken; partitions that were never taken are missing.
    epochs: Epochs,
}

/// The partitions that a node took, and those of them whose last owner died.
#[derive(Debug, Clone, Copy)]
pub(super) struct Taken {
    pub(super) gained: Partitions,
    pub(super) unclean: Partitions,
}

impl Owners {
    pub(super) fn of(&self, node: &NodeId) -> Partitions {
        self.owned.get(node).copied().unwrap_or_default()
    }

    /// The partitions that a node owns, with the epochs under which it does.
    pub(super) fn epochs_of(&self, node: &NodeId) -> Epochs {
        self.epochs.of(self.of(node))
    }

    /// The highest epoch of any partition.
    pub(super) fn epoch(&self) -> i64 {
        self.epochs.iter().map(|(_, epoch)| epoch).max().unwrap_or_default()
    }

    /// A node other than `node` that owns some.
    pub(super) fn other_than(&self, node: &NodeId) -> Option<&NodeId> {
        self.owned.keys().find(|owner| *owner != node)
    }

    /// The partitions that have an owner, ascending.
    pub(super) fn all(&self) -> Vec<(u8, NodeId)> {
        let of = |(node, owned): (&NodeId, &Partitions)| {
            owned.iter().map(|partition| (partition, node.clone())).collect::<Vec<_>>()
        };
        let mut all: Vec<_> = self.owned.iter().flat_map(of).collect();
        all.sort_unstable_by_key(|(partition, _)| *partition);
        all
    }

    /// Partitions without an owner.
    pub(super) fn free(&self) -> Partitions {
        self.owned.values().fold(Partitions::ALL, |free, owned| free.difference(*owned))
    }

    /// Gives `node` the free partitions among `wanted`, each under its next epoch.
    pub(super) fn take(&mut self, node: &NodeId, wanted: Partitions) -> Taken {
        let gained = self.free().intersection(wanted);
        let unclean = gained.intersection(self.died);
        if !gained.is_empty() {
            self.died = self.died.difference(gained);
            self.owned.insert(node.clone(), self.of(node).union(gained));
            let next = |partition| (partition, self.epochs.get(partition).unwrap_or_default() + 1);
            let taken: Epochs = gained.iter().map(next).collect();
            self.epochs.extend(taken.iter());
        }
        Taken { gained, unclean }
    }

    /// Takes all partitions for `node`, under an epoch higher than any before.
    pub(super) fn take_all(&mut self, node: &NodeId) -> Taken {
        let highest = self.epoch();
        let taken = self.take(node, Partitions::ALL);
        if !taken.gained.is_empty() {
            self.epochs.extend(Partitions::ALL.iter().map(|partition| (partition, highest + 1)));
        }
        taken
    }

    /// Frees the partitions that `node` owns under the epochs of `given`.
    pub(super) fn give(&mut self, node: &NodeId, given: &Epochs) {
        let is_named = |(partition, epoch)| {
            self.epochs.get(partition) == Some(epoch) || planted_bug::is_active("give_without_epoch")
        };
        let named = given.iter().filter(|given| is_named(*given)).map(|(partition, _)| partition).collect();
        let kept = self.of(node).difference(named);
        if kept.is_empty() {
            self.owned.remove(node);
        } else {
            self.owned.insert(node.clone(), kept);
        }
    }

    /// Frees the partitions of owners that are not `alive`, and so had no time to release them.
    pub(super) fn clear(&mut self, alive: impl Fn(&NodeId) -> bool) {
        let died = &mut self.died;
        self.owned.retain(|owner, left| {
            let lives = alive(owner);
            if !lives {
                *died = died.union(*left);
            }
            lives
        });
    }
}
