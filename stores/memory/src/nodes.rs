use std::collections::BTreeMap;
use std::time::Duration;

use pillarbox_core::clock::Timestamp;
use pillarbox_core::error::{StoreError, StoreErrorKind};
use pillarbox_core::event::PARTITIONS;
use pillarbox_core::ownership::{
    Acquired, Epochs, Holding, LeaseMark, NodeId, NodeMode, Partitions, Rebalanced, Renewal, spread,
};
use pillarbox_core::planted_bug;
use pillarbox_core::store::{LeaseClock, NodeFigures, NodeStatus, NodesByLease, operation};
use tokio::time::Instant;

use super::owners::Owners;

/// The node table, and the partitions that each node owns.
///
/// An expired node keeps its partitions until another call evicts it. Until then no other node can have delivered
/// a row of them, so its verdicts still stand, and it may renew.
#[derive(Debug, Clone, Default)]
pub(super) struct Nodes {
    pub(super) members: BTreeMap<NodeId, Member>,
    pub(super) owners: Owners,
}

/// A row of the node table. The mode is text, as a later release may have written it.
#[derive(Debug, Clone)]
pub(super) struct Member {
    pub(super) mode: String,
    pub(super) started_at: Timestamp,
    pub(super) expires_at: Timestamp,
    pub(super) lease: Option<Duration>,
    pub(super) figures: Option<NodeFigures>,
}

impl Member {
    pub(super) fn mark(&self) -> LeaseMark {
        LeaseMark(self.expires_at.as_micros())
    }
}

impl Nodes {
    pub(super) fn join(
        &mut self,
        node: &NodeId,
        mode: NodeMode,
        lease: Duration,
        now: Timestamp,
        clock: &LeaseClock,
    ) -> Result<(), StoreError> {
        let judged = clock.judge(self.statuses(now), now, Instant::now());
        let ended = judged
            .nodes_to_evict_for(mode)
            .map_err(|problem| StoreError::new(StoreErrorKind::IncompatibleMode, operation::JOIN, problem))?;
        self.clear(&ended);
        let (mode, expires_at) = (mode.name().to_owned(), now.plus(lease));
        let lease = Some(lease);
        self.members.insert(node.clone(), Member { mode, started_at: now, expires_at, lease, figures: None });
        Ok(())
    }

    /// The nodes in the order in which they joined.
    pub(super) fn statuses(&self, now: Timestamp) -> Vec<NodeStatus> {
        let status = |(node, member): (&NodeId, &Member)| NodeStatus {
            node: node.clone(),
            mode: member.mode.clone(),
            started_at: member.started_at,
            lease_left: (member.expires_at > now).then(|| member.expires_at.since(now)),
            expires_at: member.expires_at,
            lease: member.lease,
            partitions: self.owners.of(node).len().try_into().unwrap_or(PARTITIONS),
            figures: member.figures,
        };
        let mut nodes: Vec<NodeStatus> = self.members.iter().map(status).collect();
        // They come sorted by name, and the sort is stable.
        nodes.sort_by_key(|node| node.started_at);
        nodes
    }

    /// Evicts every node whose lease has ended, which frees its partitions.
    pub(super) fn evict_expired(&mut self, now: Timestamp, clock: &LeaseClock) -> NodesByLease {
        let judged = clock.judge(self.statuses(now), now, Instant::now());
        if planted_bug::is_active("clear_away_before_the_lease_ends") {
            self.members.retain(|_, member| member.expires_at > now.plus(Duration::from_millis(200)));
        }
        self.clear(&judged.ended);
        judged
    }

    fn clear(&mut self, nodes: &[NodeStatus]) {
        for status in nodes {
            self.members.remove(&status.node);
        }
        self.owners.clear(|owner| self.members.contains_key(owner));
    }

    /// Evicts a node whose lease still ends at `expires_at`, so that it has not renewed; true if it did.
    pub(super) fn evict(&mut self, node: &NodeId, expires_at: Timestamp) -> bool {
        let before = self.members.len();
        self.members.retain(|id, member| id != node || member.expires_at != expires_at);
        self.owners.clear(|owner| self.members.contains_key(owner));
        self.members.len() < before
    }

    pub(super) fn acquire(&mut self, node: &NodeId, now: Timestamp, clock: &LeaseClock) -> Acquired {
        self.evict_expired(now, clock);
        if !self.members.contains_key(node) {
            return Acquired::Lost;
        }
        if let Some(owner) = self.owners.other_than(node) {
            let expires_in = self.members.get(owner).map(|member| member.expires_at.since(now));
            return Acquired::Standby { owner: owner.clone(), expires_in: expires_in.unwrap_or_default() };
        }
        let unclean = !self.owners.take_all(node).unclean.is_empty();
        Acquired::Owner { epoch: self.owners.epoch(), unclean }
    }

    pub(super) fn rebalance(&mut self, node: &NodeId, give: &Epochs, now: Timestamp, clock: &LeaseClock) -> Rebalanced {
        let judged = self.evict_expired(now, clock);
        if !self.members.contains_key(node) {
            return Rebalanced::Lost;
        }
        self.owners.give(node, give);
        let members = self.statuses(now).into_iter().filter(|status| status.mode == NodeMode::Partitioned.name());
        let target = spread::target(&members.map(|status| status.node).collect::<Vec<_>>(), node);
        let taken = self.owners.take(node, target.clone().map_or(Partitions::NONE, Partitions::from));
        Rebalanced::Member(Holding {
            owned: self.owners.of(node),
            epochs: self.owners.epochs_of(node),
            gained: taken.gained,
            unclean: taken.unclean,
            target,
            next_expiry: self.next_expiry(node, now, &judged),
        })
    }

    /// The time until the next lease of a node other than `node` ends.
    pub(super) fn next_expiry(&self, node: &NodeId, now: Timestamp, judged: &NodesByLease) -> Option<Duration> {
        let others = self.members.iter().filter(|(id, member)| *id != node && member.expires_at > now);
        others.map(|(_, member)| member.expires_at.since(now)).chain(judged.spared_for).min()
    }

    pub(super) fn renew(
        &mut self,
        node: &NodeId,
        lease: Duration,
        last: Option<LeaseMark>,
        figures: Option<&NodeFigures>,
        now: Timestamp,
    ) -> Renewal {
        match self.members.get_mut(node) {
            Some(member) if last.is_some_and(|last| member.mark() < last) => Renewal::WentBack,
            Some(member) => {
                member.expires_at = now.plus(lease);
                member.lease = Some(lease);
                member.figures = figures.copied().or(member.figures);
                Renewal::Renewed { mark: member.mark() }
            }
            None => Renewal::Lost,
        }
    }

    pub(super) fn leave(&mut self, node: &NodeId) {
        if planted_bug::is_active("leave_changes_nothing") {
            return;
        }
        self.members.remove(node);
        self.owners.give(node, &self.owners.epochs_of(node));
    }
}
