//! The knowledge and the own steps of a process.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use pillarbox_core::ownership::{Partitions, spread};

use super::clock::Clock;
use super::protocol::{Flaw, LEASE, MARGIN};
use super::table::{Given, Id, Member, Rebalanced};

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Node {
    pub(crate) id: Id,
    /// Ticks of its own clock since it sent what its lease rests on: the last renewal that was confirmed, or its join.
    pub(crate) age: u8,
    /// Ticks of its own clock since it sent a renewal that is not answered yet.
    pub(crate) renewal: Option<u8>,
    /// Its belief in the database's clock.
    pub(crate) clock: Clock,
    /// The nodes that it watches: ticks of its own clock since it first saw their last renewal.
    pub(crate) watched: BTreeMap<Id, u8>,
    pub(crate) target: Option<RangeInclusive<u8>>,
    pub(crate) holdings: Vec<Holding>,
}

/// What a node has of one partition.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub(crate) struct Holding {
    /// The epoch by which it owns the partition, as it was told last.
    pub(crate) owned: Option<u8>,
    pub(crate) work: Option<Work>,
}

/// An event in memory.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Work {
    pub(crate) event: u8,
    /// Its handler runs, or its verdict is not recorded yet. Before, it is on its way from the table or queued.
    pub(crate) running: bool,
}

impl Node {
    pub(crate) fn new(id: Id, partitions: usize) -> Self {
        Self {
            id,
            age: 0,
            renewal: None,
            clock: Clock::default(),
            watched: BTreeMap::new(),
            target: None,
            holdings: vec![Holding::default(); partitions],
        }
    }

    /// A tick of its own clock. How long ago something was does not matter any more once it is too long ago.
    pub(crate) fn tick(&mut self, flaw: Option<Flaw>) {
        self.age = (self.age + 1).min(reliable(flaw));
        self.renewal = self.renewal.map(|age| (age + 1).min(reliable(flaw)));
        self.clock.tick();
        self.watched.values_mut().for_each(|age| *age = (*age + 1).min(LEASE));
    }

    /// Whether it relies on its lease: the safety inequality, seen from the node.
    pub(crate) fn is_live(&self, flaw: Option<Flaw>) -> bool {
        self.age < reliable(flaw)
    }

    pub(crate) fn runs(&self, partition: usize) -> bool {
        self.holdings[partition].work.as_ref().is_some_and(|work| work.running)
    }

    /// Whether it may take events of a partition, at `place`: it owns it, and is not about to give it away.
    pub(crate) fn takes(&self, partition: usize, place: u8) -> bool {
        self.holdings[partition].owned.is_some() && self.target.as_ref().is_some_and(|target| target.contains(&place))
    }

    /// The partitions that it gives when it rebalances: surplus of which nothing runs any more.
    pub(crate) fn gives(&self, places: &[u8], flaw: Option<Flaw>) -> Given {
        let owned: Partitions = self.places_owned(places).collect();
        let surplus = match flaw {
            Some(Flaw::KeepsSurplus) => Partitions::NONE,
            _ => spread::surplus(owned, self.target.clone()),
        };
        let given = |(partition, place): (usize, &u8)| {
            let may_go = !self.runs(partition) || flaw == Some(Flaw::GivesWhatRuns);
            self.holdings[partition].owned.filter(|_| surplus.contains(*place) && may_go)
        };
        places.iter().enumerate().map(given).collect()
    }

    fn places_owned<'a>(&'a self, places: &'a [u8]) -> impl Iterator<Item = u8> + 'a {
        self.holdings.iter().zip(places).filter(|(holding, _)| holding.owned.is_some()).map(|(_, place)| *place)
    }

    /// Takes the answer of a rebalance for what is. Of a partition that is not to be delivered from, what waits in memory is dropped, and
    /// what a fetch under way brings is not taken.
    pub(crate) fn learn(&mut self, rebalanced: Rebalanced, places: &[u8], flaw: Option<Flaw>) {
        self.target = rebalanced.target;
        for (holding, owned) in self.holdings.iter_mut().zip(rebalanced.owned) {
            holding.owned = owned;
        }
        for (partition, place) in places.iter().enumerate() {
            if !self.takes(partition, *place) && flaw != Some(Flaw::KeepsWhatItHasRead) {
                self.holdings[partition].work.take_if(|work| !work.running);
            }
        }
    }

    /// Looks at the other nodes; returns one that has not renewed its lease for as long as a lease is.
    pub(crate) fn watch(&mut self, members: &[Member]) -> Option<Id> {
        self.watched.retain(|id, _| members.iter().any(|member| member.id == *id));
        for member in members.iter().filter(|member| member.id != self.id) {
            self.watched.entry(member.id).or_insert(0);
        }
        self.watched.iter().find(|(_, age)| **age >= LEASE).map(|(id, _)| *id)
    }
}

/// For how many ticks of its own clock a node relies on a lease.
fn reliable(flaw: Option<Flaw>) -> u8 {
    LEASE - if flaw == Some(Flaw::NoMargin) { 0 } else { MARGIN }
}
