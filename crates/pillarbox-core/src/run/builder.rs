use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::supervisor::{Membership, Supervisor};
use super::{Config, Outbox, Shared};
use crate::clock::{Clock, Random, SystemClock, SystemRandom};
use crate::error::{ConfigError, StartError};
use crate::event::Stamp;
use crate::handle::{DuplicateHandler, EventHandler, IntoBatchHandler, IntoHandler, Route, Router, Target, Unroutable};
use crate::ownership::{Mode, NodeName};
use crate::retry::RetryPolicy;
use crate::store::Store;
use crate::write::{WriterHook, WriterHooks};

/// Builds an outbox of which one node delivers at a time; further nodes on the same table wait as standbys.
///
/// It costs the database the least, and has the hot path: an event committed here is handled from memory. There is no
/// order between events. Settings it does not offer do not apply to it.
#[derive(Debug)]
#[must_use = "nothing runs until start() is called"]
pub struct SingleNode {
    store: Arc<dyn Store>,
    config: Config,
    router: Router,
    hooks: WriterHooks,
    clock: Arc<dyn Clock>,
    random: Arc<dyn Random>,
    /// The first thing that went wrong while building; reported by `start`.
    failure: Option<BuildError>,
}

#[derive(Debug)]
enum BuildError {
    Config(ConfigError),
    Handlers(DuplicateHandler),
}

impl SingleNode {
    pub(super) fn new(store: Arc<dyn Store>) -> Self {
        Self {
            store,
            config: Config::default(),
            router: Router::default(),
            hooks: WriterHooks::default(),
            clock: Arc::new(SystemClock),
            random: Arc::new(SystemRandom),
            failure: None,
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

    /// Registers the handler of a typed event: `async fn(Payload)` or `async fn(Payload, Delivery)`.
    pub fn handle<S, H: EventHandler<S>>(mut self, handler: H) -> Self {
        let added = self.router.add(H::route(), Target::One(handler.into_handler()));
        self.check(added.map_err(BuildError::Handlers));
        self
    }

    /// Registers the handler of events known by name: a pair of aggregate type and event type, `("order", "order.placed")`,
    /// or an event type alone for events that belong to no aggregate. It is an `async fn(Delivery)` or an object that implements [`Handler`](crate::handle::Handler).
    pub fn handle_type<S>(mut self, route: impl Into<Route>, handler: impl IntoHandler<S>) -> Self {
        let added = self.router.add(route.into(), Target::One(handler.into_handler()));
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
            let added = self.router.add(route.into(), target);
            self.check(added.map_err(BuildError::Handlers));
        } else {
            let error = ConfigError::new("handle_batch.max", format!("is {max}"), "set a number from 1 to 10000");
            self.check::<()>(Err(BuildError::Config(error)));
        }
        self
    }

    /// Registers the handler of every event that has no handler of its own.
    pub fn handle_all<S>(mut self, handler: impl IntoHandler<S>) -> Self {
        let added = self.router.add_catch_all(Target::One(handler.into_handler()));
        self.check(added.map_err(BuildError::Handlers));
        self
    }

    /// Adds a hook that sees every batch of events being written.
    pub fn writer_hook(mut self, hook: impl WriterHook) -> Self {
        self.hooks.push(hook);
        self
    }

    /// Replaces all settings at once.
    pub fn config(mut self, config: Config) -> Self {
        self.config = config;
        self
    }

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

    /// Checks the settings and the schema, registers the node and starts delivering, or waits as a standby.
    ///
    /// # Errors
    /// A setting, the handlers, the schema or the database; nothing is left running then.
    pub async fn start(self) -> Result<Outbox, StartError> {
        match self.failure {
            Some(BuildError::Config(error)) => return Err(error.into()),
            Some(BuildError::Handlers(error)) => return Err(error.into()),
            None => {}
        }
        self.config.validate()?;
        if self.router.is_empty() {
            let remedy = "register one with `handle`, `handle_type` or `handle_all`";
            return Err(ConfigError::new("handlers", "are missing: every event would go DEAD", remedy).into());
        }
        self.store.check().await?;
        let stamp = Arc::new(Stamp::new(self.clock, Arc::clone(&self.random)));
        let shared = Arc::new(Shared::new(self.store, stamp, self.hooks, self.config.dispatch.hot_capacity));
        let supervisor = Supervisor::new(&shared, Mode::SingleNode, self.config, self.router, self.random);
        let sent = Instant::now();
        let node = supervisor.join().await?;
        let membership = Membership { node, sent };
        let acquired = supervisor.acquire(&membership).await?;
        Ok(Outbox::launch(shared, supervisor, membership, acquired))
    }
}
