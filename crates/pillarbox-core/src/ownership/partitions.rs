use std::fmt;
use std::iter::FromIterator;
use std::ops::RangeInclusive;

/// Partitions in one word of the set.
const WORD: u8 = 64;

/// A set of partitions.
///
/// It is 32 bytes and copied like a number, so that tasks can share one without a lock around what they only look at.
///
/// ```
/// use pillarbox_core::ownership::Partitions;
///
/// let mut owned = Partitions::from(0..=127);
/// owned.insert(200);
/// owned.remove(5);
/// assert_eq!(owned.len(), 128);
/// assert_eq!(owned.runs(), [0..=4, 6..=127, 200..=200]);
/// ```
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Partitions([u64; 4]);

impl Partitions {
    /// No partition.
    pub const NONE: Self = Self([0; 4]);
    /// Every partition.
    pub const ALL: Self = Self([u64::MAX; 4]);

    /// Adds a partition. True if it was missing.
    pub const fn insert(&mut self, partition: u8) -> bool {
        let missing = !self.contains(partition);
        self.0[word(partition)] |= bit(partition);
        missing
    }

    /// Takes a partition out. True if it was there.
    pub const fn remove(&mut self, partition: u8) -> bool {
        let there = self.contains(partition);
        self.0[word(partition)] &= !bit(partition);
        there
    }

    /// True if the partition is in the set.
    #[must_use]
    pub const fn contains(&self, partition: u8) -> bool {
        self.0[word(partition)] & bit(partition) != 0
    }

    /// The number of partitions in the set: 0 to 256.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// True if the set is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::NONE
    }

    /// The partitions, ascending.
    pub fn iter(&self) -> impl Iterator<Item = u8> + use<> {
        let set = *self;
        (0..=u8::MAX).filter(move |partition| set.contains(*partition))
    }

    /// The set as the fewest ranges, ascending, for a query to name instead of up to 256 numbers.
    #[must_use]
    pub fn runs(&self) -> Vec<RangeInclusive<u8>> {
        let mut runs: Vec<RangeInclusive<u8>> = Vec::new();
        for partition in self.iter() {
            match runs.last_mut() {
                Some(run) if run.end().checked_add(1) == Some(partition) => *run = *run.start()..=partition,
                _ => runs.push(partition..=partition),
            }
        }
        runs
    }

    /// The partitions that are in either set.
    #[must_use]
    pub fn union(self, other: Self) -> Self {
        self.combined(other, |mine, theirs| mine | theirs)
    }

    /// The partitions that are in both sets.
    #[must_use]
    pub fn intersection(self, other: Self) -> Self {
        self.combined(other, |mine, theirs| mine & theirs)
    }

    /// The partitions that are in this set and not in `other`.
    #[must_use]
    pub fn difference(self, other: Self) -> Self {
        self.combined(other, |mine, theirs| mine & !theirs)
    }

    fn combined(self, other: Self, combine: fn(u64, u64) -> u64) -> Self {
        Self(std::array::from_fn(|word| combine(self.0[word], other.0[word])))
    }
}

const fn word(partition: u8) -> usize {
    (partition / WORD) as usize
}

const fn bit(partition: u8) -> u64 {
    1 << (partition % WORD)
}

impl From<RangeInclusive<u8>> for Partitions {
    fn from(range: RangeInclusive<u8>) -> Self {
        range.collect()
    }
}

impl FromIterator<u8> for Partitions {
    fn from_iter<I: IntoIterator<Item = u8>>(partitions: I) -> Self {
        let mut set = Self::NONE;
        set.extend(partitions);
        set
    }
}

impl Extend<u8> for Partitions {
    fn extend<I: IntoIterator<Item = u8>>(&mut self, partitions: I) {
        for partition in partitions {
            self.insert(partition);
        }
    }
}

/// Its runs, as logs and failing tests show it: `{0..=4, 200..=200}`.
impl fmt::Debug for Partitions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.runs()).finish()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_limits_are_in_the_set_like_any_other() {
        let mut set = Partitions::NONE;
        assert!(set.is_empty() && set.runs().is_empty());
        for partition in [0, 63, 64, 255] {
            assert!(set.insert(partition) && !set.insert(partition), "{partition}");
        }
        assert_eq!(set.runs(), [0..=0, 63..=64, 255..=255]);
        assert_eq!(format!("{set:?}"), "{0..=0, 63..=64, 255..=255}");
        assert!(set.remove(255) && !set.remove(255));
        assert_eq!(set.len(), 3);
        assert_eq!((Partitions::ALL.len(), Partitions::ALL.runs()), (256, vec![0..=255]));
        assert_eq!(Partitions::from(0..=255), Partitions::ALL);
    }

    proptest! {
        #[test]
        fn it_does_what_a_set_of_numbers_does(a: BTreeSet<u8>, b: BTreeSet<u8>) {
            let set = |numbers: &BTreeSet<u8>| -> Partitions { numbers.iter().copied().collect() };
            let (x, y) = (set(&a), set(&b));
            prop_assert!(x.iter().eq(a.iter().copied()));
            prop_assert_eq!(x.len(), a.len());
            prop_assert_eq!(x.union(y), set(&(&a | &b)));
            prop_assert_eq!(x.intersection(y), set(&(&a & &b)));
            prop_assert_eq!(x.difference(y), set(&(&a - &b)));
        }

        #[test]
        fn runs_are_the_set_and_never_touch(numbers: BTreeSet<u8>) {
            let set: Partitions = numbers.into_iter().collect();
            let runs = set.runs();
            prop_assert!(runs.iter().cloned().flatten().eq(set.iter()));
            for pair in runs.windows(2) {
                prop_assert!(u16::from(*pair[0].end()) + 1 < u16::from(*pair[1].start()), "{runs:?}");
            }
        }
    }
}
