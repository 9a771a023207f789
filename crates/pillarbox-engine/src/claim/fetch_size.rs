use std::time::Duration;

use crate::queue::Limits;

/// A fetch that fails after this long was too large for the way to the database: it timed out, or would have.
const TIMED_OUT_AFTER: Duration = Duration::from_secs(5);
/// A fetch that takes longer is not made larger.
const MAX_TIME_TO_GROW: Duration = Duration::from_secs(1);

/// The rows and bytes that a fetch asks for.
///
/// A fetch that takes too long is halved, and grows again by twos with each that does not. And no more rows are asked for than are
/// likely to fit by the size of the last ones: a store that has to stop in the middle of an answer may lose a connection by it.
#[derive(Debug)]
pub(crate) struct FetchSize {
    most: Limits,
    now: Limits,
    /// The size of a payload: of all rows, the later ones with more weight.
    payload: usize,
}

impl FetchSize {
    pub(crate) fn new(most: Limits) -> Self {
        Self { most, now: most, payload: 0 }
    }

    /// The size of the next fetch, with so much room.
    pub(crate) fn within(&self, room: Limits) -> Limits {
        let bytes = room.bytes.min(self.now.bytes).max(1);
        let likely = bytes.checked_div(self.payload).unwrap_or(usize::MAX);
        Limits { rows: room.rows.min(self.now.rows).min(likely).max(1), bytes }
    }

    /// A fetch of `asked` has returned this.
    pub(crate) fn answered(&mut self, asked: Limits, returned: Limits, took: Duration) {
        if let Some(payload) = returned.bytes.checked_div(returned.rows) {
            self.payload = usize::midpoint(self.payload, payload);
        }
        if took >= TIMED_OUT_AFTER {
            self.halve(asked);
        } else if took < MAX_TIME_TO_GROW {
            let double = |now: usize, most: usize| now.saturating_mul(2).min(most);
            self.now =
                Limits { rows: double(self.now.rows, self.most.rows), bytes: double(self.now.bytes, self.most.bytes) };
        }
    }

    /// A fetch of `asked` has failed.
    pub(crate) fn failed(&mut self, asked: Limits, took: Duration) {
        if took >= TIMED_OUT_AFTER {
            self.halve(asked);
        }
    }

    fn halve(&mut self, asked: Limits) {
        self.now = Limits { rows: asked.rows.div_ceil(2), bytes: asked.bytes.div_ceil(2) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAX: Limits = Limits { rows: 1000, bytes: 8_000_000 };
    const AMPLE: Limits = Limits { rows: usize::MAX, bytes: usize::MAX };
    const QUICK: Duration = Duration::from_millis(5);

    fn limits(rows: usize, bytes: usize) -> Limits {
        Limits { rows, bytes }
    }

    #[test]
    fn a_fetch_that_takes_too_long_is_halved_and_grows_again() {
        let mut size = FetchSize::new(MAX);
        assert_eq!(size.within(AMPLE), MAX);
        size.failed(MAX, QUICK);
        assert_eq!(size.within(AMPLE), MAX, "a database that is away says nothing of the size");
        for expected in [limits(500, 4_000_000), limits(250, 2_000_000)] {
            let asked = size.within(AMPLE);
            size.failed(asked, Duration::from_secs(30));
            assert_eq!(size.within(AMPLE), expected);
        }
        size.answered(size.within(AMPLE), limits(0, 0), Duration::from_secs(2));
        assert_eq!(size.within(AMPLE), limits(250, 2_000_000), "long enough");
        size.answered(size.within(AMPLE), limits(0, 0), Duration::from_secs(10));
        assert_eq!(size.within(AMPLE), limits(125, 1_000_000), "it would have timed out before long");
        for _ in 0..3 {
            size.answered(size.within(AMPLE), limits(0, 0), QUICK);
        }
        assert_eq!(size.within(AMPLE), MAX);
        for _ in 0..100 {
            size.failed(size.within(AMPLE), TIMED_OUT_AFTER);
        }
        assert_eq!(size.within(AMPLE), limits(1, 1));
    }

    #[test]
    fn of_large_rows_fewer_are_asked_for() {
        let mut size = FetchSize::new(MAX);
        for _ in 0..10 {
            size.answered(MAX, limits(16, 8_000_000), QUICK);
        }
        assert!((16..=17).contains(&size.within(AMPLE).rows), "{size:?}");
        assert_eq!(size.within(limits(3, 100)), limits(1, 100), "at least one");
        for _ in 0..20 {
            size.answered(MAX, limits(16, 1600), QUICK);
        }
        assert_eq!(size.within(AMPLE), MAX);
    }
}
