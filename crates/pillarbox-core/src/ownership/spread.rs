//! The partitions that each node should own: pure arithmetic on the list of nodes, the same wherever it is done.
//!
//! Every node gets one contiguous range, so that it reads its events by `partition BETWEEN a AND b`, and all ranges are
//! as long as each other, give or take one:
//!
//! ```text
//!              0            85 86         127 128       170 171          255
//!   1 node     ├──────────────────────────── a ───────────────────────────┤
//!   2 nodes    ├──────────── a ─────────────┤ ├──────────── b ────────────┤
//!   3 nodes    ├───── a ────┤ ├─────────── b ──────────┤ ├────── c ───────┤
//! ```
//!
//! Nodes stand in the order in which they started: one that joins comes last, and the others keep their order and much of
//! their partitions.

use std::ops::RangeInclusive;

use super::{NodeId, Partitions};
use crate::event::PARTITIONS;

/// The partitions that `me` should own when `members` are the live nodes in the order of `(started_at, node_id)`: each
/// 256 / n of them, and the first 256 mod n nodes one more.
///
/// `None` if there is none for it: 256 nodes stand before it, which makes it a standby, or it is no member.
///
/// ```
/// use pillarbox_core::ownership::{NodeId, spread};
///
/// let members = ["a-1", "b-1", "c-1"].map(NodeId::from_stored);
/// assert_eq!(spread::target(&members, &members[0]), Some(0..=85));
/// assert_eq!(spread::target(&members, &members[1]), Some(86..=170));
/// assert_eq!(spread::target(&members, &members[2]), Some(171..=255));
/// assert_eq!(spread::target(&members, &NodeId::from_stored("d-1")), None);
/// ```
#[must_use]
pub fn target(members: &[NodeId], me: &NodeId) -> Option<RangeInclusive<u8>> {
    let before = members.iter().position(|member| member == me)?;
    let partitions = usize::from(PARTITIONS);
    let (each, remainder) = (partitions / members.len(), partitions % members.len());
    let first = before * each + before.min(remainder);
    let end = first + each + usize::from(before < remainder);
    let last = end.checked_sub(1).filter(|last| *last >= first)?;
    Some(u8::try_from(first).ok()?..=u8::try_from(last).ok()?)
}

/// The partitions that a node owns and should not: to be given away once nothing of them runs any more.
#[must_use]
pub fn surplus(owned: Partitions, target: Option<RangeInclusive<u8>>) -> Partitions {
    owned.difference(target.map_or(Partitions::NONE, Partitions::from))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn nodes(count: usize) -> Vec<NodeId> {
        (0..count).map(|number| NodeId::from_stored(&format!("node-{number}"))).collect()
    }

    fn sizes(count: usize) -> Vec<usize> {
        let members = nodes(count);
        members.iter().map(|me| target(&members, me).map_or(0, |range| range.count())).collect()
    }

    #[test]
    fn partitions_are_spread_evenly_and_the_first_nodes_get_one_more() {
        assert_eq!(sizes(1), [256]);
        assert_eq!(sizes(2), [128, 128]);
        assert_eq!(sizes(3), [86, 85, 85]);
        assert_eq!(sizes(7), [37, 37, 37, 37, 36, 36, 36]);
        assert_eq!(sizes(255), [vec![2], vec![1; 254]].concat());
        assert_eq!(sizes(256), [1; 256]);
        assert_eq!(sizes(300), [vec![1; 256], vec![0; 44]].concat());
    }

    #[test]
    fn nodes_that_are_no_members_have_no_target() {
        assert_eq!(target(&[], &NodeId::from_stored("a")), None);
        assert_eq!(target(&nodes(2), &NodeId::from_stored("a")), None);
    }

    #[test]
    fn surplus_is_what_lies_outside_the_target() {
        let table = [
            (Partitions::ALL, Some(0..=127), Partitions::from(128..=255)),
            (Partitions::from(100..=200), Some(86..=170), Partitions::from(171..=200)),
            (Partitions::from(0..=85), Some(0..=127), Partitions::NONE),
            (Partitions::from(3..=3), None, Partitions::from(3..=3)),
            (Partitions::NONE, Some(0..=255), Partitions::NONE),
        ];
        for (owned, target, expected) in table {
            assert_eq!(surplus(owned, target.clone()), expected, "{owned:?} of {target:?}");
        }
    }

    proptest! {
        #[test]
        fn targets_are_disjoint_and_cover_everything(count in 1_usize..400) {
            let members = nodes(count);
            let mut covered = Partitions::NONE;
            for me in &members {
                for partition in target(&members, me).into_iter().flatten() {
                    prop_assert!(covered.insert(partition), "{partition} twice among {count}");
                }
            }
            prop_assert_eq!(covered, Partitions::ALL);
        }
    }
}
