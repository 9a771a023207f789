use std::time::Duration;

use crate::clock::Random;

/// Random numbers that are always the same.
#[derive(Debug)]
pub(super) struct Fixed(u64);

impl Random for Fixed {
    fn next_u64(&self) -> u64 {
        self.0
    }
}

pub(super) const LOW: Fixed = Fixed(0);
pub(super) const MIDDLE: Fixed = Fixed(1 << 63);
pub(super) const HIGH: Fixed = Fixed(u64::MAX);

pub(super) fn millis(n: u64) -> Duration {
    Duration::from_millis(n)
}
