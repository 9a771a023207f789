use std::sync::Arc;
use std::time::Duration;

use pillarbox_core::clock::Random;
use pillarbox_core::error::StoreError;
use pillarbox_core::lock::Mutex;
use pillarbox_core::ownership::{NodeId, NodeMode};
use pillarbox_core::store::Store;
use tokio::sync::watch;
use tokio::time::{Instant, sleep};

use crate::backoff::jittered;
use crate::handlers::LimitedHandlers;
use crate::observe::{Role, Telemetry};
use crate::queue::Intake;

/// The time for which a node that becomes active only delivers: to count a large backlog costs as much as to find its start.
const INITIAL_DELAY: Duration = Duration::from_secs(2);
/// So many times the interval lie between two readings while nothing is due.
const IDLE_INTERVAL_FACTOR: u32 = 2;
/// Reading the table takes at most this share of the time in the long run, however many rows are pending.
const PAUSE_FACTOR: u32 = 50;

/// Keeps the gauges, for as long as this process delivers.
///
/// A reading that fails leaves the gauges of the table as they were: that nothing could be read does not mean that there is nothing. Those of this
/// process do not wait for it.
#[derive(Debug)]
pub(crate) struct GaugeReporter {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) intake: Arc<Intake>,
    pub(crate) telemetry: Arc<Telemetry>,
    pub(crate) limits: Arc<LimitedHandlers>,
    pub(crate) random: Arc<dyn Random>,
    pub(crate) interval: Duration,
    pub(crate) mode: NodeMode,
}

impl GaugeReporter {
    /// Runs until the outbox has stopped.
    pub(crate) async fn run(self, mut role: watch::Receiver<Role>) {
        loop {
            let now = role.borrow_and_update().clone();
            let changed = async { role.changed().await.is_ok() };
            let goes_on = match now {
                Role::Active { node } => {
                    tokio::select! {
                        goes_on = changed => goes_on,
                        never = self.survey(&node) => never,
                    }
                }
                Role::Stopped => {
                    self.telemetry.meters.inactive();
                    self.telemetry.meters.never_delivers();
                    self.limits.inactive();
                    return;
                }
                Role::Joining | Role::Standby { .. } | Role::Writing => changed.await,
            };
            self.telemetry.meters.inactive();
            self.limits.inactive();
            if !goes_on {
                return;
            }
        }
    }

    /// Keeps the gauges until it is dropped.
    async fn survey(&self, node: &NodeId) -> bool {
        // Of a process that has just become active nothing is older than that.
        let read_at = Mutex::new(Instant::now());
        tokio::select! {
            never = self.report_process(&read_at) => never,
            never = self.read_again_and_again(node, &read_at) => never,
        }
    }

    async fn report_process(&self, read_at: &Mutex<Instant>) -> bool {
        loop {
            let read_at = *read_at.lock();
            self.process(read_at.elapsed());
            sleep(self.interval).await;
        }
    }

    async fn read_again_and_again(&self, node: &NodeId, read_at: &Mutex<Instant>) -> bool {
        let (mut failing_since, mut in_trouble) = (None, 0_u32);
        sleep(INITIAL_DELAY.min(self.interval)).await;
        loop {
            let began = Instant::now();
            let answer = self.read(node).await;
            let took = began.elapsed();
            let is_in_trouble = answer.is_err() || took.saturating_mul(PAUSE_FACTOR) > self.interval;
            in_trouble = if is_in_trouble { in_trouble.saturating_add(1) } else { 0 };
            let mut interval = self.interval;
            match answer {
                Ok(is_quiet) => {
                    *read_at.lock() = Instant::now();
                    if let Some(since) = failing_since.take() {
                        tracing::info!(failed_for = ?began.duration_since(since), "the backlog can be read again");
                    }
                    interval *= if is_quiet { IDLE_INTERVAL_FACTOR } else { 1 };
                }
                Err(error) => {
                    self.telemetry.meters.backlog_failed.increment(1);
                    if failing_since.is_none() {
                        tracing::warn!(%error, "the backlog cannot be read; its gauges stay as they are");
                    }
                    failing_since.get_or_insert(began);
                }
            }
            sleep(jittered(pause(interval, took, in_trouble), &*self.random)).await;
        }
    }

    /// Sets the gauges that need no question to the database. Those of the table are so old.
    fn process(&self, age: Duration) {
        let Telemetry { meters, calls, .. } = &*self.telemetry;
        meters.active();
        meters.backlog_age.set(age);
        meters.memory(self.intake.depths(), self.intake.in_memory());
        meters.calls(calls.busy(Instant::now()));
        meters.paused.report(&self.intake.pauses.list());
        self.limits.report();
    }

    /// True if nothing is due.
    async fn read(&self, node: &NodeId) -> Result<bool, StoreError> {
        let meters = &self.telemetry.meters;
        let backlog = self.store.backlog().await?;
        meters.backlog(&backlog);
        meters.nodes(&self.store.nodes().await?, node, self.mode);
        if self.mode == NodeMode::Partitioned {
            meters.partitions(&self.store.partitions().await?);
        }
        let pauses = self.store.pauses().await?;
        meters.paused.report(&pauses);
        if pauses != self.intake.pauses.list() {
            // A node that has nothing to do has not asked.
            self.intake.intervened.notify_one();
        }
        Ok(backlog.due == 0)
    }
}

/// The pause after a reading that took so long, the last one of so many in a row that have failed or taken long. It may have met a lock that is
/// gone now, so the table is soon read again, and then less and less often.
fn pause(interval: Duration, took: Duration, in_trouble: u32) -> Duration {
    let rare = interval.max(took.saturating_mul(PAUSE_FACTOR));
    rare.min(interval.saturating_mul(2_u32.saturating_pow(in_trouble)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reading_that_fails_or_takes_long_is_soon_repeated_and_then_rarely() {
        let seconds = Duration::from_secs;
        for (took, in_trouble, expected) in [
            (seconds(0), 0, 15),
            (seconds(0), 9, 15),
            (seconds(2), 1, 30),
            (seconds(2), 2, 60),
            (seconds(2), 3, 100),
            (seconds(30), 1, 30),
            (seconds(30), 40, 1500),
        ] {
            assert_eq!(pause(seconds(15), took, in_trouble), seconds(expected), "{took:?}, {in_trouble}");
        }
    }
}
