use std::time::Duration;

use tokio::time::Instant;

use crate::lock::Mutex;

/// The shortest distance between two lines of the same kind.
const EVERY: Duration = Duration::from_secs(10);

/// Keeps a line that could be logged for every event down to one in ten seconds, which then speaks for all of them.
#[derive(Debug, Default)]
pub struct Throttle {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    last: Option<Instant>,
    unreported: u64,
}

impl Throttle {
    /// Counts `events`; returns how many to report now, if it is time.
    pub fn report(&self, events: u64) -> Option<u64> {
        let mut state = self.state.lock();
        state.unreported += events;
        let now = Instant::now();
        if state.last.is_some_and(|last| now < last + EVERY) {
            return None;
        }
        state.last = Some(now);
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
    }
}
