use std::collections::BTreeMap;
use std::time::Duration;

use super::owners::Owners;
use crate::clock::Timestamp;
use crate::error::{StoreError, StoreErrorKind};
use crate::ownership::{Acquired, Holding, Mode, NodeId, Partitions, Renewal, Share, spread};

/// The node table, and what each node owns of the partitions.
///
/// What an expired node owns stays its own until another call clears it away: until then nobody else can have delivered
/// a row, so its verdicts still stand.
#[derive(Debug, Default)]
pub(super) struct Nodes {
    members: BTreeMap<NodeId, Member>,
    owners: Owners,
}

/// A row of the node table. The mode is text, as a later release may have written it.
#[derive(Debug, Clone)]
pub(super) struct Member {
    pub(super) mode: String,
    pub(super) started_at: Timestamp,
    pub(super) expires_at: Timestamp,
}

impl Nodes {
    pub(super) fn owners(&self) -> &Owners {
        &self.owners
    }

    pub(super) fn members(&self) -> &BTreeMap<NodeId, Member> {
        &self.members
    }

    pub(super) fn member_mut(&mut self, node: &NodeId) -> Option<&mut Member> {
        self.members.get_mut(node)
    }

    pub(super) fn put(&mut self, node: NodeId, member: Member) {
        self.members.insert(node, member);
    }

    pub(super) fn join(
        &mut self,
        node: &NodeId,
        mode: Mode,
        lease: Duration,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        for (other, member) in self.members.iter().filter(|(_, member)| member.expires_at > now) {
            // A mode this release does not know may mean anything, so it is not safe beside it.
            if !member.mode.parse().is_ok_and(|theirs| mode.coexists_with(theirs)) {
                let message = format!(
                    "node {other} runs in mode {}, which cannot run beside {mode} on the same table; stop it, or start this node in its mode",
                    member.mode
                );
                return Err(StoreError::new(StoreErrorKind::IncompatibleMode, "join the nodes of the table", message));
            }
        }
        self.put(node.clone(), Member { mode: mode.name().to_owned(), started_at: now, expires_at: now.plus(lease) });
        Ok(())
    }

    /// Clears away every node whose lease has ended, which frees what it owned; says how many there were.
    pub(super) fn clear_expired(&mut self, now: Timestamp) -> usize {
        let before = self.members.len();
        self.members.retain(|_, member| member.expires_at > now);
        self.owners.clear(|owner| self.members.contains_key(owner));
        before - self.members.len()
    }

    pub(super) fn acquire(&mut self, node: &NodeId, now: Timestamp) -> Acquired {
        self.clear_expired(now);
        if !self.members.contains_key(node) {
            return Acquired::Lost;
        }
        if let Some(owner) = self.owners.other_than(node) {
            let expires_in = self.members.get(owner).map(|member| member.expires_at.since(now));
            return Acquired::Standby { owner: owner.clone(), expires_in: expires_in.unwrap_or_default() };
        }
        let unclean = !self.owners.take(node, Partitions::ALL).unclean.is_empty();
        Acquired::Owner { epoch: self.owners.epoch(), unclean }
    }

    pub(super) fn share(&mut self, node: &NodeId, give: Partitions, now: Timestamp) -> Share {
        self.clear_expired(now);
        if !self.members.contains_key(node) {
            return Share::Lost;
        }
        self.owners.give(node, give);
        let target = spread::target(&self.in_order_of_joining(), node);
        let taken = self.owners.take(node, target.clone().map_or(Partitions::NONE, Partitions::from));
        Share::Member(Holding {
            owned: self.owners.of(node),
            gained: taken.gained,
            unclean: taken.unclean,
            target,
            next_expiry: self.next_expiry(node, now),
        })
    }

    /// How long until the next lease of a node other than `node` ends.
    pub(super) fn next_expiry(&self, node: &NodeId, now: Timestamp) -> Option<Duration> {
        let others = self.members.iter().filter(|(id, _)| *id != node);
        others.map(|(_, member)| member.expires_at.since(now)).min()
    }

    /// The nodes that share the partitions out among each other.
    fn in_order_of_joining(&self) -> Vec<NodeId> {
        let sharing = self.members.iter().filter(|(_, member)| member.mode == Mode::Partitioned.name());
        let mut nodes: Vec<_> = sharing.collect();
        // They come sorted by name, and the sort is stable.
        nodes.sort_by_key(|(_, member)| member.started_at);
        nodes.into_iter().map(|(id, _)| id.clone()).collect()
    }

    pub(super) fn renew(&mut self, node: &NodeId, lease: Duration, now: Timestamp) -> Renewal {
        match self.members.get_mut(node) {
            Some(member) if member.expires_at > now => {
                member.expires_at = now.plus(lease);
                Renewal::Renewed
            }
            _ => Renewal::Lost,
        }
    }

    pub(super) fn leave(&mut self, node: &NodeId) {
        self.members.remove(node);
        self.owners.give(node, Partitions::ALL);
    }
}
