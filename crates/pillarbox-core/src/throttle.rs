use std::time::Duration;

use tokio::time::Instant;

use crate::lock::Mutex;

/// The length of a window, in which a number of lines of the same kind may be logged.
const EVERY: Duration = Duration::from_secs(10);

/// Keeps a line that could be logged for every event down to one in ten seconds, or a few, of which the next one speaks for those left out.
#[derive(Debug)]
pub struct Throttle {
    lines: u32,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    began: Option<Instant>,
    /// Lines of the window so far.
    told: u32,
    unreported: u64,
}

impl Default for Throttle {
    fn default() -> Self {
        Self::lines(1)
    }
}

impl Throttle {
    /// Allows as many lines in ten seconds.
    pub fn lines(lines: u32) -> Self {
        Self { lines, state: Mutex::default() }
    }

    /// Counts `events`; returns how many to report now, if there are any and it is time.
    pub fn report(&self, events: u64) -> Option<u64> {
        let mut state = self.state.lock();
        state.unreported += events;
        if state.unreported == 0 {
            return None;
        }
        let now = Instant::now();
        if state.began.is_none_or(|began| now >= began + EVERY) {
            (state.began, state.told) = (Some(now), 0);
        }
        if state.told >= self.lines {
            return None;
        }
        state.told += 1;
        Some(std::mem::take(&mut state.unreported))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn one_line_in_ten_seconds_speaks_for_all() {
        let throttle = Throttle::default();
        assert_eq!(throttle.report(1), Some(1));
        assert_eq!((throttle.report(2), throttle.report(3)), (None, None));
        tokio::time::advance(EVERY).await;
        assert_eq!(throttle.report(4), Some(9));
        assert_eq!((throttle.report(5), throttle.report(0)), (None, None));
        tokio::time::advance(EVERY).await;
        assert_eq!([(); 2].map(|()| throttle.report(0)), [Some(5), None], "none came since");
    }

    #[tokio::test(start_paused = true)]
    async fn a_few_lines_in_ten_seconds_come_at_once_and_the_next_speaks_for_the_remainder() {
        let throttle = Throttle::lines(2);
        for _ in 0..2 {
            assert_eq!([(); 4].map(|()| throttle.report(1)).map(|told| told.is_some()), [true, true, false, false]);
            tokio::time::advance(EVERY).await;
        }
        assert_eq!((throttle.report(1), throttle.report(1)), (Some(3), Some(1)));
    }
}
