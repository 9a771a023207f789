use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join;
use pillarbox_core::handle::DeliveringNode;
use pillarbox_core::ownership::{Fence, Mode};
use pillarbox_core::store::{History, Purgeable, Store};
use tokio::sync::mpsc;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;

use super::Gate;
use super::supervisor::Supervisor;
use super::tasks::TaskTracker;
use crate::claim::{Claimer, FetchSize, Horizon, PassedOver, Place, Reader};
use crate::dispatch::{Suspects, Unknown, Worker};
use crate::gate::Seen;
use crate::maintain::{Purger, Task};
use crate::observe::Pulse;
use crate::ownership::{Caretaker, Sharer};
use crate::queue::{Classes, Feed, Intake, KeyLanes, Lanes, Limits, Shares};
use crate::settle::{Complaints, Cooling, Settler};
use crate::tenure::Tenure;

/// The time that the last verdicts may take to be recorded once the handlers have ended.
const LAST_SETTLE: Duration = Duration::from_secs(2);
/// The time that running handlers may take to end once the lease is lost. Their verdicts will be refused, and until they have
/// ended this node does not come back.
const LOST_GRACE: Duration = Duration::from_secs(1);
/// The time that tasks may take to notice that they were abandoned.
const LAST_TASKS: Duration = Duration::from_millis(500);

/// Why a term ended.
#[derive(Debug)]
pub(super) enum Ended {
    Stopped,
    LeaseLost,
}

/// The time during which this node delivers: its queues and its tasks.
///
/// ```text
/// claimer ──▶ lanes ──▶ workers ──▶ verdicts ──▶ settler
/// ```
///
/// It ends in the order of the flow: claiming stops, the lanes close, workers drain them until the deadline, the settler
/// records what is left. Nothing of a term outlives it.
#[derive(Debug)]
pub(super) struct Term {
    store: Arc<dyn Store>,
    tenure: Tenure,
    suspects: Arc<Suspects>,
    intake: Arc<Intake>,
    feed: Feed,
    drain_timeout: Duration,
    stop: CancellationToken,
    hurry: CancellationToken,
    lost: CancellationToken,
    /// Ends claiming.
    stop_claiming: CancellationToken,
    /// Drops running handlers.
    abandon: CancellationToken,
    /// Ends repeated attempts to record verdicts.
    give_up: CancellationToken,
    /// Ends watching the handlers.
    drained: CancellationToken,
    deliverers: TaskTracker,
    settler: TaskTracker,
    settling: tokio::task::AbortHandle,
}

impl Term {
    /// Opens the queues and starts the tasks.
    pub(super) fn begin(supervisor: &Supervisor, tenure: Tenure, lost: CancellationToken) -> Self {
        let Supervisor { shared, config, router, interceptors, random, .. } = supervisor;
        let intake = Arc::clone(&shared.intake);
        let dispatch = &config.dispatch;
        let deliverer = Arc::new(DeliveringNode {
            node: tenure.node.clone(),
            lost: lost.clone(),
            abandoned: intake.calls.abandoned.clone(),
        });
        // In order, one event after the other is handled: what stands still stops all.
        let classes =
            if tenure.mode == Mode::Ordered { Classes::one() } else { Classes::of_handlers(router, &deliverer) };
        let most = Limits { rows: dispatch.cold_capacity, bytes: dispatch.payload_memory };
        let shares = Arc::new(Shares::new(classes, dispatch.workers, most));
        let size = FetchSize::new(Limits { rows: config.claim.batch, bytes: usize::MAX });
        let feed = match tenure.mode {
            Mode::Partitioned => {
                let (capacity, failing) = (dispatch.cold_capacity, config.retry.failing_key);
                let lanes = KeyLanes::new(capacity, dispatch.workers, failing, shares, Arc::clone(&deliverer));
                Feed::Keys(Arc::new(lanes))
            }
            _ => Feed::Lanes(Arc::new(Lanes::new(dispatch.hot_capacity, dispatch.cold_capacity, shares))),
        };
        // Two batches: one accumulates while the other is being recorded.
        let (sender, receiver) = mpsc::channel(config.settle.batch * 2);
        let (stop_claiming, abandon, give_up, drained) =
            (CancellationToken::new(), CancellationToken::new(), CancellationToken::new(), CancellationToken::new());
        let (deliverers, settler) = (TaskTracker::new(), TaskTracker::new());
        let suspects = Arc::new(Suspects::new(Arc::clone(&shared.store), Arc::clone(&intake)));
        // One event after the other: what is held back would be overtaken.
        let gate = if tenure.mode == Mode::Ordered { Gate::new() } else { supervisor.gate.clone() };
        let worker = Arc::new(Worker {
            feed: feed.clone(),
            intake: Arc::clone(&intake),
            router: Arc::clone(router),
            random: Arc::clone(random),
            policy: Arc::clone(&config.retry.policy),
            max_attempts: config.retry.max_attempts,
            unroutable: config.dispatch.unroutable,
            unknown: Arc::new(Unknown::new(Arc::clone(&shared.store), config.dispatch.unroutable_dead_after)),
            handler_timeout: config.dispatch.handler_timeout,
            interceptors: interceptors.clone(),
            tenure: tenure.clone(),
            verdicts: sender.clone(),
            suspects: Arc::clone(&suspects),
            gate: gate.clone(),
            meters: Arc::clone(&intake.meters),
            ending: stop_claiming.clone(),
            deliverer,
            abandon: abandon.clone(),
        });
        let settle = Settler {
            store: Arc::clone(&shared.store),
            intake: Arc::clone(&intake),
            random: Arc::clone(random),
            tenure: tenure.clone(),
            batch: config.settle.batch,
            delete_done: config.settle.delete_done,
            feed: feed.clone(),
            verdicts: receiver,
            give_up: give_up.clone(),
            lost: lost.clone(),
            cooling: Cooling::default(),
            history: shared.store.history(),
            complaints: Complaints::default(),
        };
        // Before any task runs: opening forgets what was known before this term.
        intake.open(feed.clone(), tenure.node.clone());
        let settling = settler.spawn(settle.run().in_current_span()).abort_handle();
        for slot in intake.calls.open(config.dispatch.workers) {
            deliverers.spawn(Arc::clone(&worker).run(slot).in_current_span());
        }
        // Until the workers are done: what they end with is to be told as well.
        let (watched, ended) = (Arc::clone(&intake), drained.clone());
        let watch = async move {
            let Intake { calls, failures, .. } = &*watched;
            ended.run_until_cancelled(join(calls.watch(), failures.run())).await;
        };
        settler.spawn(watch.in_current_span());
        match &feed {
            Feed::Lanes(lanes) => {
                let claimer = Claimer {
                    store: Arc::clone(&shared.store),
                    intake: Arc::clone(&intake),
                    lanes: Arc::clone(lanes),
                    random: Arc::clone(random),
                    config: config.claim.clone(),
                    gate,
                    seen: Seen::default(),
                    horizon: Horizon::default(),
                    history: History::default(),
                    size,
                    passed: PassedOver::default(),
                    read_passed: false,
                    in_vain: None,
                    suspects: if tenure.unclean { dispatch.cold_capacity } else { 0 },
                    suspects_up_to: i64::MAX,
                    tenure: tenure.clone(),
                    verdicts: sender,
                    stop: stop_claiming.clone(),
                };
                deliverers.spawn(claimer.run().in_current_span());
            }
            Feed::Keys(lanes) => {
                let reader = Reader {
                    store: Arc::clone(&shared.store),
                    intake: Arc::clone(&intake),
                    lanes: Arc::clone(lanes),
                    random: Arc::clone(random),
                    config: config.claim.clone(),
                    tenure: tenure.clone(),
                    heads: config.retry.failing_key.heads(),
                    gate,
                    verdicts: sender,
                    stop: stop_claiming.clone(),
                    place: Place::default(),
                    size,
                };
                deliverers.spawn(reader.run().in_current_span());
                let sharer = Sharer {
                    store: Arc::clone(&shared.store),
                    node: tenure.node.clone(),
                    intake: Arc::clone(&intake),
                    lanes: Arc::clone(lanes),
                    random: Arc::clone(random),
                    patience: config.shutdown.drain_timeout,
                    lost: lost.clone(),
                    stop: stop_claiming.clone(),
                };
                deliverers.spawn(sharer.run().in_current_span());
            }
        }
        if let Some(purger) = purger(supervisor, stop_claiming.clone()) {
            deliverers.spawn(purger.run().in_current_span());
        }
        if tenure.mode == Mode::SingleNode {
            let (store, intake, stop) = (Arc::clone(&shared.store), Arc::clone(&intake), stop_claiming.clone());
            let verify = async move {
                stop.run_until_cancelled(intake.unverified.verify(&*store, &intake)).await;
            };
            deliverers.spawn(verify.in_current_span());
        }
        if tenure.fence() == Fence::Row {
            let caretaker = Caretaker {
                store: Arc::clone(&shared.store),
                node: tenure.node.clone(),
                lease: config.ownership.lease,
                random: Arc::clone(random),
                intake: Arc::clone(&intake),
                lost: lost.clone(),
                stop: stop_claiming.clone(),
            };
            deliverers.spawn(caretaker.run().in_current_span());
            let (store, intake, node) = (Arc::clone(&shared.store), Arc::clone(&intake), tenure.node.clone());
            let (random, stop) = (Arc::clone(random), stop_claiming.clone());
            let give_back = async move {
                let Intake { surplus, registry, lookout, .. } = &*intake;
                stop.run_until_cancelled(surplus.give_back(&*store, &node, registry, lookout, &*random)).await;
            };
            deliverers.spawn(give_back.in_current_span());
        }

        Self {
            store: Arc::clone(&shared.store),
            tenure,
            suspects,
            intake,
            feed,
            drain_timeout: config.shutdown.drain_timeout,
            stop: supervisor.stop.clone(),
            hurry: supervisor.hurry.clone(),
            lost,
            stop_claiming,
            abandon,
            give_up,
            drained,
            deliverers,
            settler,
            settling,
        }
    }

    /// Delivers until told to stop or the lease is lost, then ends the tasks. Bounded by the drain timeout and a few
    /// seconds, whatever handlers and the database do.
    pub(super) async fn serve(self) -> Ended {
        let ended = tokio::select! {
            () = self.lost.cancelled() => Ended::LeaseLost,
            () = self.stop.cancelled() => Ended::Stopped,
        };
        self.intake.close();
        self.stop_claiming.cancel();
        let patience = if matches!(ended, Ended::LeaseLost) {
            // What is queued belongs to the next owner; handlers that run were told.
            self.feed.abandon();
            self.give_up.cancel();
            self.drain_timeout.min(LOST_GRACE)
        } else {
            self.feed.close();
            self.drain_timeout
        };
        self.deliverers.close();
        let drain = async {
            tokio::select! {
                drained = timeout(patience, self.deliverers.wait()) => drained.is_ok(),
                () = self.hurry.cancelled() => false,
                // A lease lost while draining: nothing more may begin.
                () = self.lost.cancelled(), if matches!(ended, Ended::Stopped) => false,
            }
        };
        // A lease that is lost is no crash: the next owner must not take the attempts under way for such.
        let withdraw = async {
            if matches!(ended, Ended::LeaseLost) {
                let under_way = self.suspects.under_way();
                let withdrawn = timeout(LAST_SETTLE, self.suspects.withdraw(&self.tenure, &under_way)).await;
                drop(withdrawn);
            }
        };
        let (drained, ()) = tokio::join!(drain, withdraw);
        if !drained {
            let queued = self.feed.abandon();
            tracing::info!(queued, "time is up for what is queued and running; it is left to the next owner");
            self.abandon.cancel();
            if timeout(LAST_TASKS, self.deliverers.wait()).await.is_err() {
                tracing::warn!("a handler blocks its thread; it is no longer waited for");
            }
        }
        self.drained.cancel();
        self.intake.failures.flush();
        self.intake.calls.close();
        self.settler.close();
        if timeout(LAST_SETTLE, self.settler.wait()).await.is_err() {
            tracing::warn!("the last verdicts could not be recorded in time; their events are delivered again");
            self.give_up.cancel();
            self.settling.abort();
        }
        if matches!(ended, Ended::Stopped) {
            self.release().await;
        }
        self.intake.registry.clear();
        let Pulse { look, settle, share, .. } = &*self.intake.pulse;
        for beat in [look, settle, share] {
            beat.clear();
        }
        ended
    }

    /// Gives back what is still held, so that another node delivers it at once and does not take this one for dead.
    async fn release(&self) {
        let held = match self.tenure.fence() {
            Fence::Table | Fence::Partition => self.suspects.under_way(),
            Fence::Row => self.intake.registry.held_rows(),
        };
        if held.is_empty() {
            return;
        }
        match timeout(LAST_SETTLE, self.store.release(&self.tenure.node, &held)).await {
            Ok(Ok(())) => tracing::info!(events = held.len(), "gave back what was not delivered"),
            Ok(Err(error)) => {
                tracing::warn!(%error, "what was not delivered could not be given back; it is freed by others");
            }
            Err(_elapsed) => tracing::warn!("giving back what was not delivered took too long; it is freed by others"),
        }
    }
}

/// Creates the purger, if any rows are to be deleted.
fn purger(supervisor: &Supervisor, stop: CancellationToken) -> Option<Purger> {
    let config = &supervisor.config.purge;
    let kinds = [(Purgeable::Done, config.done_after), (Purgeable::Dead, config.dead_after)];
    let task = |(what, after): (Purgeable, Option<Duration>)| after.map(|older_than| Task { what, older_than });
    let tasks: Vec<Task> = kinds.into_iter().filter_map(task).collect();
    (!tasks.is_empty()).then(|| Purger {
        store: Arc::clone(&supervisor.shared.store),
        tasks,
        interval: config.interval,
        batch: config.batch,
        random: Arc::clone(&supervisor.random),
        counters: Arc::clone(&supervisor.shared.intake.counters),
        stop,
    })
}
