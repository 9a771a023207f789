use std::sync::atomic::{AtomicU32, Ordering};

use tokio::sync::Notify;

use crate::Failure;

/// The calls of the handler, for each event.
pub(crate) struct Calls {
    of_event: Vec<AtomicU32>,
    all: AtomicU32,
    complete: Notify,
}

impl Calls {
    pub(crate) fn new(events: u32) -> Self {
        let of_event = (0..events).map(|_| AtomicU32::new(0)).collect();
        Self { of_event, all: AtomicU32::new(0), complete: Notify::new() }
    }

    pub(crate) fn count(&self, number: u32) {
        self.of_event[number as usize].fetch_add(1, Ordering::Relaxed);
        if self.all.fetch_add(1, Ordering::Relaxed) as usize + 1 == self.of_event.len() {
            self.complete.notify_one();
        }
    }

    /// Waits for as many calls as there are events.
    pub(crate) async fn complete(&self) {
        self.complete.notified().await;
    }

    /// # Errors
    /// An event was not handled exactly once.
    pub(crate) fn check(&self) -> Result<(), Failure> {
        let wrong = self.of_event.iter().filter(|calls| calls.load(Ordering::Relaxed) != 1).count();
        if wrong > 0 {
            return Err(format!("{wrong} events were not handled exactly once").into());
        }
        Ok(())
    }
}
