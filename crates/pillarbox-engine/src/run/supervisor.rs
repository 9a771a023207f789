use std::sync::Arc;
use std::time::Duration;

use pillarbox_core::clock::Random;
use pillarbox_core::error::{StoreError, StoreErrorKind};
use pillarbox_core::ownership::{Acquired, Fence, NodeId, NodeMode, NodeName};
use pillarbox_core::store::{History, Interventions};
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;

use super::tasks::TaskTracker;
use super::term::{Ended, Term};
use super::vital::vital;
use super::{Config, Role, Shared, TypePause};
use crate::backoff::{Backoff, jittered};
use crate::handlers::{Interceptors, Router};
use crate::observe::ReadFigures;
use crate::ownership::{Lease, LeaseWatch};
use crate::tenure::{HistoryGuard, Tenure};

/// The number of tries of a start to get the lock of the nodes, each time for as long as the store waits for a lock: some two minutes.
const MAX_START_TRIES: u32 = 12;

/// The time that leaving may take when the database does not answer. Without it the lease just ends by itself.
const LEAVE_TIMEOUT: Duration = Duration::from_secs(2);

/// The life of a node: join, wait for its turn, serve a term, and after a lost lease join anew, until it is told to stop.
#[derive(Debug)]
pub(super) struct Supervisor {
    pub(super) shared: Arc<Shared>,
    pub(super) config: Config,
    pub(super) router: Arc<Router>,
    pub(super) interceptors: Interceptors,
    pub(super) type_pause: TypePause,
    pub(super) random: Arc<dyn Random>,
    pub(super) tasks: TaskTracker,
    pub(super) role: watch::Sender<Role>,
    pub(super) stop: CancellationToken,
    /// Ends draining before its time.
    pub(super) hurry: CancellationToken,
    /// Cancelled once the first term has opened its queue, or there will be none.
    pub(super) opened: CancellationToken,
    pub(super) mode: NodeMode,
}

/// The user's code: handlers and what runs around them.
#[derive(Debug, Default)]
pub(super) struct Handling {
    pub(super) router: Router,
    pub(super) interceptors: Interceptors,
    pub(super) type_pause: TypePause,
}

/// A registration in the database.
#[derive(Debug)]
pub(super) struct Membership {
    pub(super) node: NodeId,
    /// The moment before it was asked for: what its lease is counted from.
    pub(super) sent: Instant,
    /// The history of the database that it was got from.
    pub(super) history: History,
    /// True for a process that has lost a lease before.
    pub(super) has_lost_a_lease: bool,
    /// The number of times that operators had intervened before the node first asked for the right to deliver, if it was read.
    pub(super) interventions: Option<i64>,
}

impl Supervisor {
    pub(super) fn new(
        shared: &Arc<Shared>,
        mode: NodeMode,
        config: Config,
        handling: Handling,
        random: Arc<dyn Random>,
    ) -> Self {
        Self {
            shared: Arc::clone(shared),
            config,
            router: Arc::new(handling.router),
            interceptors: handling.interceptors,
            type_pause: handling.type_pause,
            random,
            tasks: TaskTracker::new(),
            role: watch::Sender::new(Role::Joining),
            stop: CancellationToken::new(),
            hurry: CancellationToken::new(),
            opened: CancellationToken::new(),
            mode,
        }
    }

    /// Registers this node, and asks for the right to deliver. Where a transaction of somebody else holds the lock that nodes take to
    /// join and to take over, it waits: the operator who holds it will end it, and a process manager would only start this process
    /// again.
    pub(super) async fn enter(&self) -> Result<(Membership, Option<Acquired>), StoreError> {
        let mut backoff = Backoff::default();
        let mut tries = 1;
        let membership = loop {
            match self.join().await {
                Ok(membership) => break membership,
                Err(error) if error.kind() == StoreErrorKind::Contention && tries < MAX_START_TRIES => {
                    tracing::warn!(%error, tries, max_tries = MAX_START_TRIES, "the start waits for a lock on the node table that another process holds; trying again");
                    tries += 1;
                    tokio::time::sleep(backoff.next(&*self.random)).await;
                }
                Err(error) => return Err(error),
            }
        };
        let node = membership.node.clone();
        match self.begin(membership).await {
            Ok(begun) => Ok(begun),
            Err(error) => {
                // No process runs under its name: until its lease ended, others would leave it its share.
                self.leave(&node).await;
                Err(error)
            }
        }
    }

    /// Asks for the right to deliver for the first time.
    async fn begin(&self, membership: Membership) -> Result<(Membership, Option<Acquired>), StoreError> {
        let interventions = Some(self.noted(self.shared.store.interventions().await?));
        let membership = Membership { interventions, ..membership };
        match self.acquire(&membership).await {
            Ok(acquired) => Ok((membership, Some(acquired))),
            // It is registered, and asks again once its lease is being renewed.
            Err(error) if error.kind() == StoreErrorKind::Contention => {
                tracing::warn!(%error, "ownership cannot be acquired yet; trying again");
                Ok((membership, None))
            }
            Err(error) => Err(error),
        }
    }

    /// Registers a new incarnation of this node.
    pub(super) async fn join(&self) -> Result<Membership, StoreError> {
        let sent = Instant::now();
        let ownership = &self.config.ownership;
        let name = ownership.node_name.clone().unwrap_or_else(NodeName::of_host);
        let node = NodeId::incarnate(&name, &self.shared.stamp);
        self.counted(self.shared.store.join(&node, self.mode, ownership.lease).await)?;
        // Known after the answer: a connection that joining made may have been the first to another server.
        Ok(Membership {
            node,
            sent,
            history: self.shared.store.history(),
            has_lost_a_lease: false,
            interventions: None,
        })
    }

    /// Tries to get the right to deliver. Where nodes deliver side by side, being registered is enough.
    pub(super) async fn acquire(&self, membership: &Membership) -> Result<Acquired, StoreError> {
        if self.mode.fence() != Fence::Table {
            self.role.send_replace(Role::Active { node: membership.node.clone() });
            return Ok(Acquired::Owner { epoch: 0, unclean: false });
        }
        let acquired = self.counted(self.shared.store.acquire(&membership.node).await)?;
        self.role.send_replace(match &acquired {
            Acquired::Owner { .. } => Role::Active { node: membership.node.clone() },
            Acquired::Standby { owner, .. } => Role::Standby { owner: owner.clone() },
            Acquired::Lost => Role::Joining,
        });
        Ok(acquired)
    }

    /// The same answer, and counts it if it is a failure.
    fn counted<T>(&self, answer: Result<T, StoreError>) -> Result<T, StoreError> {
        answer.inspect_err(|_| self.shared.telemetry.meters.joins_failed.increment(1))
    }

    /// Runs until stopped. Each turn of the loop is one incarnation of the node.
    pub(super) async fn run(self, first: Membership, acquired: Option<Acquired>) {
        // Nobody waits longer than this runs.
        let _opened = self.opened.clone().drop_guard();
        let mut membership = Some((first, acquired));
        let mut backoff = Backoff::default();
        while let Some((member, acquired)) = membership {
            let began = Instant::now();
            self.live(&member, acquired).await;
            // Even if it has lost its lease before it could deliver.
            self.opened.cancel();
            self.leave(&member.node).await;
            self.role.send_replace(Role::Joining);
            let rejoined = self
                .stop
                .run_until_cancelled(async {
                    self.rest(&member.node, began.elapsed(), &mut backoff).await;
                    self.rejoin().await
                })
                .await;
            membership = rejoined.map(|member| (Membership { has_lost_a_lease: true, ..member }, None));
        }
        self.role.send_replace(Role::Stopped);
    }

    /// Waits before the node joins anew, if it was a member for less than a second: then what one statement writes is not there for the next one, as
    /// behind a proxy that sends reads to a replica, or where the file of a database was replaced.
    async fn rest(&self, node: &NodeId, was_member_for: Duration, backoff: &mut Backoff) {
        if was_member_for >= Duration::from_secs(1) {
            backoff.end();
            return;
        }
        if backoff.is_first() {
            tracing::warn!(%node, "the node's registration was gone right after it joined; check that all statements reach the same database (proxy, replica, replaced file); joining again");
        }
        tokio::time::sleep(backoff.next(&*self.random)).await;
    }

    /// One incarnation: ends when it is told to stop or its lease is lost.
    async fn live(&self, member: &Membership, acquired: Option<Acquired>) {
        let lost = CancellationToken::new();
        let (store, node) = (Arc::clone(&self.shared.store), member.node.clone());
        let history_guard = Arc::new(HistoryGuard::new(store, node, member.history.clone(), lost.clone()));
        let lease = self.lease(member, &history_guard, &lost);
        // On a task of its own, so that no handler and no slow statement of this node delays a renewal.
        let sent = member.sent;
        let ended = CancellationToken::new();
        let renewing = ended.clone().run_until_cancelled_owned(async move { lease.keep(sent).await });
        self.tasks.spawn(vital("lease", lost.clone(), renewing).in_current_span());
        let watching = ended.clone().run_until_cancelled_owned(self.lease_watch(member).keep());
        self.tasks.spawn(vital("lease watch", lost.clone(), watching).in_current_span());
        let ended = ended.drop_guard();
        let turn = tokio::select! {
            turn = self.wait_for_turn(member, acquired, &history_guard) => turn,
            () = lost.cancelled() => None,
            () = self.stop.cancelled() => None,
        };
        if let Some(tenure) = turn {
            let term = Term::begin(self, tenure, lost.clone());
            // Seen from outside, a node whose lease is lost no longer delivers, whatever it still has to end.
            let shown = async {
                lost.cancelled().await;
                self.role.send_replace(Role::Joining);
                std::future::pending().await
            };
            let ended = tokio::select! {
                ended = term.serve() => ended,
                never = shown => never,
            };
            match ended {
                Ended::Stopped => tracing::info!(node = %member.node, "the outbox has stopped"),
                Ended::LeaseLost => {}
            }
        }
        drop(ended);
        self.shared.telemetry.loops.lease.clear();
    }

    /// The lease of an incarnation.
    fn lease(&self, member: &Membership, history_guard: &Arc<HistoryGuard>, lost: &CancellationToken) -> Lease {
        let Shared { store, telemetry, intake, .. } = &*self.shared;
        let intake = Arc::clone(intake);
        let queued = move || {
            let (hot, cold) = intake.depths();
            hot + cold
        };
        Lease {
            store: Arc::clone(store),
            node: member.node.clone(),
            length: self.config.ownership.lease,
            random: Arc::clone(&self.random),
            failed: telemetry.meters.renewals_failed.clone(),
            loops: Arc::clone(&telemetry.loops),
            history_guard: Arc::clone(history_guard),
            lost: lost.clone(),
            figures: ReadFigures::new(Arc::clone(telemetry), queued),
        }
    }

    /// The watch of an incarnation over the leases of the other nodes.
    fn lease_watch(&self, member: &Membership) -> LeaseWatch {
        LeaseWatch {
            store: Arc::clone(&self.shared.store),
            node: member.node.clone(),
            mode: self.mode,
            lease: self.config.ownership.lease,
            poll_schedule: Arc::clone(&self.shared.intake.poll_schedule),
            random: Arc::clone(&self.random),
        }
    }

    /// Waits until this node is the owner; `None` if its registration is gone.
    async fn wait_for_turn(
        &self,
        member: &Membership,
        mut acquired: Option<Acquired>,
        history_guard: &Arc<HistoryGuard>,
    ) -> Option<Tenure> {
        let mut backoff = Backoff::default();
        let mut stands_by_for = None;
        let mut interventions = member.interventions.filter(|_| acquired.is_some());
        loop {
            let answer = match acquired.take() {
                Some(acquired) => Ok(acquired),
                None => self.shared.telemetry.loops.join.ask(self.acquire(member)).await,
            };
            let wait = match answer {
                Ok(Acquired::Owner { epoch, unclean }) => {
                    tracing::info!(node = %member.node, epoch, previous_owner_died = unclean, mode = %self.mode, "this node delivers");
                    let interventions = match interventions {
                        Some(interventions) => interventions,
                        None => self.interventions().await,
                    };
                    let (node, history_guard) = (member.node.clone(), Arc::clone(history_guard));
                    return Some(Tenure {
                        node,
                        mode: self.mode,
                        unclean,
                        has_lost_a_lease: member.has_lost_a_lease,
                        interventions,
                        history_guard,
                    });
                }
                Ok(Acquired::Lost) => return None,
                Ok(Acquired::Standby { owner, expires_in }) => {
                    backoff.end();
                    interventions = None;
                    if stands_by_for.as_ref() != Some(&owner) {
                        tracing::info!(
                            node = %member.node, %owner, lease_ends_in = ?expires_in,
                            "standing by: another node delivers, as long as it renews its lease"
                        );
                        stands_by_for = Some(owner);
                    }
                    jittered(self.config.ownership.standby_interval, &*self.random)
                }
                Err(error) => {
                    if backoff.is_first() {
                        tracing::warn!(%error, "ownership cannot be acquired; trying again");
                    }
                    backoff.next(&*self.random)
                }
            };
            self.shared.telemetry.loops.join.sleep(wait).await;
        }
    }

    /// Takes over what is paused, before anything is delivered; returns the number of interventions.
    fn noted(&self, interventions: Interventions) -> i64 {
        let pauses = &self.shared.intake.pauses;
        pauses.set(interventions.pauses);
        pauses.set_stale(false);
        interventions.count
    }

    /// Reads how often operators have intervened, as soon as it can be read: what is read of the table afterwards knows of all of it.
    async fn interventions(&self) -> i64 {
        let mut backoff = Backoff::default();
        loop {
            match self.shared.telemetry.loops.join.ask(self.shared.store.interventions()).await {
                Ok(interventions) => return self.noted(interventions),
                Err(error) => {
                    if backoff.is_first() {
                        tracing::warn!(%error, "operator changes cannot be read; trying again");
                    }
                    self.shared.telemetry.loops.join.sleep(backoff.next(&*self.random)).await;
                }
            }
        }
    }

    async fn rejoin(&self) -> Membership {
        let mut backoff = Backoff::default();
        loop {
            match self.shared.telemetry.loops.join.ask(self.join()).await {
                Ok(member) => return member,
                Err(error) => {
                    if backoff.is_first() {
                        tracing::warn!(%error, "the outbox cannot be joined; trying again");
                    }
                    self.shared.telemetry.loops.join.sleep(backoff.next(&*self.random)).await;
                }
            }
        }
    }

    /// Frees what the node owned, so that another takes over at once. Bounded: a lease that cannot be given back ends by
    /// itself.
    async fn leave(&self, node: &NodeId) {
        match tokio::time::timeout(LEAVE_TIMEOUT, self.shared.store.leave(node)).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::warn!(%error, %node, "the node could not leave; its lease ends by itself"),
            Err(_elapsed) => tracing::warn!(%node, "leaving took too long; the node's lease ends by itself"),
        }
    }
}
