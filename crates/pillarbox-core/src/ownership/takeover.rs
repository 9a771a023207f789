use std::time::Duration;

use super::{Acquired, NodeId};

/// The ownership of a whole table, as a node that wants all partitions finds it.
#[derive(Debug, Clone)]
pub struct Takeover {
    /// True if the node is registered.
    pub registered: bool,
    /// True if there is something to evict: a node whose lease has ended, or the ownership of one that is gone.
    pub stale: bool,
    /// The owner of the partitions.
    pub owner: Owner,
    /// The highest epoch of any partition.
    pub epoch: i64,
    /// True if the last owner of a free partition died.
    pub unclean: bool,
}

/// The owner of the partitions, as a node that wants them finds it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Owner {
    /// The node itself owns all of them.
    Itself,
    /// Another node, with the time until its lease ends.
    Other(NodeId, Duration),
    /// No node: they are free to take.
    Nobody,
}

impl Takeover {
    /// The answer to [`acquire`](crate::store::Store::acquire); `None` if the node may take the partitions.
    #[must_use]
    pub fn answer(&self) -> Option<Acquired> {
        if !self.registered {
            return Some(Acquired::Lost);
        }
        match &self.owner {
            Owner::Itself => Some(Acquired::Owner { epoch: self.epoch, unclean: false }),
            Owner::Other(owner, expires_in) => {
                Some(Acquired::Standby { owner: owner.clone(), expires_in: *expires_in })
            }
            Owner::Nobody => None,
        }
    }

    /// The answer where nothing is to be changed, so that no lock is needed for it.
    #[must_use]
    pub fn settled(&self) -> Option<Acquired> {
        if self.stale { None } else { self.answer() }
    }

    /// The answer once the node has taken the partitions.
    #[must_use]
    pub const fn taken(&self) -> Acquired {
        Acquired::Owner { epoch: self.epoch + 1, unclean: self.unclean }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_nobody_owns_may_be_taken() {
        let other = || Owner::Other(NodeId::from_stored("b-1"), Duration::from_secs(3));
        let standby =
            || Some(Acquired::Standby { owner: NodeId::from_stored("b-1"), expires_in: Duration::from_secs(3) });
        let owner = |epoch, unclean| Some(Acquired::Owner { epoch, unclean });
        for (registered, found, answer) in [
            (true, Owner::Itself, owner(7, false)),
            (true, other(), standby()),
            (true, Owner::Nobody, None),
            (false, Owner::Itself, Some(Acquired::Lost)),
            (false, other(), Some(Acquired::Lost)),
            (false, Owner::Nobody, Some(Acquired::Lost)),
        ] {
            let found = Takeover { registered, stale: false, owner: found, epoch: 7, unclean: true };
            assert_eq!(found.answer(), answer, "{found:?}");
            assert_eq!(found.settled(), answer, "{found:?}");
            assert_eq!(Some(found.taken()), owner(8, true));
            let stale = Takeover { stale: true, ..found };
            assert_eq!((stale.answer(), stale.settled()), (answer, None), "{stale:?}");
        }
    }
}
