use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::kind::{Deliverer, Ordered, Parallel, WriterOnly};
use super::supervisor::{Handling, Membership, Supervisor};
use super::{Config, FailingHead, Outbox, Shared};
use crate::clock::{Clock, Random, SystemClock, SystemRandom};
use crate::error::{ConfigError, StartError};
use crate::event::Stamp;
use crate::handle::{
    DuplicateHandler, EventHandler, Interceptor, IntoBatchHandler, IntoHandler, Route, Target, Unroutable,
};
use crate::maintain::{Purger, Task};
use crate::ownership::NodeName;
use crate::queue::HotPath;
use crate::retry::RetryPolicy;
use crate::store::{Purgeable, Store};
use crate::write::{WriterHook, WriterHooks};

/// Builds an outbox. `K` is its mode: [`SingleNode`](super::kind::SingleNode), [`MultiNode`](super::kind::MultiNode),
/// [`Ordered`] or [`WriterOnly`]. A setting that a mode would ignore does not exist on its builder.
#[derive(Debug)]
#[must_use = "nothing runs until start() is called"]
pub struct OutboxBuilder<K> {
    store: Arc<dyn Store>,
    config: Config,
    handling: Handling,
    hooks: WriterHooks,
    clock: Arc<dyn Clock>,
    random: Arc<dyn Random>,
    /// Mode `writer_only`: how long any row is kept.
    purge_all_after: Option<Duration>,
    /// The first thing that went wrong while building; reported by `start`.
    failure: Option<BuildError>,
    kind: PhantomData<fn() -> K>,
}

#[derive(Debug)]
enum BuildError {
    Config(ConfigError),
    Handlers(DuplicateHandler),
}

impl<K> OutboxBuilder<K> {
    pub(super) fn new(store: Arc<dyn Store>) -> Self {
        Self {
            store,
            config: Config::default(),
            handling: Handling::default(),
            hooks: WriterHooks::default(),
            clock: Arc::new(SystemClock),
            random: Arc::new(SystemRandom),
            purge_all_after: None,
            failure: None,
            kind: PhantomData,
        }
    }

    fn check<T>(&mut self, result: Result<T, BuildError>) -> Option<T> {
        match result {
            Ok(value) => Some(value),
            Err(error) => {
                self.failure.get_or_insert(error);
                None
            }
        }
    }

    /// Adds a hook that sees every batch of events being written.
    pub fn writer_hook(mut self, hook: impl WriterHook) -> Self {
        self.hooks.push(hook);
        self
    }

    /// Whether processes on the same table wake each other, so that events committed by another one are delivered within
    /// milliseconds. Default: no. PostgreSQL only; see [`WakeUpConfig`](super::WakeUpConfig).
    pub fn wake_up(mut self, enabled: bool) -> Self {
        self.config.wake_up.enabled = enabled;
        self
    }

    /// How often old events are looked for, and how many are deleted in one transaction. Default: hourly, 500.
    pub fn purge_interval(mut self, interval: Duration, batch: usize) -> Self {
        self.config.purge.interval = interval;
        self.config.purge.batch = batch;
        self
    }

    /// What the names of this outbox's metrics begin with, before a dot. Default `pillarbox`.
    pub fn metrics_prefix(mut self, prefix: impl Into<String>) -> Self {
        self.config.metrics.prefix = prefix.into();
        self
    }

    /// Where the time of events comes from. Default: the operating system.
    pub fn clock(mut self, clock: impl Clock) -> Self {
        self.clock = Arc::new(clock);
        self
    }

    /// Where randomness comes from. Default: the operating system.
    pub fn random(mut self, random: impl Random) -> Self {
        self.random = Arc::new(random);
        self
    }

    /// Checks what does not need the database.
    fn verify(&mut self) -> Result<(), StartError> {
        match self.failure.take() {
            Some(BuildError::Config(error)) => return Err(error.into()),
            Some(BuildError::Handlers(error)) => return Err(error.into()),
            None => {}
        }
        if self.config.wake_up.enabled && self.store.wake_ups().is_none() {
            let problem =
                format!("is on, but this {} store has no way to wake other processes", self.store.info().dialect);
            let remedy = "turn it off; it needs PostgreSQL, connected to without a transaction pooler";
            return Err(ConfigError::new("wake_up.enabled", problem, remedy).into());
        }
        Ok(())
    }
}

impl<K: Deliverer> OutboxBuilder<K> {
    /// Registers the handler of a typed event: `async fn(Payload)` or `async fn(Payload, Delivery)`.
    pub fn handle<S, H: EventHandler<S>>(mut self, handler: H) -> Self {
        let added = self.handling.router.add(H::route(), Target::One(handler.into_handler()));
        self.check(added.map_err(BuildError::Handlers));
        self
    }

    /// Registers the handler of events known by name: a pair of aggregate type and event type, `("order", "order.placed")`,
    /// or an event type alone for events that belong to no aggregate. It is an `async fn(Delivery)` or an object that implements [`Handler`](crate::handle::Handler).
    pub fn handle_type<S>(mut self, route: impl Into<Route>, handler: impl IntoHandler<S>) -> Self {
        let added = self.handling.router.add(route.into(), Target::One(handler.into_handler()));
        self.check(added.map_err(BuildError::Handlers));
        self
    }

    /// Registers a handler that takes many events at once: those that are waiting, 1 to `max` (at most 10,000), and never
    /// waits for more. It is an `async fn(Vec<Delivery>) -> Vec<R>` that answers for each, in order.
    ///
    /// ```
    /// # use pillarbox_core::{handle::Delivery, run::Outbox, stores::memory::MemoryStore};
    /// async fn index(deliveries: Vec<Delivery>) -> Vec<Result<(), std::io::Error>> {
    ///     deliveries.iter().map(|_delivery| Ok(())).collect()
    /// }
    /// let outbox = Outbox::single_node(MemoryStore::new()).handle_batch(("order", "order.placed"), 100, index);
    /// ```
    pub fn handle_batch<R>(mut self, route: impl Into<Route>, max: usize, handler: impl IntoBatchHandler<R>) -> Self {
        if (1..=10_000).contains(&max) {
            let target = Target::Batch { handler: handler.into_batch_handler(), max };
            let added = self.handling.router.add(route.into(), target);
            self.check(added.map_err(BuildError::Handlers));
        } else {
            let error = ConfigError::new("handle_batch.max", format!("is {max}"), "set a number from 1 to 10000");
            self.check::<()>(Err(BuildError::Config(error)));
        }
        self
    }

    /// Registers the handler of every event that has no handler of its own.
    pub fn handle_all<S>(mut self, handler: impl IntoHandler<S>) -> Self {
        let added = self.handling.router.add_catch_all(Target::One(handler.into_handler()));
        self.check(added.map_err(BuildError::Handlers));
        self
    }

    /// Replaces all settings at once.
    pub fn config(mut self, config: Config) -> Self {
        self.config = config;
        self
    }

    /// Events waiting in memory after being read from the table. Default 1000.
    pub fn cold_capacity(mut self, events: usize) -> Self {
        self.config.dispatch.cold_capacity = events;
        self
    }

    /// What becomes of an event that no handler takes. Default: DEAD.
    pub fn unroutable(mut self, policy: Unroutable) -> Self {
        self.config.dispatch.unroutable = policy;
        self
    }

    /// Rows read at once. Default 1000.
    pub fn claim_batch(mut self, rows: usize) -> Self {
        self.config.claim.batch = rows;
        self
    }

    /// Shortest and longest pause between looks at the table that nothing asked for. Default 50 ms and 5 s.
    pub fn poll_interval(mut self, min: Duration, max: Duration) -> Self {
        self.config.claim.min_interval = min;
        self.config.claim.max_interval = max;
        self
    }

    /// Verdicts recorded in one transaction at most. Default 1000.
    pub fn settle_batch(mut self, verdicts: usize) -> Self {
        self.config.settle.batch = verdicts;
        self
    }

    /// Handler calls in total before an event goes DEAD. Default 10.
    pub fn max_attempts(mut self, attempts: u32) -> Self {
        self.config.retry.max_attempts = attempts;
        self
    }

    /// How long to wait between attempts. Default: exponential from 200 ms to 60 s.
    pub fn retry_policy(mut self, policy: impl RetryPolicy) -> Self {
        self.config.retry.policy = Arc::new(policy);
        self
    }

    /// The node's name in the database and in logs. Default: the host's name.
    pub fn node_name(mut self, name: &str) -> Self {
        if let Some(name) = self.check(NodeName::new(name).map_err(BuildError::Config)) {
            self.config.ownership.node_name = name;
        }
        self
    }

    /// How long ownership holds without renewal. Default 15 s.
    pub fn lease(mut self, lease: Duration) -> Self {
        self.config.ownership.lease = lease;
        self
    }

    /// How long queued and running events may take to finish at shutdown. Default 5 s.
    pub fn drain_timeout(mut self, timeout: Duration) -> Self {
        self.config.shutdown.drain_timeout = timeout;
        self
    }

    /// How often the gauges are brought up to date: rows, nodes and queues. Default 15 s.
    pub fn metrics_interval(mut self, interval: Duration) -> Self {
        self.config.metrics.interval = interval;
        self
    }

    /// Adds code that runs around every handler.
    pub fn interceptor(mut self, interceptor: impl Interceptor) -> Self {
        self.handling.interceptors.push(interceptor);
        self
    }

    /// How long DONE events are kept. `None` keeps them for ever. Default 7 days.
    pub fn purge_done_after(mut self, kept: impl Into<Option<Duration>>) -> Self {
        self.config.purge.done_after = kept.into();
        self
    }

    /// How long DEAD events are kept. Default: `None`, until they are replayed or discarded.
    pub fn purge_dead_after(mut self, kept: impl Into<Option<Duration>>) -> Self {
        self.config.purge.dead_after = kept.into();
        self
    }

    /// Checks the settings and the schema, registers the node and starts delivering, or waits as a standby.
    ///
    /// # Errors
    /// A setting, the handlers, the schema or the database; nothing is left running then.
    pub async fn start(mut self) -> Result<Outbox, StartError> {
        self.verify()?;
        self.config.validate_for(K::MODE)?;
        if self.handling.router.is_empty() {
            let remedy = "register one with `handle`, `handle_type` or `handle_all`";
            return Err(ConfigError::new("handlers", "are missing: every event would go DEAD", remedy).into());
        }
        self.store.check().await?;
        K::adjust(&mut self.config);
        let stamp = Arc::new(Stamp::new(self.clock, Arc::clone(&self.random)));
        let shared = Arc::new(Shared::new(
            self.store,
            stamp,
            self.hooks,
            HotPath::of(K::MODE),
            &self.config,
            &self.handling.router,
        ));
        let supervisor = Supervisor::new(&shared, K::MODE, self.config, self.handling, self.random);
        let sent = Instant::now();
        let node = supervisor.join().await?;
        let membership = Membership { node, sent };
        let acquired = supervisor.acquire(&membership).await?;
        Ok(Outbox::launch(shared, supervisor, membership, acquired))
    }
}

impl<K: Parallel> OutboxBuilder<K> {
    /// Handlers running at once. Default 4.
    pub fn workers(mut self, workers: usize) -> Self {
        self.config.dispatch.workers = workers;
        self
    }

    /// Events waiting in memory after their commit. Default 1000.
    pub fn hot_capacity(mut self, events: usize) -> Self {
        self.config.dispatch.hot_capacity = events;
        self
    }
}

impl OutboxBuilder<Ordered> {
    /// What becomes of the events behind one that fails. Default: they wait while it is tried again.
    pub fn failing_head(mut self, head: FailingHead) -> Self {
        self.config.retry.failing_head = head;
        self
    }
}

impl OutboxBuilder<WriterOnly> {
    /// Deletes rows this long after they were written, whatever their state: for tables read from outside, where no row
    /// ever ends. Default: no row is deleted. While a node that delivers is alive, nothing is.
    pub fn purge_all_after(mut self, kept: Duration) -> Self {
        self.purge_all_after = Some(kept);
        self
    }

    /// Checks the settings and the schema. Nothing delivers here.
    ///
    /// # Errors
    /// A setting, the schema or the database.
    pub async fn start(mut self) -> Result<Outbox, StartError> {
        self.verify()?;
        self.config.validate()?;
        self.store.check().await?;
        let stamp = Arc::new(Stamp::new(self.clock, Arc::clone(&self.random)));
        let router = &self.handling.router;
        let shared =
            Arc::new(Shared::new(Arc::clone(&self.store), stamp, self.hooks, HotPath::Off, &self.config, router));
        let purge = &self.config.purge;
        let purger = self.purge_all_after.map(|older_than| Purger {
            store: self.store,
            tasks: vec![Task { what: Purgeable::All, older_than }],
            interval: purge.interval,
            batch: purge.batch,
            random: Arc::clone(&self.random),
            counters: Arc::clone(&shared.intake.counters),
            stop: tokio_util::sync::CancellationToken::new(),
        });
        Ok(Outbox::launch_writer(shared, purger, &self.random))
    }
}
