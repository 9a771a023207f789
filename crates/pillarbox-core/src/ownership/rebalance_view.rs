use std::ops::RangeInclusive;
use std::time::Duration;

use super::{Epochs, Holding, Partitions, Rebalanced};

/// The nodes and partitions that a rebalance finds.
#[derive(Debug, Clone, Default)]
pub struct RebalanceView {
    /// True if the node is registered.
    pub registered: bool,
    /// True if there is something to evict: a node whose lease has ended, or the ownership of one that is gone.
    pub stale: bool,
    /// The partitions that the node owns.
    pub owned: Partitions,
    /// The epochs of the owned partitions at least.
    pub epochs: Epochs,
    /// The partitions that no node owns.
    pub free: Partitions,
    /// The free partitions whose last owner died.
    pub died: Partitions,
    /// The partitions that the node should own; `None` if 256 nodes stand before it.
    pub target: Option<RangeInclusive<u8>>,
    /// The time until the next lease of another node ends.
    pub next_expiry: Option<Duration>,
}

impl RebalanceView {
    /// Adds a node whose lease ends in `lease_left`, if it has not ended; `itself` if it is the one that asks.
    pub fn add_node(&mut self, itself: bool, lease_left: Option<Duration>) {
        self.stale |= lease_left.is_none();
        if itself {
            self.registered = true;
        } else {
            self.next_expiry = self.next_expiry.into_iter().chain(lease_left).min();
        }
    }

    /// The free partitions that the node should own.
    #[must_use]
    pub fn wanted(&self) -> Partitions {
        self.free.intersection(self.target.clone().map_or(Partitions::NONE, Partitions::from))
    }

    /// The partitions of `give` that are the node's to give: those that it owns under the epochs named.
    #[must_use]
    pub fn given(&self, give: &Epochs) -> Partitions {
        let named = give.iter().filter(|(partition, epoch)| self.epochs.get(*partition) == Some(*epoch));
        self.owned.intersection(named.map(|(partition, _)| partition).collect())
    }

    /// Frees the partitions of `give` that are the node's to give.
    pub fn give(&mut self, give: &Epochs) {
        let given = self.given(give);
        self.owned = self.owned.difference(given);
        self.free = self.free.union(given);
    }

    /// The answer to [`rebalance`](crate::store::Store::rebalance) where nothing is to be changed, so that no lock is needed for it.
    #[must_use]
    pub fn settled(&self, give: &Epochs) -> Option<Rebalanced> {
        let is_settled = !self.registered || self.wanted().is_empty() && self.given(give).is_empty();
        (is_settled && !self.stale).then(|| self.answer(&Epochs::none()))
    }

    /// The epochs under which the node owns the partitions that it [wants](Self::wanted), once it has taken them.
    #[must_use]
    pub fn next_epochs(&self) -> Epochs {
        self.epochs.of(self.wanted()).iter().map(|(partition, epoch)| (partition, epoch + 1)).collect()
    }

    /// The answer to [`rebalance`](crate::store::Store::rebalance) once the node has taken `taken`.
    #[must_use]
    pub fn answer(&self, taken: &Epochs) -> Rebalanced {
        if !self.registered {
            return Rebalanced::Lost;
        }
        let gained = taken.partitions();
        Rebalanced::Member(Holding {
            owned: self.owned.union(gained),
            epochs: self.epochs.of(self.owned).iter().chain(taken.iter()).collect(),
            gained,
            unclean: gained.intersection(self.died),
            target: self.target.clone(),
            next_expiry: self.next_expiry,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A node that owns 0 to 9 under epoch 5 and should own 0 to 19; of those that follow, 10 to 12 are free, 12 after a death.
    fn found() -> RebalanceView {
        RebalanceView {
            registered: true,
            stale: false,
            owned: Partitions::from(0..=9),
            epochs: (0..=12).map(|partition| (partition, 5)).collect(),
            free: [10, 11, 12, 200].into_iter().collect(),
            died: [12, 200].into_iter().collect(),
            target: Some(0..=19),
            next_expiry: None,
        }
    }

    fn member(rebalanced: &Rebalanced) -> &Holding {
        match rebalanced {
            Rebalanced::Member(holding) => holding,
            Rebalanced::Lost => panic!("the node is lost"),
        }
    }

    #[test]
    fn a_node_takes_what_is_free_of_its_target() {
        let found = found();
        assert_eq!(found.wanted(), Partitions::from(10..=12));
        let answer = found.answer(&found.next_epochs());
        let holding = member(&answer);
        assert_eq!((holding.owned, holding.gained), (Partitions::from(0..=12), Partitions::from(10..=12)));
        assert_eq!(holding.unclean, Partitions::from(12..=12));
        assert_eq!((holding.epochs.get(9), holding.epochs.get(10), holding.epochs.get(200)), (Some(5), Some(6), None));
        assert_eq!(RebalanceView { target: None, ..found }.wanted(), Partitions::NONE);
    }

    #[test]
    fn a_node_gives_what_it_owns_under_the_epoch_named() {
        let give: Epochs = [(7, 5), (8, 4), (9, 5), (11, 5), (100, 5)].into_iter().collect();
        let mut found = RebalanceView { target: Some(0..=8), ..found() };
        assert_eq!(found.given(&give), [7, 9].into_iter().collect());
        found.give(&give);
        assert_eq!(found.wanted(), Partitions::from(7..=7), "what it should own, it takes back");
        let answer = found.answer(&found.next_epochs());
        assert_eq!((member(&answer).owned, member(&answer).epochs.get(7)), (Partitions::from(0..=8), Some(6)));
    }

    #[test]
    fn only_a_change_needs_the_lock() {
        let settled = || RebalanceView { free: Partitions::NONE, ..found() };
        let (nothing, own) = (Epochs::none(), Epochs::from_iter([(3, 5)]));
        for (found, give, answers) in [
            (settled(), &nothing, true),
            (settled(), &Epochs::from_iter([(3, 4)]), true),
            (settled(), &own, false),
            (RebalanceView { stale: true, ..settled() }, &nothing, false),
            (RebalanceView { registered: false, ..found() }, &own, true),
            (RebalanceView { registered: false, stale: true, ..found() }, &nothing, false),
            (found(), &nothing, false),
            (RebalanceView { target: None, ..found() }, &nothing, true),
        ] {
            assert_eq!(found.settled(give).is_some(), answers, "{found:?} giving {give:?}");
        }
        assert_eq!(RebalanceView { registered: false, ..found() }.answer(&nothing), Rebalanced::Lost);
    }

    #[test]
    fn the_next_lease_to_end_is_that_of_another_node() {
        let (soon, later) = (Some(Duration::from_secs(1)), Some(Duration::from_secs(9)));
        for (nodes, registered, stale, next_expiry) in [
            (vec![], false, false, None),
            (vec![(true, soon)], true, false, None),
            (vec![(true, soon), (false, later)], true, false, later),
            (vec![(false, later), (false, soon), (false, None)], false, true, soon),
            (vec![(true, None)], true, true, None),
        ] {
            let mut found = RebalanceView::default();
            nodes.iter().for_each(|(itself, left)| found.add_node(*itself, *left));
            assert_eq!(
                (found.registered, found.stale, found.next_expiry),
                (registered, stale, next_expiry),
                "{nodes:?}"
            );
        }
    }
}
