use super::{NodeStatus, NodesByLease, refusal};
use crate::ownership::NodeMode;

impl NodesByLease {
    /// The nodes to evict before a node of `mode` joins: those beside whose mode it cannot run, and whose lease has ended. The
    /// others stay, since a node may renew as long as its row is there.
    ///
    /// # Errors
    /// If such a node lives; in words for the user.
    pub fn nodes_to_evict_for(self, mode: NodeMode) -> Result<Vec<NodeStatus>, String> {
        // A mode of a later release is unknown here, and so is whether it would tolerate this one.
        let is_other = |node: &NodeStatus| !node.mode.parse().is_ok_and(|known: NodeMode| mode.coexists_with(known));
        match self.alive.iter().find(|node| is_other(node)) {
            Some(other) => Err(refusal::other_mode(other.node.as_str(), &other.mode, mode)),
            None => Ok(self.ended.into_iter().filter(is_other).collect()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Timestamp;
    use crate::ownership::NodeId;

    #[test]
    fn a_node_joins_beside_those_whose_mode_it_can_run_with() {
        let in_mode = |mode: &str, name: &str| NodeStatus {
            node: NodeId::from_stored(name),
            mode: mode.to_owned(),
            started_at: Timestamp::from_micros(0),
            lease_left: None,
            expires_at: Timestamp::from_micros(1),
            lease: None,
            partitions: 0,
            figures: None,
        };
        let judged = |alive: &str, ended: &str| NodesByLease {
            alive: vec![in_mode("single_node", "same"), in_mode(alive, "alive")],
            ended: vec![in_mode("single_node", "same-ended"), in_mode(ended, "ended")],
            spared_for: None,
        };
        for (alive, ended, cleared) in [
            ("single_node", "single_node", Some(0)),
            ("single_node", "multi_node", Some(1)),
            ("single_node", "of a later release", Some(1)),
            ("multi_node", "single_node", None),
            ("of a later release", "single_node", None),
        ] {
            let to_evict = judged(alive, ended).nodes_to_evict_for(NodeMode::SingleNode);
            assert_eq!(to_evict.ok().map(|nodes| nodes.len()), cleared, "{alive} alive, {ended} ended");
        }
    }
}
