use std::time::Duration;

use crate::clock::Random;

/// Chance that is always the same.
#[derive(Debug)]
pub(super) struct Chance(u64);

impl Random for Chance {
    fn next_u64(&self) -> u64 {
        self.0
    }
}

pub(super) const LOW: Chance = Chance(0);
pub(super) const MIDDLE: Chance = Chance(1 << 63);
pub(super) const HIGH: Chance = Chance(u64::MAX);

pub(super) fn millis(n: u64) -> Duration {
    Duration::from_millis(n)
}
