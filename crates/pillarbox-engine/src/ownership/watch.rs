use std::sync::Arc;
use std::time::Duration;

use pillarbox_core::clock::{Random, Timestamp};
use pillarbox_core::hash::guarded::HashMap;
use pillarbox_core::ownership::{Fence, Mode, NodeId};
use pillarbox_core::plants;
use pillarbox_core::store::{NodeStatus, Store};
use tokio::time::Instant;

use crate::pause::jittered;
use crate::poll_schedule::PollSchedule;

/// The number of looks at the other nodes within one lease of this node.
const LOOKS_IN_A_LEASE: u32 = 3;

/// Watches the leases of the other nodes by this node's monotonic clock, and clears away those that are not renewed.
///
/// The database's clock ends a lease, unless it was set back since the last renewal. A node renews at least three times in a
/// lease while it relies on it, so one that has not renewed for the whole of a lease has stopped, or is dead.
#[derive(Debug)]
pub(crate) struct Watch {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) node: NodeId,
    pub(crate) mode: Mode,
    /// The length of this node's own lease.
    pub(crate) lease: Duration,
    pub(crate) poll_schedule: Arc<PollSchedule>,
    pub(crate) random: Arc<dyn Random>,
}

impl Watch {
    /// Runs until it is dropped.
    pub(crate) async fn keep(self) {
        let mut sightings = Sightings::default();
        loop {
            let asked = Instant::now();
            let mut pause = self.lease / LOOKS_IN_A_LEASE;
            // A failure shows where the lease is renewed.
            if let Ok(nodes) = self.store.nodes().await {
                if nodes.iter().all(|status| status.node == self.node) {
                    pause = self.lease;
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
                    "cleared away a node that had not renewed its lease for longer than the lease is; the database's clock was set back"
                );
                self.poll_schedule.wake_for_any();
            }
            Err(error) => {
                tracing::warn!(%error, %other, "a node that does not renew its lease cannot be cleared away; trying again");
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
            let share = if plants::is("evict_before_the_lease_is_over") { 5 } else { 1 };
            if status.lease.is_some_and(|lease| asked.saturating_duration_since(since) > lease / share) {
                silent.push(status);
            }
        }
        silent
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEASE: Duration = Duration::from_secs(15);

    fn status(node: &str, expires_at: i64, lease: Option<Duration>) -> NodeStatus {
        NodeStatus {
            node: NodeId::from_stored(node),
            mode: Mode::SingleNode.name().to_owned(),
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
        let mut look = |asked: u64, answered: u64, nodes: Vec<NodeStatus>| {
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
        assert_eq!(look(0, 2, table(1, 1)), none);
        assert_eq!(look(5, 6, table(2, 2)), none, "both have renewed");
        assert_eq!(look(16, 17, table(2, 1)), none, "renewed, though to an earlier time: the clock was set back");
        assert_eq!(look(21, 99, table(2, 1)), none, "15 s after it was asked, not after it was answered");
        assert_eq!(look(22, 22, table(2, 3)), ["dead-1"]);
        assert_eq!(look(23, 23, vec![]), none);
        assert_eq!(look(60, 60, table(2, 3)), none, "one that is there again is seen anew");
    }
}
