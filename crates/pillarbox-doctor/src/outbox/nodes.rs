use pillarbox_core::event::PARTITIONS;
use pillarbox_core::ownership::NodeMode;
use pillarbox_core::store::NodeStatus;

/// Nodes that are named in evidence.
const NAMED: usize = 5;

/// The nodes of an outbox, as its table lists them.
#[derive(Debug)]
pub(super) struct Fleet(Vec<NodeStatus>);

impl Fleet {
    pub(super) fn new(nodes: Vec<NodeStatus>) -> Self {
        Self(nodes)
    }

    fn living(&self) -> impl Iterator<Item = &NodeStatus> {
        self.0.iter().filter(|node| node.lease_left.is_some())
    }

    fn is_in(&self, mode: NodeMode) -> bool {
        self.living().any(|node| node.mode == mode.name())
    }

    /// True if this node is alive.
    pub(super) fn lives(&self, node: &str) -> bool {
        self.living().any(|other| other.node.as_str() == node)
    }

    /// True if later events of a key wait for an earlier one that failed.
    pub(super) fn keeps_order_of_keys(&self) -> bool {
        self.is_in(NodeMode::Partitioned)
    }

    /// The evidence that nobody delivers.
    pub(super) fn nobody(&self) -> Option<String> {
        if self.living().next().is_some() {
            return None;
        }
        Some(match self.0.len() {
            0 => "no node is registered".to_owned(),
            nodes => format!("{nodes} registered, and the lease of each has ended"),
        })
    }

    /// The evidence of nodes of a release that records no figures.
    pub(super) fn earlier(&self) -> Option<String> {
        let earlier = self.living().filter(|node| node.is_of_an_earlier_release());
        named(earlier.map(|node| node.node.as_str().to_owned()).collect())
    }

    /// The evidence of nodes that have missed renewals: each renews a third of its lease after the last time.
    pub(super) fn overdue(&self) -> Option<String> {
        let missed = |node: &&NodeStatus| match (node.lease_left, node.lease) {
            (Some(left), Some(lease)) => left < lease / 2,
            _ => false,
        };
        let missed: Vec<String> = self
            .living()
            .filter(missed)
            .map(|node| format!("{} until {} unless it renews", node.node.as_str(), node.expires_at))
            .collect();
        named(missed)
    }

    /// The work of the living nodes, in words.
    pub(super) fn work(&self) -> String {
        let figures: Vec<_> = self.living().filter_map(|node| node.figures.as_ref()).collect();
        let (busy, queued) = figures
            .iter()
            .fold((0, 0), |(busy, queued), figures| (busy + u64::from(figures.busy), queued + figures.queued));
        let nodes = self.living().count();
        if figures.is_empty() {
            return format!("living nodes: {nodes}");
        }
        format!("living nodes: {nodes}; calls that run: {busy}; events in the memory of nodes: {queued}")
    }

    /// The evidence of nodes that died and were not evicted.
    pub(super) fn ended(&self) -> Option<String> {
        let ended: Vec<String> = self
            .0
            .iter()
            .filter(|node| node.lease_left.is_none())
            .map(|node| format!("{} until {}", node.node.as_str(), node.expires_at))
            .collect();
        named(ended)
    }

    /// The evidence of partitions that no living node owns, in the modes in which events are delivered by their owner.
    pub(super) fn unowned(&self) -> Option<String> {
        if ![NodeMode::SingleNode, NodeMode::Partitioned, NodeMode::Ordered].into_iter().any(|mode| self.is_in(mode)) {
            return None;
        }
        let owned: usize = self.living().map(|node| usize::from(node.partitions)).sum();
        let unowned = usize::from(PARTITIONS).saturating_sub(owned);
        (unowned > 0).then(|| {
            format!(
                "of {PARTITIONS} partitions, {unowned} belong to no living node; living nodes: {}",
                self.living().count()
            )
        })
    }
}

/// The first of them; `None` if there are none.
fn named(mut all: Vec<String>) -> Option<String> {
    let more = all.len().saturating_sub(NAMED);
    all.truncate(NAMED);
    let more = if more > 0 { format!(", and {more} more") } else { String::new() };
    (!all.is_empty()).then(|| format!("{}{more}", all.join(", ")))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use pillarbox_core::clock::Timestamp;
    use pillarbox_core::ownership::NodeId;

    use super::*;

    fn node(name: &str, mode: NodeMode, alive: bool, partitions: u16) -> NodeStatus {
        NodeStatus {
            node: NodeId::from_stored(name),
            mode: mode.name().to_owned(),
            started_at: Timestamp::from_micros(0),
            lease_left: alive.then(|| Duration::from_secs(9)),
            expires_at: Timestamp::from_micros(0),
            lease: None,
            partitions,
            figures: None,
        }
    }

    #[test]
    fn partitions_of_the_dead_belong_to_nobody() {
        let unowned = |nodes: Vec<NodeStatus>| Fleet::new(nodes).unowned();
        assert_eq!(unowned(Vec::new()), None);
        assert_eq!(unowned(vec![node("a", NodeMode::Partitioned, true, 256)]), None);
        assert_eq!(
            unowned(vec![node("a", NodeMode::MultiNode, true, 0)]),
            None,
            "its rows belong to those who claim them"
        );
        let left =
            unowned(vec![node("a", NodeMode::Partitioned, true, 200), node("b", NodeMode::Partitioned, false, 56)]);
        assert!(left.as_ref().is_some_and(|text| text.contains("56 belong to no living node")), "{left:?}");
        assert!(unowned(vec![node("a", NodeMode::SingleNode, true, 0)]).is_some());
    }

    #[test]
    fn a_node_that_has_renewed_and_tells_no_figures_is_of_an_earlier_release() {
        let at = |seconds: i64| Timestamp::from_micros(seconds * 1_000_000);
        let started = |seconds: i64, figures: bool| NodeStatus {
            started_at: at(seconds),
            expires_at: at(109),
            figures: figures.then(Default::default),
            ..node("a", NodeMode::MultiNode, true, 0)
        };
        assert_eq!(Fleet::new(vec![started(90, false), started(50, true)]).earlier(), None, "it has just begun");
        assert_eq!(Fleet::new(vec![started(84, false)]).earlier().as_deref(), Some("a"));
        let ended = NodeStatus { lease_left: None, ..started(50, false) };
        assert_eq!(Fleet::new(vec![ended]).earlier(), None);
    }

    #[test]
    fn a_node_that_has_missed_a_renewal_is_told_before_its_lease_ends() {
        let left = |seconds: u64| NodeStatus {
            lease_left: Some(Duration::from_secs(seconds)),
            lease: Some(Duration::from_secs(15)),
            ..node("a", NodeMode::MultiNode, true, 0)
        };
        assert_eq!(Fleet::new(vec![left(8), left(15)]).overdue(), None, "a third goes by between two renewals");
        let told = Fleet::new(vec![left(8), left(7)]).overdue();
        assert!(told.is_some_and(|text| text.starts_with("a until") && text.ends_with("unless it renews")));
        assert_eq!(Fleet::new(vec![node("a", NodeMode::MultiNode, false, 0)]).overdue(), None, "its lease has ended");
    }

    #[test]
    fn nodes_whose_lease_has_ended_deliver_nothing() {
        let fleet = Fleet::new(vec![node("a", NodeMode::MultiNode, false, 0), node("b", NodeMode::MultiNode, true, 0)]);
        assert_eq!((fleet.nobody(), fleet.lives("a"), fleet.lives("b")), (None, false, true));
        assert!(fleet.ended().is_some_and(|text| text.starts_with("a until")));
        assert!(Fleet::new(vec![node("a", NodeMode::MultiNode, false, 0)]).nobody().is_some());
        let many = (0..7).map(|number| node(&number.to_string(), NodeMode::MultiNode, false, 0)).collect();
        assert!(Fleet::new(many).ended().is_some_and(|text| text.ends_with("and 2 more")));
    }
}
