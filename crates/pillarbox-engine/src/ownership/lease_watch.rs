use std::sync::Arc;
use std::time::Duration;

use pillarbox_core::clock::{Random, Timestamp};
use pillarbox_core::hash::guarded::HashMap;
use pillarbox_core::ownership::{Fence, NodeId, NodeMode};
use pillarbox_core::planted_bug;
use pillarbox_core::store::{NodeStatus, Store};
use tokio::time::Instant;

use crate::backoff::jittered;
use crate::poll_schedule::PollSchedule;

/// The number of polls of the other nodes within one lease of this node.
const POLLS_PER_LEASE: u32 = 3;
/// The time between two polls while there is no other node, in leases.
const ALONE_POLL_LEASES: u32 = 2;

/// Watches the leases of the other nodes by this node's monotonic clock, and evicts the nodes that do not renew.
///
/// The database's clock ends a lease, unless it was set back since the last renewal. A node renews at least three times in a
/// lease while it relies on it, so one that has not renewed for the whole of a lease has stopped, or is dead.
#[derive(Debug)]
pub(crate) struct LeaseWatch {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) node: NodeId,
    pub(crate) mode: NodeMode,
    /// The length of this node's own lease.
    pub(crate) lease: Duration,
    pub(crate) poll_schedule: Arc<PollSchedule>,
    pub(crate) random: Arc<dyn Random>,
}

impl LeaseWatch {
    /// Runs until it is dropped.
    pub(crate) async fn keep(self) {
        let (mut sightings, mut leases) = (Sightings::default(), Leases::default());
        loop {
            let asked = Instant::now();
            let mut pause = self.lease / POLLS_PER_LEASE;
            // A failure shows where the lease is renewed.
            if let Ok(nodes) = self.store.nodes().await {
                if nodes.iter().all(|status| status.node == self.node) {
                    pause = self.lease * ALONE_POLL_LEASES;
                }
                for other in leases.ended(&nodes, &self.node, Instant::now()) {
                    tracing::warn!(
                        node = %self.node, %other,
                        "the lease of a node has ended: it has died, stands still, or cannot reach the database; what it held is taken over"
                    );
                }
                for silent in sightings.silent(nodes, &self.node, asked, Instant::now()) {
                    self.evict(&silent).await;
                }
            }
            tokio::time::sleep(jittered(pause, &*self.random)).await;
        }
    }

    async fn evict(&self, silent: &NodeStatus) {
        let NodeStatus { node: other, lease, lease_left, .. } = silent;
        let freed = async {
            let evicted = self.store.evict(silent).await?;
            if evicted && self.mode.fence() == Fence::Row {
                // Rows name the node that held them.
                self.store.reclaim(&self.node, true).await?;
            }
            Ok::<bool, pillarbox_core::error::StoreError>(evicted)
        };
        match freed.await {
            Ok(false) => {}
            Ok(true) => {
                tracing::warn!(
                    node = %self.node, %other, ?lease, ?lease_left,
                    "evicted a node that had not renewed its lease for longer than the lease is; the database's clock was set back"
                );
                self.poll_schedule.wake_for_any();
            }
            Err(error) => {
                tracing::warn!(%error, %other, "a node that does not renew its lease cannot be evicted; trying again");
            }
        }
    }
}

/// The time at which each node's lease was last seen to be renewed.
#[derive(Debug, Default)]
struct Sightings(HashMap<NodeId, Sighting>);

#[derive(Debug)]
struct Sighting {
    expires_at: Timestamp,
    /// The answer in which this was seen first, by this node's clock. The renewal was before.
    since: Instant,
}

impl Sightings {
    /// Notes the nodes as they were at some moment between `asked` and `answered`; returns those other than `me` that have not
    /// renewed for longer than their lease is.
    fn silent(&mut self, nodes: Vec<NodeStatus>, me: &NodeId, asked: Instant, answered: Instant) -> Vec<NodeStatus> {
        let before = std::mem::take(&mut self.0);
        let mut silent = Vec::new();
        for status in nodes.into_iter().filter(|status| status.node != *me) {
            let expires_at = status.expires_at;
            let same = before.get(&status.node).filter(|sighting| sighting.expires_at == expires_at);
            let since = same.map_or(answered, |sighting| sighting.since);
            self.0.insert(status.node.clone(), Sighting { expires_at, since });
            let share = if planted_bug::is_active("evict_before_the_lease_is_over") { 5 } else { 1 };
            if status.lease.is_some_and(|lease| asked.saturating_duration_since(since) > lease / share) {
                silent.push(status);
            }
        }
        silent
    }
}

/// The leases of the other nodes, each of which is told once when it ends without its node having left.
#[derive(Debug, Default)]
struct Leases(HashMap<NodeId, Lease>);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Lease {
    /// It ends then at the latest unless it is renewed.
    Runs(Instant),
    /// It has ended, and that was told.
    Ended,
}

impl Leases {
    /// Notes the nodes as they were at `answered` at the latest; returns those other than `me` whose lease has ended since the last time. One
    /// that is not there any more has left if its lease had not ended by then.
    fn ended(&mut self, nodes: &[NodeStatus], me: &NodeId, answered: Instant) -> Vec<NodeId> {
        let mut ended = Vec::new();
        let mut before = std::mem::take(&mut self.0);
        for status in nodes.iter().filter(|status| status.node != *me) {
            let known = before.remove(&status.node);
            let lease = status.lease_left.map_or(Lease::Ended, |left| Lease::Runs(answered + left));
            if lease == Lease::Ended && known != Some(Lease::Ended) {
                ended.push(status.node.clone());
            }
            self.0.insert(status.node.clone(), lease);
        }
        ended.extend(before.into_iter().filter_map(|(node, lease)| match lease {
            Lease::Runs(ends) if ends <= answered => Some(node),
            Lease::Runs(_) | Lease::Ended => None,
        }));
        ended
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEASE: Duration = Duration::from_secs(15);

    fn status(node: &str, expires_at: i64, lease: Option<Duration>) -> NodeStatus {
        NodeStatus {
            node: NodeId::from_stored(node),
            mode: NodeMode::SingleNode.name().to_owned(),
            started_at: Timestamp::from_micros(0),
            lease_left: Some(Duration::from_secs(3600)),
            expires_at: Timestamp::from_micros(expires_at),
            lease,
            partitions: 0,
            figures: None,
        }
    }

    #[test]
    fn a_node_is_silent_when_its_own_lease_has_passed_since_it_was_seen_to_renew() {
        let (mut sightings, start, me) = (Sightings::default(), Instant::now(), NodeId::from_stored("me-1"));
        let long = LEASE * 4;
        let mut poll = |asked: u64, answered: u64, nodes: Vec<NodeStatus>| {
            let [asked, answered] = [asked, answered].map(|seconds| start + Duration::from_secs(seconds));
            let silent = sightings.silent(nodes, &me, asked, answered);
            silent.into_iter().map(|status| status.node.to_string()).collect::<Vec<_>>()
        };
        let table = |dead, living| {
            vec![
                status("dead-1", dead, Some(LEASE)),
                status("living-1", living, Some(LEASE)),
                status("patient-1", 7, Some(long)),
                status("older-release-1", 7, None),
                status("me-1", 7, Some(LEASE)),
            ]
        };
        let none = Vec::<String>::new();
        assert_eq!(poll(0, 2, table(1, 1)), none);
        assert_eq!(poll(5, 6, table(2, 2)), none, "both have renewed");
        assert_eq!(poll(16, 17, table(2, 1)), none, "renewed, though to an earlier time: the clock was set back");
        assert_eq!(poll(21, 99, table(2, 1)), none, "15 s after it was asked, not after it was answered");
        assert_eq!(poll(22, 22, table(2, 3)), ["dead-1"]);
        assert_eq!(poll(23, 23, vec![]), none);
        assert_eq!(poll(60, 60, table(2, 3)), none, "one that is there again is seen anew");
    }

    #[test]
    fn a_lease_that_ends_is_told_once_and_one_that_was_given_back_is_not() {
        let (mut leases, start, me) = (Leases::default(), Instant::now(), NodeId::from_stored("me-1"));
        let node = |name: &str, left: Option<u64>| NodeStatus {
            lease_left: left.map(Duration::from_secs),
            ..status(name, 1, Some(LEASE))
        };
        let mut poll = |seconds: u64, nodes: &[NodeStatus]| {
            let ended = leases.ended(nodes, &me, start + Duration::from_secs(seconds));
            let mut names: Vec<_> = ended.iter().map(NodeId::to_string).collect();
            names.sort_unstable();
            names
        };
        let none = Vec::<String>::new();
        let all = |dead, slow, leaves| {
            [node("dead-1", dead), node("slow-1", slow), node("leaves-1", leaves), node("me-1", Some(15))]
        };
        assert_eq!(poll(0, &all(Some(15), Some(15), Some(15))), none);
        assert_eq!(poll(10, &all(Some(5), Some(5), Some(12))), none);
        assert_eq!(
            poll(15, &[node("slow-1", None), node("me-1", Some(15))]),
            ["dead-1", "slow-1"],
            "one is gone already"
        );
        assert_eq!(poll(20, &[node("slow-1", None)]), none, "it was told");
        assert_eq!(poll(25, &[node("slow-1", Some(15))]), none, "it is back");
        assert_eq!(poll(30, &[]), none, "it has left");
    }
}
