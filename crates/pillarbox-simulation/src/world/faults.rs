use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use pillarbox_memory::Snapshot;
use tokio::time::{Instant, sleep, timeout};

use super::World;
use super::broker::State;
use crate::check::Violation;

#[derive(Debug, Clone, Copy)]
enum Fault {
    Kill,
    Freeze,
    Cut,
    Stop,
    Restart,
    GoBack,
    Clock,
    Broker,
}

impl World {
    /// Brings faults about for as long as the plan says.
    pub(super) async fn go_wrong(self: &Arc<Self>) {
        let end = Instant::now() + self.plan.faults_for;
        let mut snapshot: Option<Snapshot> = None;
        loop {
            let pause = self.chance.millis(self.plan.fault_every / 4, self.plan.fault_every);
            sleep(pause.min(end.saturating_duration_since(Instant::now()))).await;
            if Instant::now() >= end {
                return;
            }
            if self.plan.next_mode.is_some() && self.chance.one_in(4) && !self.switched.swap(true, Relaxed) {
                self.database.story.tell("operator", format_args!("starts nodes in the mode {} now", self.mode()));
            }
            self.revive(false);
            if self.chance.permille(self.plan.routing.map_or(0, |routing| routing.replaces)) {
                let replaced = self.replace_routes(self.chance.size(0, self.plan.nodes - 1));
                self.database.checker().note(replaced.map_err(|error| Violation::new("routes", error.to_string())));
            }
            if self.plan.operators && self.chance.one_in(2) {
                self.operate(false).await;
            }
            if self.plan.operators && self.chance.one_in(8) {
                self.purge().await;
            }
            if self.plan.controls && self.chance.one_in(3) {
                self.control().await;
            }
            if self.plan.pauses && self.chance.one_in(3) {
                self.pause().await;
            }
            if self.chance.one_in(3) {
                self.resolve_prepared().await;
            }
            if self.plan.faults.go_back > 0 && (snapshot.is_none() || self.chance.one_in(3)) {
                snapshot = Some(self.database.store.inspect().snapshot());
            }
            if let Some(fault) = self.choose_fault() {
                self.bring_about(fault, snapshot.as_ref()).await;
            }
        }
    }

    fn choose_fault(&self) -> Option<Fault> {
        let faults = self.plan.faults;
        let weights = [
            (Fault::Kill, faults.kill),
            (Fault::Freeze, faults.freeze),
            (Fault::Cut, faults.cut),
            (Fault::Stop, faults.stop),
            (Fault::Restart, faults.restart),
            (Fault::GoBack, faults.go_back),
            (Fault::Clock, faults.clock),
            (Fault::Broker, faults.broker),
        ];
        let mut chosen = self.chance.below(weights.iter().map(|(_, weight)| weight).sum());
        for (fault, weight) in weights {
            if chosen < weight {
                return Some(fault);
            }
            chosen -= weight;
        }
        None
    }

    async fn bring_about(self: &Arc<Self>, fault: Fault, snapshot: Option<&Snapshot>) {
        let node = self.chance.size(0, self.plan.nodes - 1);
        let Some(host) = self.hosts.get(node) else { return };
        let (chance, lease) = (&self.chance, self.plan.settings.lease);
        let long = Duration::from_millis(chance.between(10, 2500)).min(lease * 3);
        match fault {
            Fault::Kill => {
                self.database.story.tell(&host.name, format_args!("is killed"));
                self.kill(node);
            }
            Fault::Freeze => {
                let Some(process) = host.process() else { return };
                self.database.story.tell(&host.name, format_args!("stands still for {long:?}"));
                self.database.checker().members().surprise(&host.name);
                process.stop();
                let world = Arc::clone(self);
                self.tasks.spawn(async move {
                    sleep(long).await;
                    world.database.story.tell(process.name(), format_args!("goes on"));
                    world.database.checker().members().surprise(process.name());
                    process.resume();
                });
            }
            Fault::Cut => {
                self.database.story.tell(&host.name, format_args!("is cut off for {long:?}"));
                host.wire.cut(true);
                let wire = Arc::clone(&host.wire);
                let (world, name) = (Arc::clone(self), host.name.clone());
                self.tasks.spawn(async move {
                    sleep(long).await;
                    world.database.story.tell(&name, format_args!("is connected again"));
                    wire.cut(false);
                });
            }
            Fault::Stop => {
                let world = Arc::clone(self);
                let stopping = async move { world.shut_down(node).await };
                if chance.one_in(2) {
                    if timeout(long, stopping).await.is_err() {
                        self.database.story.tell(&host.name, format_args!("is killed, since it does not stop"));
                        self.kill(node);
                    }
                } else {
                    self.tasks.spawn(stopping);
                }
            }
            Fault::Restart => {
                self.database.crash();
                sleep(chance.millis(0, 1500)).await;
                self.database.come_back();
            }
            Fault::GoBack => {
                let Some(snapshot) = snapshot else { return };
                self.database.crash();
                sleep(chance.millis(0, 800)).await;
                self.database.go_back(snapshot, chance.one_in(2));
                self.database.come_back();
            }
            Fault::Clock => {
                let by = i64::try_from(chance.between(10, 8000)).unwrap_or(0);
                self.database.jump(if chance.one_in(2) { by } else { -by });
            }
            Fault::Broker => {
                let state = chance.pick([State::Away, State::Silent, State::Silent, State::Misconfigured]);
                let Some(broker) = self.brokers.get(chance.size(0, self.brokers.len() - 1)).cloned() else { return };
                self.database.story.tell("broker", format_args!("{broker} is {state:?} for {long:?}"));
                broker.turn(state);
                let world = Arc::clone(self);
                self.tasks.spawn(async move {
                    sleep(long).await;
                    world.database.story.tell("broker", format_args!("{broker} is well again"));
                    broker.turn(State::Well);
                });
            }
        }
    }

    /// Starts processes where none runs; all of them, or some.
    pub(super) fn revive(self: &Arc<Self>, all: bool) {
        for (node, host) in self.hosts.iter().enumerate() {
            if host.process().is_none() && (all || self.chance.one_in(2)) {
                self.start(node);
            }
        }
    }
}
