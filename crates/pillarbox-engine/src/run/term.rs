use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use pillarbox_core::error::StoreError;
use pillarbox_core::ownership::{Fence, NodeMode};
use tokio::sync::mpsc;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;

use super::parts::{Parts, Signals};
use super::supervisor::Supervisor;
use super::tasks::TaskTracker;
use super::vital::vital;
use crate::dispatch::CrashTracker;
use crate::observe::Loops;
use crate::queue::{InFlight, MAX_RELEASED_AT_ONCE, WorkQueue};
use crate::tenure::Tenure;

/// The time that the last verdicts may take to be recorded once the handlers have ended.
const LAST_SETTLE_TIMEOUT: Duration = Duration::from_secs(2);
/// The time that running handlers may take to end once the lease is lost. Their verdicts will be refused, and until they have
/// ended this node does not come back.
const LOST_LEASE_TIMEOUT: Duration = Duration::from_secs(1);
/// The time that tasks may take to notice that they were abandoned.
const LAST_TASKS_TIMEOUT: Duration = Duration::from_millis(500);

/// The reason why a term ended.
#[derive(Debug)]
pub(super) enum Ended {
    Stopped,
    LeaseLost,
}

/// The reason why handlers are not waited for any longer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CutShort {
    TimedOut,
    LimitPassed,
    LeaseLost,
}

impl fmt::Display for CutShort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::TimedOut => "the drain timeout has passed",
            Self::LimitPassed => "the shutdown limit has passed",
            Self::LeaseLost => "the lease is lost",
        })
    }
}

/// The time during which this node delivers: its queues and its tasks.
///
/// ```text
/// poller ──▶ queue ──▶ workers ──▶ verdicts ──▶ settler
/// ```
///
/// It ends in the order of the flow: claiming stops, the queue closes, workers drain it until the deadline, the settler
/// records what is left. Nothing of a term outlives it.
#[derive(Debug)]
pub(super) struct Term<'a> {
    supervisor: &'a Supervisor,
    tenure: Tenure,
    crashes: Arc<CrashTracker>,
    in_flight: Arc<InFlight>,
    signals: Signals,
    delivery_tasks: TaskTracker,
    settler: TaskTracker,
    settling: tokio::task::AbortHandle,
}

impl<'a> Term<'a> {
    /// Opens the queues and starts the tasks.
    pub(super) fn begin(supervisor: &'a Supervisor, tenure: Tenure, lost: CancellationToken) -> Self {
        let Supervisor { shared, config, .. } = supervisor;
        let signals = Signals { lost, ..Signals::default() };
        // Two batches: one accumulates while the other is being recorded.
        let (verdicts, received) = mpsc::channel(config.settle.batch * 2);
        let parts = Parts::new(supervisor, tenure, signals.clone(), verdicts);
        let worker = Arc::new(parts.worker());
        let settle = parts.settler(received);
        // Before any task runs: opening forgets what was known before this term.
        shared.intake.open(parts.in_flight.queue().clone(), parts.tenure.node.clone());
        supervisor.opened.cancel();

        let (delivery_tasks, settler) = (TaskTracker::new(), TaskTracker::new());
        let lost = || signals.lost.clone();
        let settling = settler.spawn(vital("settler", lost(), settle.run()).in_current_span()).abort_handle();
        for slot in shared.telemetry.calls.open(config.dispatch.workers) {
            delivery_tasks.spawn(vital("worker", lost(), Arc::clone(&worker).run(slot)).in_current_span());
        }
        settler.spawn(vital("call reports", lost(), parts.report_calls()).in_current_span());
        match parts.in_flight.queue() {
            WorkQueue::Ready(queue) => {
                delivery_tasks.spawn(vital("poller", lost(), parts.poller(queue).run()).in_current_span());
            }
            WorkQueue::Keyed(queue) => {
                delivery_tasks.spawn(vital("poller", lost(), parts.ordered_poller(queue).run()).in_current_span());
                let rebalancer = parts.while_claiming(parts.rebalancer(queue).run());
                delivery_tasks.spawn(vital("rebalancer", lost(), rebalancer).in_current_span());
            }
        }
        // As long as a call may begin.
        let changes = parts.while_delivering(parts.operator_changes_loop().run());
        settler.spawn(vital("operator changes", lost(), changes).in_current_span());
        let read_point = parts.while_claiming(parts.read_point_keeper().run());
        delivery_tasks.spawn(vital("read point keeper", lost(), read_point).in_current_span());
        if let Some(purger) = parts.purger() {
            delivery_tasks.spawn(vital("purger", lost(), purger.run()).in_current_span());
        }
        if parts.tenure.mode == NodeMode::SingleNode {
            let verifier = parts.while_claiming(parts.verify());
            delivery_tasks.spawn(vital("verifier", lost(), verifier).in_current_span());
        }
        if parts.tenure.fence() == Fence::Row {
            let reaper = parts.while_claiming(parts.reaper().run());
            delivery_tasks.spawn(vital("reaper", lost(), reaper).in_current_span());
            let releases = parts.while_claiming(parts.run_releases());
            delivery_tasks.spawn(vital("release queue", lost(), releases).in_current_span());
        }

        Self {
            supervisor,
            crashes: Arc::clone(&parts.crashes),
            in_flight: Arc::clone(&parts.in_flight),
            // The last sender of verdicts that is no task's goes with it, so that the settler ends after the workers.
            tenure: parts.tenure,
            signals,
            delivery_tasks,
            settler,
            settling,
        }
    }

    /// Delivers until told to stop or the lease is lost, then ends the tasks. Bounded by the drain timeout and a few
    /// seconds, whatever handlers and the database do.
    pub(super) async fn serve(self) -> Ended {
        let Supervisor { shared, config, stop, hurry, .. } = self.supervisor;
        let (telemetry, drain_timeout) = (&shared.telemetry, config.shutdown.drain_timeout);
        let ended = tokio::select! {
            () = self.signals.lost.cancelled() => Ended::LeaseLost,
            () = stop.cancelled() => Ended::Stopped,
        };
        shared.intake.close();
        self.signals.stop_claiming.cancel();
        let patience = if matches!(ended, Ended::LeaseLost) {
            // The queued events belong to the next owner; running handlers were told.
            self.in_flight.abandon();
            self.signals.give_up.cancel();
            drain_timeout.min(LOST_LEASE_TIMEOUT)
        } else {
            self.in_flight.close();
            drain_timeout
        };
        self.delivery_tasks.close();
        let drain = async {
            tokio::select! {
                drained = timeout(patience, self.delivery_tasks.wait()) => drained.err().map(|_elapsed| match ended {
                    Ended::Stopped => CutShort::TimedOut,
                    Ended::LeaseLost => CutShort::LeaseLost,
                }),
                () = hurry.cancelled() => Some(CutShort::LimitPassed),
                // A lease lost while draining: nothing more may begin.
                () = self.signals.lost.cancelled(), if matches!(ended, Ended::Stopped) => Some(CutShort::LeaseLost),
            }
        };
        // A lease that is lost is no crash: the next owner must not take the attempts under way for such.
        let withdraw = async {
            if matches!(ended, Ended::LeaseLost) {
                let under_way = self.crashes.under_way();
                let withdrawn = timeout(LAST_SETTLE_TIMEOUT, self.crashes.withdraw(&self.tenure, &under_way)).await;
                drop(withdrawn);
            }
        };
        let (cut_short, ()) = tokio::join!(drain, withdraw);
        if let Some(cut_short) = cut_short {
            let queued = self.in_flight.abandon();
            tracing::info!(queued, "{cut_short}; queued and running events are left to the next owner");
            self.signals.abandon.cancel();
            if timeout(LAST_TASKS_TIMEOUT, self.delivery_tasks.wait()).await.is_err() {
                tracing::warn!("a handler blocks its thread; the shutdown continues without it");
            }
        }
        self.signals.drained.cancel();
        telemetry.failures.flush();
        telemetry.calls.close();
        self.settler.close();
        if timeout(LAST_SETTLE_TIMEOUT, self.settler.wait()).await.is_err() {
            tracing::warn!("the last verdicts could not be recorded in time; their events are delivered again");
            self.signals.give_up.cancel();
            self.settling.abort();
        }
        if matches!(ended, Ended::Stopped) {
            self.release().await;
        }
        self.in_flight.clear();
        let Loops { poll, settle, rebalance, notice, .. } = &*telemetry.loops;
        for health in [poll, settle, rebalance, notice] {
            health.clear();
        }
        ended
    }

    /// Releases the rows still in memory, so that other nodes deliver them at once and do not treat this node as dead.
    async fn release(&self) {
        let rows = match self.tenure.fence() {
            Fence::Table | Fence::Partition => self.crashes.under_way(),
            Fence::Row => self.in_flight.rows(),
        };
        if rows.is_empty() {
            return;
        }
        let releasing = async {
            for rows in rows.chunks(MAX_RELEASED_AT_ONCE) {
                self.supervisor.shared.store.release(&self.tenure.node, rows).await?;
            }
            Ok::<_, StoreError>(())
        };
        match timeout(LAST_SETTLE_TIMEOUT, releasing).await {
            Ok(Ok(())) => tracing::info!(events = rows.len(), "released the rows that were not delivered"),
            Ok(Err(error)) => {
                tracing::warn!(%error, "claimed rows could not be released; other nodes reclaim them when this node's lease ends");
            }
            Err(_elapsed) => {
                tracing::warn!("releasing the rows that were not delivered took too long; other nodes reclaim them");
            }
        }
    }
}
