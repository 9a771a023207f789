//! Random choices, all from one seed.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use pillarbox_core::clock::Random;

/// A generator of random choices. Clones draw from the same sequence, so that its order is the order of the run.
#[derive(Debug, Clone)]
pub struct Chance(Arc<AtomicU64>);

const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

impl Chance {
    /// The sequence of this seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(Arc::new(AtomicU64::new(mix(seed ^ 0x2b7e_1516_28ae_d2a6))))
    }

    /// The next 64 bits.
    #[must_use]
    pub fn bits(&self) -> u64 {
        mix(self.0.fetch_add(STEP, Relaxed).wrapping_add(STEP))
    }

    /// A number below `end`; zero if that is zero.
    #[must_use]
    pub fn below(&self, end: u64) -> u64 {
        self.bits().checked_rem(end).unwrap_or(0)
    }

    /// A number from `first` to `last`.
    #[must_use]
    pub fn between(&self, first: u64, last: u64) -> u64 {
        first + self.below(last.saturating_sub(first) + 1)
    }

    /// As [`between`](Self::between), as a size.
    #[must_use]
    pub fn size(&self, first: usize, last: usize) -> usize {
        usize::try_from(self.between(first as u64, last as u64)).unwrap_or(first)
    }

    /// True in so many of a thousand cases.
    #[must_use]
    pub fn permille(&self, of: u64) -> bool {
        of > 0 && self.below(1000) < of
    }

    /// True in one of so many cases.
    #[must_use]
    pub fn one_in(&self, cases: u64) -> bool {
        self.below(cases) == 0
    }

    /// One of these.
    #[must_use]
    pub fn pick<T: Copy, const N: usize>(&self, of: [T; N]) -> T {
        of[usize::try_from(self.below(N as u64)).unwrap_or(0)]
    }

    /// A duration between so many milliseconds.
    #[must_use]
    pub fn millis(&self, first: u64, last: u64) -> Duration {
        Duration::from_millis(self.between(first, last))
    }
}

impl Random for Chance {
    fn next_u64(&self) -> u64 {
        self.bits()
    }
}

/// The finalizer of SplitMix64.
fn mix(state: u64) -> u64 {
    let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}
