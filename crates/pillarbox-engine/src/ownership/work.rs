use std::time::Duration;

use tokio::time::Instant;

/// For how long after the last event there is work.
const BUSY_FOR: Duration = Duration::from_secs(60);

/// Tells if events have come in lately.
#[derive(Debug, Default)]
pub(super) struct Work {
    events: u64,
    at: Option<Instant>,
}

impl Work {
    /// True if there is work now, after so many events have come in since the start.
    pub(super) fn is_recent(&mut self, events: u64) -> bool {
        if events != self.events || self.at.is_none() {
            (self.events, self.at) = (events, Some(Instant::now()));
        }
        self.at.is_some_and(|at| at.elapsed() < BUSY_FOR)
    }
}
