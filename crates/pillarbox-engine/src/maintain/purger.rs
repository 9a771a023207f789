use std::sync::Arc;
use std::time::Duration;

use pillarbox_core::clock::Random;
use pillarbox_core::error::StoreError;
use pillarbox_core::inbox;
use pillarbox_core::store::{Admin, Purge, Purgeable, Store};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::backoff::{Backoff, jittered};
use crate::observe::Counters;
use crate::trusted_clock::TrustedClock;

/// The time after which a node that has just begun looks for the first time: late enough not to slow its start, early enough
/// for a process that is restarted often.
const INITIAL_DELAY: Duration = Duration::from_secs(60);

/// The time by which the database's clock may run ahead between two purges. If it has run ahead further, nothing is purged until it has
/// stood for as long: rows that leave by a wrong time are gone for good.
const MAX_JUMP: Duration = Duration::from_secs(24 * 3600);

/// A step that takes longer is made smaller: large rows on a slow disk would take it beyond the limit of a call, again and again.
const MAX_STEP_TIME: Duration = Duration::from_secs(5);
/// After a step that is quicker, the next one may be larger again.
const MAX_TIME_TO_GROW: Duration = Duration::from_secs(1);
/// The time between two lines of the log about a purge that goes on failing.
const LOG_INTERVAL: Duration = Duration::from_secs(3600);
/// After so many failures in a row, each with a smaller step, the size is not what ails the database.
const MAX_SMALLER_STEPS: u32 = 2;

/// Deletes all rows that `step` and those after it find, each step in a transaction of its own. Calls `progress` after each with
/// the number of rows deleted so far, and returns it at the end. Steps are smaller where they take long.
///
/// # Errors
/// The database's; what was deleted by then stays deleted.
pub async fn purge<S: Admin + ?Sized>(
    store: &S,
    mut step: Purge,
    mut progress: impl FnMut(u64) + Send,
) -> Result<u64, StoreError> {
    let (mut removed, mut failed, most) = (0, 0, step.limit);
    loop {
        let began = Instant::now();
        let purged = store.purge(&step).await;
        let (before, took) = (step.limit, began.elapsed());
        step.limit = next_limit(before, most, took);
        let purged = match purged {
            // It has run out of time, and a smaller one may not.
            Err(_) if step.limit < before && failed < MAX_SMALLER_STEPS => {
                failed += 1;
                tokio::time::sleep(MAX_STEP_TIME).await;
                continue;
            }
            purged => purged?,
        };
        failed = 0;
        removed += purged.removed;
        progress(removed);
        match purged.next {
            Some(next) => step.above = next,
            None => return Ok(removed),
        }
        // Half of the time is left to those who deliver.
        tokio::time::sleep(began.elapsed()).await;
    }
}

/// The rows of the step after one of `limit` that took so long, and failed or not.
fn next_limit(limit: usize, most: usize, took: Duration) -> usize {
    if took > MAX_STEP_TIME {
        (limit / 2).max(1)
    } else if took < MAX_TIME_TO_GROW {
        limit.saturating_mul(2).min(most)
    } else {
        limit
    }
}

/// One kind of events to purge, again and again.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Task {
    pub(crate) what: Purgeable,
    pub(crate) older_than: Duration,
}

/// Purges in the background.
#[derive(Debug)]
pub(crate) struct Purger {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) tasks: Vec<Task>,
    /// The age at which messages leave the inbox.
    pub(crate) inbox_after: Option<Duration>,
    /// The age at which entries leave the audit table.
    pub(crate) audit_after: Option<Duration>,
    pub(crate) interval: Duration,
    pub(crate) batch: usize,
    pub(crate) random: Arc<dyn Random>,
    pub(crate) counters: Arc<Counters>,
    pub(crate) stop: CancellationToken,
}

impl Purger {
    /// Runs until it is told to stop. Nothing is lost by dropping a purge half-way.
    pub(crate) async fn run(self) {
        let stop = self.stop.clone();
        stop.run_until_cancelled(self.purge_for_ever()).await;
    }

    async fn purge_for_ever(&self) {
        let mut backoff = Backoff::default();
        let mut wait = jittered(INITIAL_DELAY.min(self.interval), &*self.random);
        let [mut events, mut inbox, mut audit] = <[Failing; 3]>::default();
        let mut clock = TrustedClock::new(MAX_JUMP, MAX_JUMP);
        // A purge that finds no clock to look at fails by itself, and says so.
        let _ = self.is_believed(&mut clock).await;
        loop {
            tokio::time::sleep(wait).await;
            if matches!(self.is_believed(&mut clock).await, Ok(false)) {
                tracing::warn!(
                    "the database's clock has run ahead by more than a day; nothing is purged until it has stood for a day"
                );
                wait = jittered(self.interval, &*self.random);
                continue;
            }
            let purged = self.purge_once().await;
            self.tell(&mut events, "old events", &purged);
            wait = if purged.is_ok() {
                backoff.end();
                jittered(self.interval, &*self.random)
            } else {
                backoff.next(&*self.random)
            };
            // By themselves: a node that may not delete from these tables, as its privileges are of a release before, purges its events all
            // the same.
            self.tell(&mut inbox, "old messages of the inbox", &self.purge_inbox().await);
            self.tell(&mut audit, "old entries of the audit table", &self.purge_audit().await);
        }
    }

    async fn is_believed(&self, clock: &mut TrustedClock) -> Result<bool, StoreError> {
        let time = self.store.now().await?;
        Ok(clock.look(time, Instant::now()))
    }

    /// Counts a failure, and logs what there is to say of it, or of the end of several.
    fn tell(&self, failing: &mut Failing, what: &str, purged: &Result<(), StoreError>) {
        if purged.is_err() {
            self.counters.purge_failed.increment(1);
        }
        match (failing.news(purged.is_err(), Instant::now()), purged) {
            (News::Begins, Err(error)) => tracing::warn!(%error, "{what} cannot be purged; trying again"),
            (News::GoesOn(failing_for), Err(error)) => {
                tracing::warn!(%error, ?failing_for, "{what} still cannot be purged, and the table grows; trying again");
            }
            (News::Ends(failed_for), _) => tracing::info!(?failed_for, "{what} are purged again"),
            (News::None | News::Begins | News::GoesOn(_), _) => {}
        }
    }

    async fn purge_audit(&self) -> Result<(), StoreError> {
        let Some(older_than) = self.audit_after else { return Ok(()) };
        let mut entries = 0;
        loop {
            let removed = self.store.purge_actions(older_than, self.batch).await?;
            entries += removed;
            if removed < self.batch as u64 {
                break;
            }
        }
        if entries > 0 {
            tracing::info!(entries, "purged old entries of the audit table");
        }
        Ok(())
    }

    async fn purge_inbox(&self) -> Result<(), StoreError> {
        let Some(older_than) = self.inbox_after else { return Ok(()) };
        let messages = inbox::purge(&*self.store, None, older_than, self.batch, |_| ()).await?;
        if messages > 0 {
            tracing::info!(messages, "purged old messages of the inbox");
        }
        Ok(())
    }

    async fn purge_once(&self) -> Result<(), StoreError> {
        for Task { what, older_than } in &self.tasks {
            let mut before = 0;
            let count = |removed: u64| {
                Counters::add(&self.counters.purged, removed - before);
                before = removed;
            };
            let removed = purge(&*self.store, Purge::new(*what, *older_than, self.batch), count).await?;
            if removed > 0 {
                tracing::info!(events = removed, ?what, "purged old events");
            }
        }
        Ok(())
    }
}

/// Failures in a row of one kind of purge.
#[derive(Debug, Default)]
struct Failing {
    /// When the first one was, and when they were last logged.
    since: Option<(Instant, Instant)>,
}

/// The log line after a purge.
#[derive(Debug, PartialEq, Eq)]
enum News {
    None,
    Begins,
    /// It has failed for so long.
    GoesOn(Duration),
    /// It had failed for so long.
    Ends(Duration),
}

impl Failing {
    fn news(&mut self, failed: bool, now: Instant) -> News {
        match (&mut self.since, failed) {
            (None, false) => News::None,
            (None, true) => {
                self.since = Some((now, now));
                News::Begins
            }
            (Some((first, _)), false) => {
                let failed_for = now.duration_since(*first);
                self.since = None;
                News::Ends(failed_for)
            }
            (Some((_, logged)), true) if now.duration_since(*logged) < LOG_INTERVAL => News::None,
            (Some((first, logged)), true) => {
                *logged = now;
                News::GoesOn(now.duration_since(*first))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_purge_that_goes_on_failing_is_told_of_once_an_hour_and_its_end_is_too() {
        let (start, mut failing) = (Instant::now(), Failing::default());
        let minutes = |minutes: u64| Duration::from_secs(60 * minutes);
        for (at, failed, news) in [
            (0, false, News::None),
            (1, true, News::Begins),
            (2, true, News::None),
            (60, true, News::None),
            (61, true, News::GoesOn(minutes(60))),
            (120, true, News::None),
            (130, true, News::GoesOn(minutes(129))),
            (131, false, News::Ends(minutes(130))),
            (132, false, News::None),
            (133, true, News::Begins),
        ] {
            assert_eq!(failing.news(failed, start + minutes(at)), news, "after {at} minutes");
        }
    }

    #[test]
    fn steps_that_take_long_get_smaller_and_grow_again() {
        let second = Duration::from_secs;
        for (limit, took, next) in [
            (2000, second(30), 1000),
            (1, second(30), 1),
            (1000, second(3), 1000),
            (500, Duration::from_millis(100), 1000),
            (1500, Duration::ZERO, 2000),
        ] {
            assert_eq!(next_limit(limit, 2000, took), next, "{limit} in {took:?}");
        }
    }
}
