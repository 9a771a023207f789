use std::time::Duration;

use tokio::time::Instant;

/// The time after the last event for which there is work.
const BUSY_FOR: Duration = Duration::from_secs(60);

/// Tells if events have come in lately.
#[derive(Debug, Default)]
pub(super) struct Work {
    events: u64,
    at: Option<Instant>,
}

impl Work {
    /// Notes the number of events that have come in since the start. True if there is work now.
    pub(super) fn note_events(&mut self, events: u64) -> bool {
        if events != self.events || self.at.is_none() {
            (self.events, self.at) = (events, Some(Instant::now()));
        }
        self.at.is_some_and(|at| at.elapsed() < BUSY_FOR)
    }
}
