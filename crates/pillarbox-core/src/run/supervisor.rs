use std::sync::Arc;

use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::Instrument as _;

use super::term::{Ended, Term};
use super::{Config, Gate, Role, Shared};
use crate::clock::Random;
use crate::error::StoreError;
use crate::handle::{Interceptors, Router};
use crate::ownership::{Acquired, Fence, Lease, Mode, NodeId, Tenure};
use crate::retry::{Pause, jittered};

/// How long leaving may take when the database does not answer. Without it the lease just ends by itself.
const LEAVE_TIMEOUT: std::time::Duration = std::time::Duration::from_secs(2);

/// The life of a node: join, wait for its turn, serve a term, and after a lost lease join anew, until it is told to stop.
#[derive(Debug)]
pub(super) struct Supervisor {
    pub(super) shared: Arc<Shared>,
    pub(super) config: Config,
    pub(super) router: Arc<Router>,
    pub(super) interceptors: Interceptors,
    pub(super) gate: Gate,
    pub(super) random: Arc<dyn Random>,
    pub(super) tasks: TaskTracker,
    pub(super) role: watch::Sender<Role>,
    pub(super) stop: CancellationToken,
    /// Ends draining before its time.
    pub(super) hurry: CancellationToken,
    pub(super) mode: Mode,
}

/// The user's code: handlers and what runs around them.
#[derive(Debug, Default)]
pub(super) struct Handling {
    pub(super) router: Router,
    pub(super) interceptors: Interceptors,
    pub(super) gate: Gate,
}

/// A registration in the database.
#[derive(Debug)]
pub(super) struct Membership {
    pub(super) node: NodeId,
    /// The moment before it was asked for: what its lease is counted from.
    pub(super) sent: Instant,
}

impl Supervisor {
    pub(super) fn new(
        shared: &Arc<Shared>,
        mode: Mode,
        config: Config,
        handling: Handling,
        random: Arc<dyn Random>,
    ) -> Self {
        Self {
            shared: Arc::clone(shared),
            config,
            router: Arc::new(handling.router),
            interceptors: handling.interceptors,
            gate: handling.gate,
            random,
            tasks: TaskTracker::new(),
            role: watch::Sender::new(Role::Joining),
            stop: CancellationToken::new(),
            hurry: CancellationToken::new(),
            mode,
        }
    }

    /// Registers a new incarnation of this node.
    pub(super) async fn join(&self) -> Result<NodeId, StoreError> {
        let ownership = &self.config.ownership;
        let node = NodeId::incarnate(&ownership.node_name, &self.shared.stamp);
        self.shared.store.join(&node, self.mode, ownership.lease).await?;
        Ok(node)
    }

    /// Tries to get the right to deliver. Where nodes deliver side by side, being registered is enough.
    pub(super) async fn acquire(&self, membership: &Membership) -> Result<Acquired, StoreError> {
        if self.mode.fence() != Fence::Table {
            self.role.send_replace(Role::Active { node: membership.node.clone() });
            return Ok(Acquired::Owner { epoch: 0, unclean: false });
        }
        let acquired = self.shared.store.acquire(&membership.node).await?;
        self.role.send_replace(match &acquired {
            Acquired::Owner { .. } => Role::Active { node: membership.node.clone() },
            Acquired::Standby { owner, .. } => Role::Standby { owner: owner.clone() },
            Acquired::Lost => Role::Joining,
        });
        Ok(acquired)
    }

    /// Runs until stopped. Each turn of the loop is one incarnation of the node.
    pub(super) async fn run(self, first: Membership, acquired: Acquired) {
        let mut membership = Some((first, Some(acquired)));
        while let Some((member, acquired)) = membership {
            self.live(&member, acquired).await;
            self.leave(&member.node).await;
            self.role.send_replace(Role::Joining);
            membership = self.stop.run_until_cancelled(self.rejoin()).await.map(|member| (member, None));
        }
        self.role.send_replace(Role::Stopped);
    }

    /// One incarnation: ends when it is told to stop or its lease is lost.
    async fn live(&self, member: &Membership, acquired: Option<Acquired>) {
        let lost = CancellationToken::new();
        let lease = Lease {
            store: Arc::clone(&self.shared.store),
            node: member.node.clone(),
            length: self.config.ownership.lease,
            random: Arc::clone(&self.random),
            failed: self.shared.intake.meters.renewals_failed.clone(),
            pulse: Arc::clone(&self.shared.intake.pulse),
            lost: lost.clone(),
        };
        // On a task of its own, so that no handler and no slow statement of this node delays a renewal.
        let sent = member.sent;
        let ended = CancellationToken::new();
        let renewing = ended.clone();
        self.tasks.spawn(async move { renewing.run_until_cancelled(lease.keep(sent)).await }.in_current_span());
        let ended = ended.drop_guard();
        let turn = tokio::select! {
            turn = self.wait_for_turn(member, acquired) => turn,
            () = lost.cancelled() => None,
            () = self.stop.cancelled() => None,
        };
        if let Some(tenure) = turn {
            let term = Term::begin(self, tenure, lost.clone());
            // Seen from outside, a node whose lease is lost no longer delivers, whatever it still has to end.
            let told = async {
                lost.cancelled().await;
                self.role.send_replace(Role::Joining);
                std::future::pending().await
            };
            let ended = tokio::select! {
                ended = term.serve() => ended,
                never = told => never,
            };
            match ended {
                Ended::Stopped => tracing::info!(node = %member.node, "the outbox has stopped"),
                Ended::LeaseLost => {}
            }
        }
        drop(ended);
        self.shared.intake.pulse.lease.clear();
    }

    /// Waits until this node is the owner; `None` if its registration is gone.
    async fn wait_for_turn(&self, member: &Membership, mut acquired: Option<Acquired>) -> Option<Tenure> {
        let mut pause = Pause::default();
        loop {
            let answer = match acquired.take() {
                Some(acquired) => Ok(acquired),
                None => self.shared.intake.pulse.join.ask(self.acquire(member)).await,
            };
            let wait = match answer {
                Ok(Acquired::Owner { epoch, unclean }) => {
                    tracing::info!(node = %member.node, epoch, unclean, mode = %self.mode, "this node delivers");
                    return Some(Tenure { node: member.node.clone(), mode: self.mode, unclean });
                }
                Ok(Acquired::Lost) => return None,
                Ok(Acquired::Standby { owner, .. }) => {
                    pause.is_over();
                    tracing::debug!(node = %member.node, %owner, "standing by");
                    jittered(self.config.ownership.standby_interval, &*self.random)
                }
                Err(error) => {
                    if pause.is_first() {
                        tracing::warn!(%error, "ownership cannot be acquired; trying again");
                    }
                    pause.next(&*self.random)
                }
            };
            self.shared.intake.pulse.join.sleep(wait).await;
        }
    }

    async fn rejoin(&self) -> Membership {
        let mut pause = Pause::default();
        loop {
            let sent = Instant::now();
            match self.shared.intake.pulse.join.ask(self.join()).await {
                Ok(node) => return Membership { node, sent },
                Err(error) => {
                    if pause.is_first() {
                        tracing::warn!(%error, "the outbox cannot be joined; trying again");
                    }
                    self.shared.intake.pulse.join.sleep(pause.next(&*self.random)).await;
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
