use std::collections::BTreeMap;
use std::fmt;

use super::Partitions;

/// Partitions, each with the epoch under which a node owns it.
///
/// An epoch counts the nodes that have taken a partition. A node that gives a partition names the epoch, so that a request
/// which reaches the database late takes nothing away that the node has come to own anew.
///
/// ```
/// use pillarbox_core::ownership::{Epochs, Partitions};
///
/// let owned: Epochs = [(3, 7), (4, 7), (200, 2)].into_iter().collect();
/// let given = owned.of(Partitions::from(4..=255));
/// assert!(given.iter().eq([(4, 7), (200, 2)]));
/// assert_eq!(format!("{given:?}"), "{2: {200..=200}, 7: {4..=4}}");
/// ```
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Epochs(BTreeMap<u8, i64>);

impl Epochs {
    /// No partition.
    #[must_use]
    pub const fn none() -> Self {
        Self(BTreeMap::new())
    }

    /// The partitions, without their epochs.
    #[must_use]
    pub fn partitions(&self) -> Partitions {
        self.0.keys().copied().collect()
    }

    /// The epochs of `partitions` alone.
    #[must_use]
    pub fn of(&self, partitions: Partitions) -> Self {
        self.iter().filter(|(partition, _)| partitions.contains(*partition)).collect()
    }

    /// The epoch of a partition.
    #[must_use]
    pub fn get(&self, partition: u8) -> Option<i64> {
        self.0.get(&partition).copied()
    }

    /// True if there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Each partition and its epoch, in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = (u8, i64)> + '_ {
        self.0.iter().map(|(partition, epoch)| (*partition, *epoch))
    }
}

impl FromIterator<(u8, i64)> for Epochs {
    fn from_iter<I: IntoIterator<Item = (u8, i64)>>(epochs: I) -> Self {
        Self(epochs.into_iter().collect())
    }
}

impl Extend<(u8, i64)> for Epochs {
    fn extend<I: IntoIterator<Item = (u8, i64)>>(&mut self, epochs: I) {
        self.0.extend(epochs);
    }
}

/// The runs under each epoch, as logs and failing tests show them: `{2: {200..=200}, 7: {3..=4}}`.
impl fmt::Debug for Epochs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut epochs: BTreeMap<i64, Partitions> = BTreeMap::new();
        for (partition, epoch) in self.iter() {
            epochs.entry(epoch).or_default().insert(partition);
        }
        f.debug_map().entries(epochs).finish()
    }
}
