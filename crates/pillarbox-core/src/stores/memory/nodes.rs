use std::collections::BTreeMap;
use std::time::Duration;

use crate::clock::Timestamp;
use crate::error::{StoreError, StoreErrorKind};
use crate::ownership::{Acquired, Mode, NodeId, Renewal};

/// The node table, and the one owner of all partitions.
///
/// What an expired node owns stays its own until [`acquire`](Self::acquire) clears it away: until then nobody else can
/// have delivered a row, so its verdicts still stand.
#[derive(Debug, Default)]
pub(super) struct Nodes {
    members: BTreeMap<NodeId, Member>,
    owner: Option<NodeId>,
    epoch: i64,
}

/// What was cleared away: how many nodes, and whether the owner of the partitions was among them.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cleared {
    pub(super) nodes: usize,
    pub(super) owner: bool,
}

/// A row of the node table. The mode is text, as a later release may have written it.
#[derive(Debug, Clone)]
pub(super) struct Member {
    pub(super) mode: String,
    pub(super) started_at: Timestamp,
    pub(super) expires_at: Timestamp,
}

impl Nodes {
    pub(super) fn owner(&self) -> Option<&NodeId> {
        self.owner.as_ref()
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

    /// Clears away every node whose lease has ended, and frees the partitions if one of them owned them.
    pub(super) fn clear_expired(&mut self, now: Timestamp) -> Cleared {
        let before = self.members.len();
        self.members.retain(|_, member| member.expires_at > now);
        let owner = self.owner.take_if(|owner| !self.members.contains_key(owner)).is_some();
        Cleared { nodes: before - self.members.len(), owner }
    }

    pub(super) fn acquire(&mut self, node: &NodeId, now: Timestamp) -> Acquired {
        let unclean = self.clear_expired(now).owner;
        if !self.members.contains_key(node) {
            return Acquired::Lost;
        }
        match &self.owner {
            Some(owner) if owner != node => {
                let expires_in = self.members.get(owner).map(|member| member.expires_at.since(now));
                Acquired::Standby { owner: owner.clone(), expires_in: expires_in.unwrap_or_default() }
            }
            Some(_) => Acquired::Owner { epoch: self.epoch, unclean: false },
            None => {
                self.owner = Some(node.clone());
                self.epoch += 1;
                Acquired::Owner { epoch: self.epoch, unclean }
            }
        }
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
        self.owner.take_if(|owner| owner == node);
    }
}
