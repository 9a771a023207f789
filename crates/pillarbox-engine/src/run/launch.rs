use std::sync::Arc;

use pillarbox_core::clock::Random;
use pillarbox_core::ownership::Acquired;
use tokio::sync::watch;
use tokio_util::sync::{CancellationToken, DropGuard};
use tracing::Instrument as _;

use super::drain::DrainRules;
use super::shared::Shared;
use super::supervisor::{Membership, Supervisor};
use super::tasks::TaskTracker;
use super::{Config, Mode, Outbox, Role};
use crate::claim::listen;
use crate::follow::Follower;
use crate::maintain::{GaugeReporter, Purger};

/// The tasks of a running outbox; they stop when it is dropped.
#[derive(Debug)]
pub(super) struct Running {
    pub(super) mode: Mode,
    pub(super) tasks: TaskTracker,
    pub(super) role: watch::Receiver<Role>,
    pub(super) stop: CancellationToken,
    pub(super) drain_rules: DrainRules,
    /// Ends draining, whatever the drain timeout leaves of it.
    pub(super) hurry: CancellationToken,
    _stop_when_dropped: DropGuard,
}

impl Outbox {
    /// Starts the tasks of an outbox that delivers.
    pub(super) fn launch(
        shared: Arc<Shared>,
        supervisor: Supervisor,
        first: Membership,
        acquired: Option<Acquired>,
    ) -> Self {
        let tasks = supervisor.tasks.clone();
        let role = supervisor.role.subscribe();
        let (stop, hurry) = (supervisor.stop.clone(), supervisor.hurry.clone());
        let mode = Mode::from(supervisor.mode);
        let drain_rules = DrainRules::new(Some(supervisor.mode), &supervisor.config);
        wake_each_other(&shared, &supervisor.random, &tasks, &stop, true);
        follow(&shared, &supervisor.random, &tasks, &stop);
        // If delivered rows are deleted, a missing row may have been delivered. An outbox that only writes does not know.
        if !supervisor.config.settle.delete_done {
            look_up_reported(&shared, &tasks, &stop);
        }
        let gauge_reporter = GaugeReporter {
            store: Arc::clone(&shared.store),
            intake: Arc::clone(&shared.intake),
            telemetry: Arc::clone(&shared.telemetry),
            limits: Arc::clone(&shared.limits),
            random: Arc::clone(&supervisor.random),
            interval: supervisor.config.metrics.interval,
            mode: supervisor.mode,
        };
        tasks.spawn(gauge_reporter.run(role.clone()).instrument(shared.span.clone()));
        tasks.spawn(supervisor.run(first, acquired).instrument(shared.span.clone()));
        tasks.close();
        let running =
            Running { mode, tasks, role, _stop_when_dropped: stop.clone().drop_guard(), stop, hurry, drain_rules };
        Self { shared, running: Arc::new(running) }
    }

    /// Starts the tasks of an outbox that only writes.
    pub(super) fn launch_writer(
        shared: Arc<Shared>,
        purger: Option<Purger>,
        config: &Config,
        random: &Arc<dyn Random>,
    ) -> Self {
        let (mode, drain_rules) = (Mode::WriterOnly, DrainRules::new(None, config));
        let (tasks, stop, hurry) = (TaskTracker::new(), CancellationToken::new(), CancellationToken::new());
        let (sender, role) = watch::channel(Role::Writing);
        shared.telemetry.meters.never_delivers();
        wake_each_other(&shared, random, &tasks, &stop, false);
        follow(&shared, random, &tasks, &stop);
        if let Some(purger) = purger {
            tasks.spawn(Purger { stop: stop.clone(), ..purger }.run().instrument(shared.span.clone()));
        }
        let stopped = stop.clone();
        tasks.spawn(async move {
            stopped.cancelled().await;
            sender.send_replace(Role::Stopped);
        });
        tasks.close();
        let running =
            Running { mode, tasks, role, _stop_when_dropped: stop.clone().drop_guard(), stop, hurry, drain_rules };
        Self { shared, running: Arc::new(running) }
    }
}

/// Starts what looks for the events that somebody waits for. While nobody does, it asks nothing.
fn follow(shared: &Arc<Shared>, random: &Arc<dyn Random>, tasks: &TaskTracker, stop: &CancellationToken) {
    let follower = Follower {
        store: Arc::clone(&shared.store),
        followed: Arc::clone(&shared.followed),
        random: Arc::clone(random),
        stop: stop.clone(),
    };
    tasks.spawn(follower.run().instrument(shared.span.clone()));
}

/// Looks up what is reported as committed, for the log.
fn look_up_reported(shared: &Arc<Shared>, tasks: &TaskTracker, stop: &CancellationToken) {
    let (outbox, stop) = (Arc::clone(shared), stop.clone());
    let looking = async move {
        let Shared { intake, store, .. } = &*outbox;
        stop.run_until_cancelled(intake.reported.look_up(&**store, intake)).await;
    };
    tasks.spawn(looking.instrument(shared.span.clone()));
}

/// Starts what wakes other processes and, where this one delivers, what lets them wake it.
fn wake_each_other(
    shared: &Arc<Shared>,
    random: &Arc<dyn Random>,
    tasks: &TaskTracker,
    stop: &CancellationToken,
    delivers: bool,
) {
    if !shared.intake.notifier.is_enabled() {
        return;
    }
    let ours = (Arc::clone(shared), Arc::clone(random), stop.clone());
    let theirs = ours.clone();
    let waking = async move {
        let (shared, random, stop) = ours;
        if let Some(wake_ups) = shared.store.wake_ups() {
            stop.run_until_cancelled(shared.intake.notifier.run(wake_ups, &*random)).await;
        }
    };
    tasks.spawn(waking.instrument(shared.span.clone()));
    if delivers {
        let listening = async move {
            let (shared, random, stop) = theirs;
            if let Some(wake_ups) = shared.store.wake_ups() {
                stop.run_until_cancelled(listen(wake_ups, &shared.intake.poll_schedule, &*random)).await;
            }
        };
        tasks.spawn(listening.instrument(shared.span.clone()));
    }
}
