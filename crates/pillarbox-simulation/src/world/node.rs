use std::sync::{Arc, MutexGuard, PoisonError};
use std::time::Duration;

use pillarbox_core::handle::in_transaction;
use pillarbox_core::ownership::{NodeMode, NodeName};
use pillarbox_core::retry::ExponentialBackoff;
use pillarbox_engine::handlers::{Events, Rate, on_batch, on_type};
use pillarbox_engine::run::{Outbox, OutboxBuilder};
use pillarbox_routes::Forwarder;
use tokio::time::{sleep, timeout};

use super::World;
use super::clock::JumpingClock;
use super::forwarding::Passing;
use super::handler::{Hands, Limit};
use super::link::{Link, Wire};
use crate::check::Violation;
use crate::engine::Process;

/// A host that runs one process of the service at a time.
#[derive(Debug)]
pub(crate) struct Host {
    /// Its name, which is that of its nodes.
    pub(crate) name: String,
    /// Its way to the database.
    pub(crate) wire: Arc<Wire>,
    /// The lead of its clock of day, in microseconds.
    pub(crate) ahead: i64,
    state: std::sync::Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    process: Option<Process>,
    mode: Option<NodeMode>,
    outbox: Option<Outbox>,
    forwarder: Option<Forwarder>,
    /// It is told to stop.
    stops: bool,
}

impl Host {
    /// A host that runs nothing yet.
    #[must_use]
    pub(crate) fn new(name: String, ahead: i64) -> Self {
        Self { name, wire: Arc::default(), ahead, state: std::sync::Mutex::default() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The process that runs, if one does.
    #[must_use]
    pub(crate) fn process(&self) -> Option<Process> {
        self.state().process.clone().filter(Process::is_alive)
    }

    /// The mode of the process that runs.
    #[must_use]
    pub(crate) fn mode(&self) -> Option<NodeMode> {
        self.process().and(self.state().mode)
    }

    /// The routes of the process that runs.
    #[must_use]
    pub(crate) fn forwarder(&self) -> Option<Forwarder> {
        self.state().forwarder.clone()
    }

    /// The outbox that runs.
    #[must_use]
    pub(crate) fn outbox(&self) -> Option<Outbox> {
        self.state().outbox.clone()
    }

    /// True if it was told to stop.
    #[must_use]
    pub(crate) fn stops(&self) -> bool {
        self.state().stops
    }

    /// Forgets everything.
    pub(crate) fn clear(&self) {
        let State { process, outbox, forwarder, .. } = std::mem::take(&mut *self.state());
        drop((outbox, forwarder));
        if let Some(process) = process {
            process.kill();
        }
    }
}

impl World {
    /// Starts a process on a host that runs none.
    pub(super) fn start(self: &Arc<Self>, node: usize) {
        let Some(host) = self.hosts.get(node) else { return };
        let process = Process::new(host.name.clone(), self.chance.bits(), self.plan.yields);
        {
            let mut state = host.state();
            *state = State { process: Some(process.clone()), mode: Some(self.mode()), ..State::default() };
        }
        self.database.story.tell(&host.name, format_args!("a process starts"));
        let (world, owner) = (Arc::clone(self), process.clone());
        self.tasks.spawn(process.run(async move { world.serve(node, owner).await }));
    }

    /// The life of a process: it starts the outbox, and writes.
    async fn serve(self: Arc<Self>, node: usize, process: Process) {
        let Some(host) = self.hosts.get(node) else { return };
        let link = |wire| Link::new(Arc::clone(&self.database), host.name.clone(), wire, self.requests.clone());
        let link = Arc::new(link(Arc::clone(&host.wire)));
        let outbox = loop {
            match self.build(node, &process, &link).await {
                Ok(outbox) => break outbox,
                Err(error) => {
                    self.database.story.tell(&host.name, format_args!("cannot start: {error}"));
                    sleep(self.chance.millis(50, 500)).await;
                }
            }
        };
        host.state().outbox = Some(outbox.clone());
        self.write(node, &outbox, &link).await;
    }

    async fn build(
        self: &Arc<Self>,
        node: usize,
        process: &Process,
        link: &Arc<Link>,
    ) -> Result<Outbox, Box<dyn std::error::Error + Send + Sync>> {
        let store = Arc::clone(link);
        let routes = self.plan.routing.map(|routing| self.routes(&routing, process.name()).build()).transpose()?;
        let type_pause = routes.as_ref().map(Forwarder::type_pause).unwrap_or_default();
        let mode = self.hosts.get(node).and_then(Host::mode).unwrap_or(self.plan.mode);
        let builder = Outbox::builder(mode).store(store).type_pause(type_pause);
        Ok(self.configure(builder, node, process, link, routes)?.start().await?)
    }

    fn configure(
        self: &Arc<Self>,
        builder: OutboxBuilder,
        node: usize,
        process: &Process,
        link: &Arc<Link>,
        routes: Option<Forwarder>,
    ) -> Result<OutboxBuilder, Box<dyn std::error::Error + Send + Sync>> {
        let plan = &self.plan;
        let host = self.hosts.get(node).ok_or("there is no such host")?;
        let hands = || Hands { world: Arc::clone(self), node, process: process.clone(), limit: None };
        let mut config = plan.config(host.mode().unwrap_or(plan.mode));
        config.ownership.node_name = Some(NodeName::new(&host.name)?);
        let (base, cap) = plan.settings.backoff;
        let clock = JumpingClock::ahead(host.ahead);
        let mut builder = builder.config(config).retry_policy(ExponentialBackoff::new(base, cap)?);
        builder = builder.clock(clock).random(self.chance.clone());
        if let (Some(routing), Some(forwarder)) = (&plan.routing, routes) {
            host.state().forwarder = Some(forwarder.clone());
            builder = builder
                .handler(on_batch(Events::Others, routing.batch, Passing { hands: hands(), forwarder }).for_any_name());
        } else {
            let limit = plan.limits.map(|(most, _)| Limit { running: Arc::default(), most });
            let mut others = on_type(Events::Others, Hands { limit, ..hands() });
            if let Some((calls, events)) = plan.limits {
                others = others.concurrency(calls).rate(Rate::per_second(events));
            }
            builder = builder.handler(others);
        }
        if plan.named {
            builder =
                builder.handler(on_type("split", hands()).named("a")).handler(on_type("split", hands()).named("b"));
        }
        if let Some(max) = plan.batch {
            builder = builder.handler(on_batch("batch", max, hands()));
        }
        if plan.transactions {
            builder = builder.handler(on_type("booked", in_transaction(Arc::clone(link), hands().booking())));
        }
        Ok(if plan.fallback { builder.fallback(hands()) } else { builder })
    }

    /// Kills the process of a host, wherever it is.
    pub(super) fn kill(&self, node: usize) {
        let Some(host) = self.hosts.get(node) else { return };
        self.database.checker().members().trouble(&host.name);
        host.clear();
    }

    /// Tells the process of a host to shut down; it is over when the answer is. True if it has lived until then.
    pub(super) async fn shut_down(self: &Arc<Self>, node: usize) -> bool {
        let Some(host) = self.hosts.get(node) else { return false };
        let (outbox, process) = {
            let mut state = host.state();
            let State { outbox: Some(outbox), process: Some(process), stops, .. } = &mut *state else {
                return false;
            };
            *stops = true;
            (outbox.clone(), process.clone())
        };
        self.database.story.tell(&host.name, format_args!("is told to stop"));
        let stopping = self.tasks.spawn(process.run(async move { outbox.shutdown().await }));
        let limit = self.plan.settings.drain + Duration::from_secs(15);
        let in_time = timeout(limit, stopping).await.is_ok();
        let has_lived = process.is_alive();
        if !in_time && has_lived && !process.is_stopped() && self.is_healed() {
            let what = format!("{} has not shut down within {limit:?}", host.name);
            self.database.checker().note(Err(Violation::new("liveness", what)));
        }
        self.database.story.tell(&host.name, format_args!("has stopped"));
        // What it leaves to the end of its lease, it leaves to a crash.
        if host.process().is_some_and(|now| now.is_alive()) && host.stops() {
            host.clear();
        }
        in_time && has_lived
    }
}
