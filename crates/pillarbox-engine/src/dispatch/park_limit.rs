use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use pillarbox_core::clock::Timestamp;
use pillarbox_core::hash::guarded::HashMap;
use pillarbox_core::lock::Mutex;
use pillarbox_core::store::{Row, Store};
use tokio::time::Instant;

use crate::trusted_clock::TrustedClock;

/// An event that waits for its handler goes DEAD no sooner than this after its process met the first one of its type, however
/// old it is: a delayed event, or one of a long backlog, has as much time as a deployment takes.
const DEPLOYMENT_GRACE: Duration = Duration::from_secs(3600);
/// For how long an answer about the database's clock is good. Between two answers the process counts by itself. An answer is believed
/// once the next one agrees with it.
const MAX_CLOCK_AGE: Duration = Duration::from_secs(600);
/// The time by which the database's clock may run ahead between two answers.
const CLOCK_TOLERANCE: Duration = Duration::from_secs(60);
/// Event types that are told apart. Rows may name any number of them; those beyond count as one.
const MAX_TYPES: usize = 256;

/// Decides when an event that no handler takes has waited long enough: by its age, which the database's clock tells.
///
/// The clock is asked for at most once in ten minutes, and only while there are such events. One that has jumped ahead gives up none.
pub(crate) struct ParkLimit {
    store: Arc<dyn Store>,
    dead_after: Option<Duration>,
    /// The time at which this process met the first event of each type.
    met: Mutex<HashMap<Box<str>, Instant>>,
    clock: tokio::sync::Mutex<TrustedClock>,
    max_clock_age: Duration,
}

impl ParkLimit {
    pub(crate) fn new(store: Arc<dyn Store>, dead_after: Option<Duration>) -> Self {
        let max_clock_age = dead_after.map_or(MAX_CLOCK_AGE, |dead_after| dead_after.min(MAX_CLOCK_AGE));
        let clock = tokio::sync::Mutex::new(TrustedClock::doubting(CLOCK_TOLERANCE, max_clock_age));
        Self { store, dead_after, met: Mutex::default(), clock, max_clock_age }
    }

    /// True if the event has waited long enough. An unknown age is no reason to give it up.
    pub(crate) async fn has_passed(&self, row: &Row) -> bool {
        let Some(dead_after) = self.dead_after else { return false };
        let now = Instant::now();
        // From the first one on, so that the clock is known well when it matters.
        let time = self.time(now).await;
        if now.saturating_duration_since(self.met(row.event.event_type(), now)) < dead_after.min(DEPLOYMENT_GRACE) {
            return false;
        }
        time.is_some_and(|time| time.since(row.created_at) >= dead_after)
    }

    fn met(&self, event_type: &str, now: Instant) -> Instant {
        let mut met = self.met.lock();
        let known = if met.len() < MAX_TYPES || met.contains_key(event_type) { event_type } else { "" };
        *met.entry(known.into()).or_insert(now)
    }

    /// The database's time, if it is known and believed.
    async fn time(&self, now: Instant) -> Option<Timestamp> {
        let mut clock = self.clock.lock().await;
        let elapsed = |at: Instant| now.saturating_duration_since(at);
        if let Some((time, at, is_believed)) = clock.last()
            && elapsed(at) < self.max_clock_age
        {
            return is_believed.then(|| time.plus(elapsed(at)));
        }
        match self.store.now().await {
            Ok(time) => clock.look(time, now).then_some(time),
            Err(error) => {
                tracing::debug!(%error, "the age of an event that no handler takes is not known");
                None
            }
        }
    }
}

impl fmt::Debug for ParkLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ParkLimit").field("dead_after", &self.dead_after).finish_non_exhaustive()
    }
}
