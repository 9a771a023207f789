use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join;
use pillarbox_core::handle::DeliveringNode;
use pillarbox_core::ownership::NodeMode;
use pillarbox_core::row::Verdict;
use pillarbox_core::store::Purgeable;
use pillarbox_core::throttle::Throttle;
use tokio::sync::{Semaphore, mpsc};
use tokio_util::sync::CancellationToken;

use super::supervisor::Supervisor;
use super::{Shared, TypePause};
use crate::claim::{OperatorChanges, OperatorChangesLoop, OrderedPoller, PassedOver, Poller, ReadCursor, ReadState};
use crate::dispatch::{Completion, CrashTracker, ParkLimit, Positions, Worker};
use crate::maintain::{Purger, ReadPointKeeper, Task};
use crate::observe::Telemetry;
use crate::ownership::{Reaper, Rebalancer};
use crate::queue::{Classes, FairShares, InFlight, KeyedQueue, Limits, ReadyQueue, Suspects, WorkQueue};
use crate::settle::{Complaints, Settler};
use crate::tenure::Tenure;

/// The signals that end the tasks of a term, in the order of its end.
#[derive(Debug, Clone, Default)]
pub(super) struct Signals {
    /// The lease is lost.
    pub(super) lost: CancellationToken,
    /// Ends claiming.
    pub(super) stop_claiming: CancellationToken,
    /// Drops running handlers.
    pub(super) abandon: CancellationToken,
    /// Ends the reports on handlers.
    pub(super) drained: CancellationToken,
    /// Ends repeated attempts to record verdicts.
    pub(super) give_up: CancellationToken,
}

/// The parts that the tasks of a term share, and the tasks made of them.
#[derive(Debug)]
pub(super) struct Parts<'a> {
    supervisor: &'a Supervisor,
    pub(super) tenure: Tenure,
    pub(super) in_flight: Arc<InFlight>,
    pub(super) crashes: Arc<CrashTracker>,
    deliverer: Arc<DeliveringNode>,
    type_pause: TypePause,
    operator_changes: Arc<OperatorChanges>,
    verdicts: mpsc::Sender<Verdict>,
    signals: Signals,
}

impl<'a> Parts<'a> {
    pub(super) fn new(
        supervisor: &'a Supervisor,
        tenure: Tenure,
        signals: Signals,
        verdicts: mpsc::Sender<Verdict>,
    ) -> Self {
        let Supervisor { shared, config, router, .. } = supervisor;
        let (telemetry, dispatch) = (&shared.telemetry, &config.dispatch);
        let deliverer = Arc::new(DeliveringNode {
            node: tenure.node.clone(),
            lost: signals.lost.clone(),
            abandoned: telemetry.calls.abandoned.clone(),
            writer: Arc::downgrade(&shared.writing),
        });
        // In order, one event after the other is handled: what stands still stops all, and what is held back would be overtaken.
        let (classes, type_pause) = match tenure.mode {
            NodeMode::Ordered => (Classes::one(), TypePause::new()),
            _ => (Classes::of_handlers(router, &deliverer), supervisor.type_pause.clone()),
        };
        let most = Limits { rows: dispatch.cold_capacity, bytes: dispatch.payload_memory };
        let shares = Arc::new(FairShares::new(classes, dispatch.workers, most));
        let queue = match tenure.mode {
            NodeMode::Partitioned => {
                let (capacity, failing) = (dispatch.cold_capacity, config.retry.failing_key);
                let (pauses, deliverer) = (Arc::clone(&shared.intake.pauses), Arc::clone(&deliverer));
                let queue = KeyedQueue::new(capacity, dispatch.workers, failing, shares, pauses, deliverer);
                WorkQueue::Keyed(Arc::new(queue))
            }
            _ => WorkQueue::Ready(Arc::new(ReadyQueue::new(dispatch.hot_capacity, dispatch.cold_capacity, shares))),
        };
        let keeps_order = matches!(tenure.mode, NodeMode::Partitioned | NodeMode::Ordered);
        let verdicts_are_awaited = keeps_order && router.has_transactions();
        let in_flight = InFlight::new(Arc::clone(&shared.intake), queue, tenure.fence(), verdicts_are_awaited);
        let in_flight = Arc::new(in_flight);
        let crashes = CrashTracker::new(Arc::clone(&shared.store), Arc::clone(&in_flight), Arc::clone(telemetry));
        let crashes = Arc::new(crashes);
        let operator_changes = OperatorChanges::new(
            Arc::clone(&shared.store),
            Arc::clone(&in_flight),
            &tenure,
            Arc::clone(&shared.telemetry.loops),
        );
        let operator_changes = Arc::new(operator_changes);
        Self { supervisor, tenure, in_flight, crashes, deliverer, type_pause, operator_changes, verdicts, signals }
    }

    pub(super) fn worker(&self) -> Worker {
        let Supervisor { shared, config, router, interceptors, random, .. } = self.supervisor;
        Worker {
            in_flight: Arc::clone(&self.in_flight),
            telemetry: Arc::clone(&shared.telemetry),
            router: Arc::clone(router),
            random: Arc::clone(random),
            policy: Arc::clone(&config.retry.policy),
            max_attempts: config.retry.max_attempts,
            unroutable: config.dispatch.unroutable,
            park_limit: Arc::new(ParkLimit::new(Arc::clone(&shared.store), config.dispatch.unroutable_dead_after)),
            handler_timeout: config.dispatch.handler_timeout,
            interceptors: interceptors.clone(),
            tenure: self.tenure.clone(),
            verdicts: self.verdicts.clone(),
            crashes: Arc::clone(&self.crashes),
            type_pause: self.type_pause.clone(),
            operator_changes: Arc::clone(&self.operator_changes),
            ending: self.signals.stop_claiming.clone(),
            node: Arc::clone(&self.deliverer),
            abandon: self.signals.abandon.clone(),
            completion: Completion {
                store: Arc::clone(&shared.store),
                open: Arc::clone(&shared.open),
                delete_done: config.settle.delete_done,
                turn: shared.store.has_one_writer().then(|| Semaphore::new(1)),
                complaints: Throttle::default(),
            },
            positions: Positions::new(config.settle.keep_positions),
            complaints: Throttle::default(),
        }
    }

    pub(super) fn settler(&self, verdicts: mpsc::Receiver<Verdict>) -> Settler {
        let Supervisor { shared, config, random, .. } = self.supervisor;
        Settler {
            store: Arc::clone(&shared.store),
            in_flight: Arc::clone(&self.in_flight),
            telemetry: Arc::clone(&shared.telemetry),
            random: Arc::clone(random),
            tenure: self.tenure.clone(),
            batch: config.settle.batch,
            delete_done: config.settle.delete_done,
            verdicts,
            give_up: self.signals.give_up.clone(),
            lost: self.signals.lost.clone(),
            history: shared.store.history(),
            complaints: Complaints::default(),
        }
    }

    /// Reports slow calls and failures until the workers are done, the last ones included.
    pub(super) fn report_calls(&self) -> impl Future<Output = ()> + use<> {
        let (telemetry, drained) = (Arc::clone(&self.supervisor.shared.telemetry), self.signals.drained.clone());
        async move {
            let Telemetry { calls, failures, .. } = &*telemetry;
            drained.run_until_cancelled(join(calls.report_slow_calls(), failures.run())).await;
        }
    }

    pub(super) fn poller(&self, queue: &Arc<ReadyQueue>) -> Poller {
        Poller {
            cursor: self.cursor(),
            in_flight: Arc::clone(&self.in_flight),
            queue: Arc::clone(queue),
            passed: PassedOver::default(),
            not_admitted: Vec::new(),
            read_passed: false,
            invalidations: self.in_flight.invalidations(),
            // As many had been counted before anything was read.
            interventions: self.tenure.interventions,
            suspects: Suspects {
                left: if self.tenure.unclean { self.supervisor.config.dispatch.cold_capacity } else { 0 },
                up_to: i64::MAX,
            },
            verdicts: self.verdicts.clone(),
            stop: self.signals.stop_claiming.clone(),
            abandon: self.signals.abandon.clone(),
        }
    }

    pub(super) fn ordered_poller(&self, queue: &Arc<KeyedQueue>) -> OrderedPoller {
        OrderedPoller {
            cursor: self.cursor(),
            in_flight: Arc::clone(&self.in_flight),
            queue: Arc::clone(queue),
            heads: self.supervisor.config.retry.failing_key.heads(),
            verdicts: self.verdicts.clone(),
            stop: self.signals.stop_claiming.clone(),
            state: ReadState::default(),
        }
    }

    fn cursor(&self) -> ReadCursor {
        let Supervisor { shared, config, random, .. } = self.supervisor;
        ReadCursor::new(
            Arc::clone(&shared.store),
            self.tenure.clone(),
            Arc::clone(&shared.telemetry),
            Arc::clone(&shared.intake.poll_schedule),
            Arc::clone(random),
            config.claim.clone(),
            self.type_pause.clone(),
        )
        .with_delete_done(config.settle.delete_done)
    }

    pub(super) fn rebalancer(&self, queue: &Arc<KeyedQueue>) -> Rebalancer {
        let Supervisor { shared, config, random, .. } = self.supervisor;
        Rebalancer {
            store: Arc::clone(&shared.store),
            node: self.tenure.node.clone(),
            in_flight: Arc::clone(&self.in_flight),
            telemetry: Arc::clone(&shared.telemetry),
            queue: Arc::clone(queue),
            random: Arc::clone(random),
            patience: config.shutdown.drain_timeout,
            lost: self.signals.lost.clone(),
        }
    }

    /// Creates the purger, if any rows are to be deleted.
    pub(super) fn purger(&self) -> Option<Purger> {
        let Supervisor { shared, config, random, .. } = self.supervisor;
        let kinds = [(Purgeable::Done, config.purge.done_after), (Purgeable::Dead, config.purge.dead_after)];
        let task = |(what, after): (Purgeable, Option<Duration>)| after.map(|older_than| Task { what, older_than });
        let tasks: Vec<Task> = kinds.into_iter().filter_map(task).collect();
        let (inbox_after, audit_after) = (config.purge.inbox_after, config.purge.audit_after);
        (!tasks.is_empty() || inbox_after.is_some() || audit_after.is_some()).then(|| Purger {
            store: Arc::clone(&shared.store),
            tasks,
            inbox_after,
            audit_after,
            interval: config.purge.interval,
            batch: config.purge.batch,
            random: Arc::clone(random),
            counters: Arc::clone(&shared.telemetry.counters),
            stop: self.signals.stop_claiming.clone(),
        })
    }

    pub(super) fn operator_changes_loop(&self) -> OperatorChangesLoop {
        OperatorChangesLoop {
            changes: Arc::clone(&self.operator_changes),
            in_flight: Arc::clone(&self.in_flight),
            random: Arc::clone(&self.supervisor.random),
        }
    }

    pub(super) fn read_point_keeper(&self) -> ReadPointKeeper {
        let Supervisor { shared, random, .. } = self.supervisor;
        ReadPointKeeper {
            store: Arc::clone(&shared.store),
            counters: Arc::clone(&shared.telemetry.counters),
            random: Arc::clone(random),
            begins_each_fetch: self.tenure.mode == NodeMode::Ordered,
        }
    }

    /// Runs a task for as long as the term claims.
    pub(super) fn while_claiming<F: Future>(&self, task: F) -> impl Future<Output = Option<F::Output>> + use<F> {
        self.signals.stop_claiming.clone().run_until_cancelled_owned(task)
    }

    /// Runs a task until the workers are done.
    pub(super) fn while_delivering<F: Future>(&self, task: F) -> impl Future<Output = Option<F::Output>> + use<F> {
        self.signals.drained.clone().run_until_cancelled_owned(task)
    }

    /// Looks up rows that were reported as committed.
    pub(super) fn verify(&self) -> impl Future<Output = ()> + use<> {
        let Shared { store, intake, .. } = &*self.supervisor.shared;
        let (store, intake) = (Arc::clone(store), Arc::clone(intake));
        async move { intake.unverified.verify(&*store, &intake).await }
    }

    pub(super) fn reaper(&self) -> Reaper {
        let Supervisor { shared, config, random, .. } = self.supervisor;
        Reaper {
            store: Arc::clone(&shared.store),
            node: self.tenure.node.clone(),
            lease: config.ownership.lease,
            random: Arc::clone(random),
            poll_schedule: Arc::clone(&shared.intake.poll_schedule),
            telemetry: Arc::clone(&shared.telemetry),
            lost: self.signals.lost.clone(),
        }
    }

    /// Releases rows that this node holds and does not deliver now.
    pub(super) fn run_releases(&self) -> impl Future<Output = ()> + use<> {
        let (store, in_flight) = (Arc::clone(&self.supervisor.shared.store), Arc::clone(&self.in_flight));
        let (node, random) = (self.tenure.node.clone(), Arc::clone(&self.supervisor.random));
        async move { in_flight.run_releases(&*store, &node, &*random).await }
    }
}
