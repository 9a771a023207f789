//! What the database holds. Each method is one transaction, and they run one after the other, as its locks make them.

use std::ops::RangeInclusive;
use std::sync::LazyLock;

use pillarbox_core::ownership::{NodeId, spread};

use super::clock::Clock;
use super::protocol::{Flaw, LEASE};

/// A node's number: ids are given in the order of joining, so their order is that of `(started_at, node_id)`.
pub(crate) type Id = u8;

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Table {
    pub(crate) members: Vec<Member>,
    pub(crate) partitions: Vec<Partition>,
}

/// A row of `outbox_node`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Member {
    pub(crate) id: Id,
    /// Ticks until its lease ends by the database's clock, or since it ended; [`NEVER`] if that clock was set back.
    pub(crate) left: i8,
}

/// A row of `outbox_partition`, and the events of that partition.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub(crate) struct Partition {
    pub(crate) owner: Option<Id>,
    pub(crate) epoch: u8,
    /// How many of its events are recorded as delivered; the next in order is the first that is pending.
    pub(crate) done: u8,
}

/// What a node gives: of each partition the epoch by which it owned it.
pub(crate) type Given = Vec<Option<u8>>;

/// A lease lasts longer than anybody looks.
pub(crate) const NEVER: i8 = i8::MAX;

pub(crate) struct Rebalanced {
    /// Of each partition the epoch by which the node owns it.
    pub(crate) owned: Vec<Option<u8>>,
    pub(crate) target: Option<RangeInclusive<u8>>,
}

impl Table {
    pub(crate) fn is_registered(&self, id: Id) -> bool {
        self.members.iter().any(|member| member.id == id)
    }

    pub(crate) fn join(&mut self, id: Id) {
        self.members.push(Member { id, left: LEASE.cast_signed() });
    }

    pub(crate) fn leave(&mut self, id: Id) {
        self.members.retain(|member| member.id != id);
        for partition in &mut self.partitions {
            partition.owner = partition.owner.filter(|owner| *owner != id);
        }
    }

    /// True if the lease runs anew, be it that it had ended; otherwise the node was evicted.
    pub(crate) fn renew(&mut self, id: Id) -> bool {
        let member = self.members.iter_mut().find(|member| member.id == id);
        member.map(|member| member.left = LEASE.cast_signed()).is_some()
    }

    /// A tick of the database's clock, which can be `ahead` of what a process expects: for so long it matters when a lease ended.
    pub(crate) fn tick(&mut self, ahead: i8) {
        for member in self.members.iter_mut().filter(|member| member.left != NEVER) {
            member.left = (member.left - 1).max(-ahead);
        }
    }

    /// The nodes whose lease has ended, as a process judges them by its clock.
    pub(crate) fn ended(&self, clock: &mut Clock, flaw: Option<Flaw>) -> Vec<Id> {
        let bound = clock.look();
        let is_over = |left: i8| left <= 0 && (bound.is_past(left) || flaw == Some(Flaw::BelievesTheClock));
        self.members.iter().filter(|member| is_over(member.left)).map(|member| member.id).collect()
    }

    /// The effect of a rebalance once the nodes whose lease has ended are evicted; `None` if the node is not registered. `places` are
    /// the numbers of the partitions.
    pub(crate) fn rebalance(&mut self, id: Id, given: &Given, places: &[u8], flaw: Option<Flaw>) -> Option<Rebalanced> {
        if !self.is_registered(id) {
            return None;
        }
        for (partition, given) in self.partitions.iter_mut().zip(given) {
            let Some(epoch) = given else { continue };
            let names_it = *epoch == partition.epoch || flaw == Some(Flaw::GivesWithoutEpoch);
            if partition.owner == Some(id) && names_it {
                partition.owner = None;
            }
        }
        let target = self.target(id);
        for (partition, place) in self.partitions.iter_mut().zip(places) {
            if partition.owner.is_none() && target.as_ref().is_some_and(|target| target.contains(place)) {
                partition.owner = Some(id);
                partition.epoch += 1;
            }
        }
        let epoch = |partition: &Partition| (partition.owner == Some(id)).then_some(partition.epoch);
        Some(Rebalanced { owned: self.partitions.iter().map(epoch).collect(), target })
    }

    /// The target of a node among those registered.
    pub(crate) fn target(&self, id: Id) -> Option<RangeInclusive<u8>> {
        let members: Vec<NodeId> = self.members.iter().map(|member| name(member.id)).collect();
        spread::target(&members, &name(id))
    }

    /// Records that an event was delivered; whether that changed the row.
    pub(crate) fn settle(&mut self, id: Id, partition: usize, event: u8, flaw: Option<Flaw>) -> bool {
        let fenced = self.is_registered(id) && self.partitions[partition].owner == Some(id);
        let row = &mut self.partitions[partition];
        let changes = row.done == event && (fenced || flaw == Some(Flaw::SettlesUnfenced));
        row.done += u8::from(changes);
        changes
    }
}

/// The name of a node, made once: the model asks for it a million times.
fn name(id: Id) -> NodeId {
    static NAMES: LazyLock<[NodeId; 16]> =
        LazyLock::new(|| std::array::from_fn(|id| NodeId::from_stored(&format!("node-{id}"))));
    NAMES[usize::from(id)].clone()
}
