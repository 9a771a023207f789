use std::sync::Arc;
use std::time::Duration;

use pillarbox_core::clock::Random;
use pillarbox_core::store::Store;
use tokio::time::Instant;

use crate::backoff::{Backoff, jittered};
use crate::observe::Counters;

/// The interval while this node settles events. Readers pass over what was settled since.
const INTERVAL: Duration = Duration::from_secs(2);
/// The interval where each fetch begins at the point, if [many](BUSY_EVENTS) events were settled.
const BUSY_INTERVAL: Duration = Duration::from_millis(250);
/// The number of settled events that is worth raising it sooner.
const BUSY_EVENTS: u64 = 5_000;
/// The interval while this node settles none: other nodes may, and what they settled last they had no time to raise it for.
const IDLE_INTERVAL: Duration = Duration::from_secs(60);

/// The pause after a call is so many times as long as the call, so that raising takes at most a tenth of the time.
const PAUSE_FACTOR: u32 = 10;
/// The longest pause after a call. Readers pass over what was settled for as long, so that a longer one would slow them down.
const MAX_PAUSE: Duration = Duration::from_secs(20);

/// Raises the table's read point, for as long as this node delivers.
#[derive(Debug)]
pub(crate) struct ReadPointKeeper {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) counters: Arc<Counters>,
    pub(crate) random: Arc<dyn Random>,
    /// True if each fetch begins at the point, and so passes over what was settled since it was raised.
    pub(crate) begins_each_fetch: bool,
}

impl ReadPointKeeper {
    /// Runs until it is dropped. Nothing is lost by dropping a call half-way.
    pub(crate) async fn run(self) {
        let mut failing = Backoff::default();
        let (mut settled, mut raised) = (None, Instant::now());
        // At once, since without a point each reader passes over all that was ever delivered.
        let mut wait = Duration::ZERO;
        loop {
            tokio::time::sleep(wait).await;
            wait = jittered(if self.begins_each_fetch { BUSY_INTERVAL } else { INTERVAL }, &*self.random);
            let now = self.counters.settled();
            let settled_since = settled.map(|before| now.saturating_sub(before));
            if !is_due(self.begins_each_fetch, settled_since, raised.elapsed()) {
                continue;
            }
            let began = Instant::now();
            match self.store.raise_read_point().await {
                Ok(_) => {
                    failing.end();
                    wait = wait.max((began.elapsed() * PAUSE_FACTOR).min(MAX_PAUSE));
                    // One call more after the last event: what a transaction kept back may be complete then.
                    (settled, raised) = (Some(now), Instant::now());
                }
                Err(error) => {
                    if failing.is_first() {
                        tracing::warn!(%error, "the read point cannot be raised; trying again");
                    }
                    wait = failing.next(&*self.random);
                }
            }
        }
    }
}

/// True if it is time: so much was `settled` since it was last raised, if it was, and so much time has passed.
fn is_due(begins_each_fetch: bool, settled: Option<u64>, passed: Duration) -> bool {
    match settled {
        None => true,
        Some(0) => passed >= IDLE_INTERVAL,
        Some(settled) => !begins_each_fetch || settled >= BUSY_EVENTS || passed >= INTERVAL,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_raised_at_first_while_events_are_settled_and_seldom_otherwise() {
        let table = [
            (false, None, Duration::ZERO, true),
            (false, Some(1), INTERVAL, true),
            (false, Some(0), INTERVAL, false),
            (false, Some(0), IDLE_INTERVAL, true),
            (true, Some(BUSY_EVENTS - 1), BUSY_INTERVAL, false),
            (true, Some(BUSY_EVENTS), BUSY_INTERVAL, true),
            (true, Some(1), INTERVAL, true),
            (true, Some(0), INTERVAL, false),
        ];
        for (begins_each_fetch, settled, passed, expected) in table {
            let found = is_due(begins_each_fetch, settled, passed);
            assert_eq!(found, expected, "{begins_each_fetch}, {settled:?} events in {passed:?}");
        }
    }
}
