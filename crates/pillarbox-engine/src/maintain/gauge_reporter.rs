use std::sync::Arc;
use std::time::Duration;

use pillarbox_core::clock::Random;
use pillarbox_core::error::StoreError;
use pillarbox_core::ownership::{Mode, NodeId};
use pillarbox_core::store::Store;
use tokio::sync::watch;
use tokio::time::Instant;

use crate::backoff::jittered;
use crate::handlers::LimitedHandlers;
use crate::observe::{Role, Telemetry};
use crate::queue::Intake;

/// The time for which a node that becomes active only delivers: to count a large backlog costs as much as to find its start.
const DELIVER_FIRST: Duration = Duration::from_secs(2);
/// So many times the interval lie between two readings while nothing is due.
const QUIET: u32 = 2;
/// Reading the table takes at most this share of the time, however many rows are pending.
const SHARE: u32 = 50;

/// Keeps the gauges, for as long as this process delivers.
///
/// A reading that fails leaves them as they were: that nothing could be read does not mean that there is nothing.
#[derive(Debug)]
pub(crate) struct GaugeReporter {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) intake: Arc<Intake>,
    pub(crate) telemetry: Arc<Telemetry>,
    pub(crate) limits: Arc<LimitedHandlers>,
    pub(crate) random: Arc<dyn Random>,
    pub(crate) interval: Duration,
    pub(crate) mode: Mode,
}

impl GaugeReporter {
    /// Runs until the outbox has stopped.
    pub(crate) async fn run(self, mut role: watch::Receiver<Role>) {
        loop {
            let now = role.borrow_and_update().clone();
            let told = async { role.changed().await.is_ok() };
            let goes_on = match now {
                Role::Active { node } => {
                    self.telemetry.meters.active();
                    tokio::select! {
                        goes_on = told => goes_on,
                        never = self.survey(&node) => never,
                    }
                }
                Role::Stopped => false,
                Role::Joining | Role::Standby { .. } | Role::Writing => told.await,
            };
            self.telemetry.meters.inactive();
            self.limits.inactive();
            if !goes_on {
                return;
            }
        }
    }

    async fn survey(&self, node: &NodeId) -> bool {
        let mut failing = false;
        self.process();
        tokio::time::sleep(DELIVER_FIRST.min(self.interval)).await;
        loop {
            self.process();
            let began = Instant::now();
            let mut interval = self.interval;
            match self.read(node).await {
                Ok(is_quiet) => {
                    failing = false;
                    interval *= if is_quiet { QUIET } else { 1 };
                }
                Err(error) => {
                    self.telemetry.meters.backlog_failed.increment(1);
                    if !failing {
                        tracing::warn!(%error, "the backlog cannot be read; its gauges stay as they are");
                    }
                    failing = true;
                }
            }
            let pause = interval.max(began.elapsed() * SHARE);
            tokio::time::sleep(jittered(pause, &*self.random)).await;
        }
    }

    /// Sets the gauges that need no question to the database.
    fn process(&self) {
        let Telemetry { meters, calls, .. } = &*self.telemetry;
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
        if self.mode == Mode::Partitioned {
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
