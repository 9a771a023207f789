use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use pillarbox_core::clock::{Clock, Random, SystemClock, SystemRandom};
use pillarbox_core::context::ContextProvider;
use pillarbox_core::error::ConfigError;
use pillarbox_core::event::Stamp;
use pillarbox_core::handle::{EventHandler, EventKind, Fallback, Interceptor, IntoHandler, OnDead};
use pillarbox_core::ownership::{Acquired, NodeName};
use pillarbox_core::retry::{Retry, RetryPolicy};
use pillarbox_core::store::{Purgeable, Store};
use pillarbox_core::write::WriterHook;
use tokio_util::sync::CancellationToken;
use tracing::Span;

use super::kind::{Any, DeliveringMode, HotPathMode, Ordered, Parallel, Partitioned, WriterOnly};
use super::shared::Writing;
use super::supervisor::{Handling, Supervisor};
use super::{Config, FailingHead, FailingKey, Mode, Outbox, PurgeConfig, Shared, TypePause};
use crate::handlers::{Events, Recipient, Register, Registration, Unroutable, check_id, on, on_type};
use crate::maintain::{Purger, Task};
use crate::queue::HotPath;
use crate::run::StartError;

/// Each handler with limits of its own has a class of its own, of which there are 64.
const MAX_LIMITED_HANDLERS: usize = 60;

/// Builds an outbox. `K` is its mode: [`SingleNode`](super::kind::SingleNode), [`MultiNode`](super::kind::MultiNode),
/// [`Partitioned`], [`Ordered`] or [`WriterOnly`]. A setting that a mode would ignore does not exist on its builder. Without `K`, the mode
/// is a [value](Outbox::builder), and such a setting is refused by [`start`](Self::start).
#[derive(Debug)]
#[must_use = "nothing runs until start() is called"]
pub struct OutboxBuilder<K = Any> {
    mode: Mode,
    store: Option<Arc<dyn Store>>,
    config: Config,
    handling: Handling,
    /// The steps of a write. In mode `writer_only` the named handlers among them are elsewhere.
    writing: Writing,
    clock: Arc<dyn Clock>,
    random: Arc<dyn Random>,
    span: Span,
    /// True if events are delivered here, in a mode that does.
    enabled: bool,
    /// The first thing that went wrong while building; reported by `start`.
    failure: Option<StartError>,
    kind: PhantomData<fn() -> K>,
}

impl<K> OutboxBuilder<K> {
    pub(super) fn new(mode: Mode, store: Option<Arc<dyn Store>>) -> Self {
        Self {
            mode,
            store,
            config: Config::default(),
            handling: Handling::default(),
            writing: Writing::default(),
            clock: Arc::new(SystemClock),
            random: Arc::new(SystemRandom),
            span: Span::none(),
            enabled: true,
            failure: None,
            kind: PhantomData,
        }
    }

    fn check<T>(&mut self, result: Result<T, impl Into<StartError>>) -> Option<T> {
        result.map_err(|error| self.failure.get_or_insert(error.into())).ok()
    }

    fn set(mut self, change: impl FnOnce(&mut Config)) -> Self {
        change(&mut self.config);
        self
    }

    /// Registers a handler with what belongs to it: a function with the attribute `#[handler]`, or a [`Registration`] with a
    /// name, a retry policy, a fallback or an observer of its own.
    ///
    /// In mode `writer_only` it is not called, but an event is written once for each handler with a name that
    /// [accepts](Registration::accepts) it. So a program can register the same handlers in every mode.
    pub fn handler(self, handler: impl Register) -> Self {
        self.add(handler.register())
    }

    /// Registers all handlers of a list, such as one that production and tests share.
    pub fn handlers(self, handlers: impl IntoIterator<Item = Registration>) -> Self {
        handlers.into_iter().fold(self, Self::add)
    }

    fn add(mut self, registration: Registration) -> Self {
        if self.check(registration.check()).is_some() {
            let added = self.handling.router.add(registration);
            self.check(added);
        }
        self
    }

    /// Adds a hook that sees every batch of events being written.
    pub fn writer_hook(mut self, hook: impl WriterHook) -> Self {
        self.writing.hooks.push(hook);
        self
    }

    /// Adds a provider that carries a context from the writer to the handler, in headers of the event.
    pub fn context(mut self, provider: impl ContextProvider) -> Self {
        self.handling.interceptors.contexts.push(provider);
        self
    }

    /// Sets whether processes on the same table wake each other, so that events committed by another one are delivered within
    /// milliseconds. Default: no. PostgreSQL only; see [`WakeUpConfig`](super::WakeUpConfig).
    pub fn wake_up(self, enabled: bool) -> Self {
        self.set(|config| config.wake_up.enabled = enabled)
    }

    /// The interval between searches for old events, and the most that are deleted in one transaction. Default: hourly, 2,000.
    pub fn purge_interval(mut self, interval: Duration, batch: usize) -> Self {
        self.config.purge.interval = interval;
        self.config.purge.batch = batch;
        self
    }

    /// The prefix of the names of this outbox's metrics, before a dot. Default `pillarbox`.
    pub fn metrics_prefix(self, prefix: impl Into<String>) -> Self {
        self.set(|config| config.metrics.prefix = prefix.into())
    }

    /// The span that every line which this outbox logs by itself stands in, and every span of its handlers, such as one that
    /// names the database where there are several. It should have no parent: it lasts as long as the outbox. Default: none.
    ///
    /// ```
    /// # use pillarbox_engine::run::Outbox;
    /// # use pillarbox_memory::MemoryStore;
    /// let outbox = Outbox::single_node(MemoryStore::new()).span(tracing::error_span!(parent: None, "outbox", database = "shop"));
    /// ```
    pub fn span(mut self, span: Span) -> Self {
        self.span = span;
        self
    }

    /// The source of the time of events. Default: the operating system.
    pub fn clock(mut self, clock: impl Clock) -> Self {
        self.clock = Arc::new(clock);
        self
    }

    /// The source of randomness. Default: the operating system.
    pub fn random(mut self, random: impl Random) -> Self {
        self.random = Arc::new(random);
        self
    }

    /// Checks the settings and the schema, registers the node and starts delivering, or waits as a standby. In mode `writer_only`
    /// there is no node, and nothing is delivered here.
    ///
    /// The start waits about two minutes for a transaction that holds the lock which nodes take to join, and says so in the log.
    ///
    /// # Cancellation
    /// Dropped half-way, nothing is left running here, but the node may have joined: then it owns what it got, and delivers nothing of it, until its lease
    /// ends. To give a start up, wait for it by [`start_unless`](super::start_unless), which gives the lease back.
    ///
    /// # Errors
    /// A setting, the handlers, the schema or the database; nothing is left running then.
    pub async fn start(mut self) -> Result<Outbox, StartError> {
        let store = self.verify()?;
        // Each event is written once for each handler that will have it, wherever it is delivered.
        self.writing.fan_out.others = self.handling.router.others_accept();
        for (event_kind, recipient) in self.handling.router.recipients() {
            self.writing.fan_out.add(&event_kind, recipient)?;
        }
        let mode = self.mode.of_nodes().filter(|_| self.enabled);
        if mode.is_some() && self.handling.router.is_empty() {
            let remedy = "register one with `handle`, `handle_type`, `handler` or `handle_all`";
            return Err(ConfigError::new("handlers", "is empty, so no event would be delivered", remedy).into());
        }
        if mode.is_none() && (!self.enabled || !self.handling.router.is_empty()) {
            let (mode, enabled) = (self.mode, self.enabled);
            tracing::info!(%mode, enabled, "the registered handlers are not called in this process: it delivers nothing");
        }
        if self.handling.router.limited() > MAX_LIMITED_HANDLERS {
            let problem = format!("has {} entries with limits of their own", self.handling.router.limited());
            return Err(
                ConfigError::new("handlers", problem, format!("limit at most {MAX_LIMITED_HANDLERS} of them")).into()
            );
        }
        store.check().await?;
        self.adjust();
        let Self { mut handling, writing, config, clock, random, span, enabled, .. } = self;
        handling.router.errors = config.retry.errors.clone();
        let stamp = Arc::new(Stamp::new(clock, Arc::clone(&random)));
        let writing = Writing { contexts: handling.interceptors.contexts.clone(), ..writing };
        let hot_path = mode.map_or(HotPath::Off, HotPath::of);
        let shared = Arc::new(Shared::new(store, stamp, writing, hot_path, &config, &handling.router, span));
        let Some(mode) = mode else {
            let purger = purger_of_all(&shared, &config.purge, &random).filter(|_| enabled);
            return Ok(Outbox::launch_writer(shared, purger, &config, &random));
        };
        let supervisor = Supervisor::new(&shared, mode, config, handling, random);
        let (membership, acquired) = supervisor.enter().await?;
        let delivers = matches!(acquired, Some(Acquired::Owner { .. }));
        let opened = supervisor.opened.clone();
        let outbox = Outbox::launch(shared, supervisor, membership, acquired);
        // Events committed from now on are handed over in memory: a program that writes one event and stops has it delivered.
        if delivers {
            opened.cancelled().await;
        }
        Ok(outbox)
    }

    /// Checks what does not need the database.
    fn verify(&mut self) -> Result<Arc<dyn Store>, StartError> {
        if let Some(error) = self.failure.take() {
            return Err(error);
        }
        let Some(store) = self.store.take() else {
            return Err(ConfigError::new("store", "is missing", "hand one in with `store`").into());
        };
        if self.config.wake_up.enabled && store.wake_ups().is_none() {
            let problem = format!("is on, but this {} store has no way to wake other processes", store.info().dialect);
            let remedy = "turn it off; it needs PostgreSQL, connected to without a transaction pooler";
            return Err(ConfigError::new("wake_up.enabled", problem, remedy).into());
        }
        self.config.validate_for(self.mode)?;
        Ok(store)
    }

    /// Adjusts the settings to the mode.
    fn adjust(&mut self) {
        if self.mode != Mode::Ordered {
            return;
        }
        // With one worker at most one event is under way, which is what order means.
        self.config.dispatch.workers = 1;
        if self.config.retry.failing_head == FailingHead::DeadAndContinue {
            // One attempt is what that means, whatever a handler asks for.
            self.config.retry.max_attempts = 1;
            self.config.dispatch.unroutable = Unroutable::Dead;
            self.handling.router.forget_limits();
        }
    }
}

/// The purger of an outbox that delivers nothing, if rows are to be deleted by their age alone.
fn purger_of_all(shared: &Shared, purge: &PurgeConfig, random: &Arc<dyn Random>) -> Option<Purger> {
    purge.all_after.map(|older_than| Purger {
        store: Arc::clone(&shared.store),
        tasks: vec![Task { what: Purgeable::All, older_than }],
        inbox_after: None,
        audit_after: None,
        interval: purge.interval,
        batch: purge.batch,
        random: Arc::clone(random),
        counters: Arc::clone(&shared.telemetry.counters),
        stop: CancellationToken::new(),
    })
}

impl<K: DeliveringMode> OutboxBuilder<K> {
    /// Registers the handler of a typed event: `async fn(Payload)` or `async fn(Payload, Delivery)`.
    pub fn handle<S, H: EventHandler<S>>(self, handler: H) -> Self {
        self.add(on(handler))
    }

    /// Registers the handler of events known by name: a pair of aggregate type and event type, `("order", "order.placed")`,
    /// or an event type alone for events that belong to no aggregate. It is an `async fn(Delivery)` or an object that implements [`Handler`](pillarbox_core::handle::Handler).
    pub fn handle_type<S>(self, event_kind: impl Into<EventKind>, handler: impl IntoHandler<S>) -> Self {
        self.add(on_type(event_kind, handler))
    }

    /// Registers the handler of every event that has no handler of its own.
    pub fn handle_all<S>(self, handler: impl IntoHandler<S>) -> Self {
        self.add(on_type(Events::Others, handler))
    }

    /// Decides about events whose handler has failed for good, for handlers that have no fallback of their own. Default: none,
    /// the event goes DEAD. A second one replaces the first. See [`Fallback`].
    pub fn fallback(mut self, fallback: impl Fallback) -> Self {
        self.handling.router.fallback = Some(Arc::new(fallback));
        self
    }

    /// Observes events that go DEAD, for handlers that have no observer of their own. The event stays DEAD. A second one replaces the first. See
    /// [`OnDead`].
    pub fn on_dead(mut self, observer: impl OnDead) -> Self {
        self.handling.router.on_dead = Some(Arc::new(observer));
        self
    }

    /// The retry rules for handlers that have none of their own: sets the [`retry_policy`](Self::retry_policy), the
    /// [`max_attempts`](Self::max_attempts) and the errors after which an event is tried again, as far as `retry` has them.
    pub fn retry(mut self, retry: Retry) -> Self {
        self.check(retry.check());
        let (policy, max_attempts, errors) = retry.into_parts();
        let config = &mut self.config.retry;
        config.policy = policy.unwrap_or_else(|| Arc::clone(&config.policy));
        config.max_attempts = max_attempts.unwrap_or(config.max_attempts);
        config.errors = errors.unwrap_or_else(|| std::mem::take(&mut config.errors));
        self
    }

    /// Sets whether this process delivers. Default: yes. While it is switched off it only writes, as in mode `writer_only`: its
    /// events wait in the table, no handler is called, nothing is purged, and other processes see no node.
    ///
    /// ```
    /// # use pillarbox_core::handle::Delivery;
    /// # use pillarbox_engine::run::{Outbox, Role};
    /// # use pillarbox_memory::MemoryStore;
    /// # async fn send_receipt(_: Delivery) {}
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let outbox = Outbox::partitioned(MemoryStore::new()).handle_all(send_receipt).enabled(false).start().await?;
    /// assert_eq!(outbox.role(), Role::Writing);
    /// # outbox.shutdown().await;
    /// # Ok(())
    /// # }
    /// ```
    pub fn enabled(mut self, enabled: bool) -> Self {
        self.enabled = enabled;
        self
    }

    /// Replaces all settings at once. [`start`](Self::start) refuses one that was changed and that the mode
    /// [lacks](Config::validate_for).
    pub fn config(mut self, config: Config) -> Self {
        self.config = config;
        self
    }

    /// Events waiting in memory after being read from the table. Default 4000.
    pub fn cold_capacity(self, events: usize) -> Self {
        self.set(|config| config.dispatch.cold_capacity = events)
    }

    /// Bytes of payloads and headers in memory, of events that wait and of events that are being handled. Default 64 MiB.
    pub fn payload_memory(self, bytes: usize) -> Self {
        self.set(|config| config.dispatch.payload_memory = bytes)
    }

    /// The fate of an event that no handler takes. Default: it stays pending and is looked at again every 30 seconds; see
    /// [`Unroutable`].
    pub fn unroutable(self, policy: Unroutable) -> Self {
        self.set(|config| config.dispatch.unroutable = policy)
    }

    /// The age at which an event that no handler takes goes DEAD. `None`: it never does. Default one day.
    pub fn unroutable_dead_after(self, age: impl Into<Option<Duration>>) -> Self {
        self.set(|config| config.dispatch.unroutable_dead_after = age.into())
    }

    /// The time limit of a call of a handler, for handlers that do not [set one](Registration::timeout). Then the call is
    /// dropped, and the attempt has failed. `None`: no limit. Default 5 minutes.
    pub fn handler_timeout(self, timeout: impl Into<Option<Duration>>) -> Self {
        self.set(|config| config.dispatch.handler_timeout = timeout.into())
    }

    /// A call that runs longer is named in the log; if all workers are in such calls, the outbox is not ready. Default 60 s.
    pub fn slow_after(self, time: Duration) -> Self {
        self.set(|config| config.dispatch.slow_after = time)
    }

    /// Rows read at once. Default 1000.
    pub fn claim_batch(self, rows: usize) -> Self {
        self.set(|config| config.claim.batch = rows)
    }

    /// Shortest and longest time between two polls of the table that nothing asked for. Default 50 ms and 5 s.
    pub fn poll_interval(mut self, min: Duration, max: Duration) -> Self {
        self.config.claim.min_interval = min;
        self.config.claim.max_interval = max;
        self
    }

    /// Verdicts recorded in one transaction at most. Default 1000.
    pub fn settle_batch(self, verdicts: usize) -> Self {
        self.set(|config| config.settle.batch = verdicts)
    }

    /// Sets whether the rows of delivered events are deleted at once. Default: no, they are kept as DONE until they are purged.
    pub fn delete_done(self, delete: bool) -> Self {
        self.set(|config| config.settle.delete_done = delete)
    }

    /// Sets whether rows keep the positions that handlers report by [`Outcome::delivered_as`](pillarbox_core::handle::Outcome::delivered_as).
    /// Default: yes.
    pub fn keep_positions(self, keep: bool) -> Self {
        self.set(|config| config.settle.keep_positions = keep)
    }

    /// Handler calls in total before an event goes DEAD. Default 10.
    pub fn max_attempts(self, attempts: u32) -> Self {
        self.set(|config| config.retry.max_attempts = attempts)
    }

    /// The policy for the time between attempts. Default: exponential from 200 ms to 60 s.
    pub fn retry_policy(self, policy: impl RetryPolicy) -> Self {
        self.set(|config| config.retry.policy = Arc::new(policy))
    }

    /// The node's name in the database and in logs. Default: the host's name.
    pub fn node_name(mut self, name: &str) -> Self {
        if let Some(name) = self.check(NodeName::new(name)) {
            self.config.ownership.node_name = Some(name);
        }
        self
    }

    /// The time for which ownership holds without renewal. Default 15 s.
    pub fn lease(self, lease: Duration) -> Self {
        self.set(|config| config.ownership.lease = lease)
    }

    /// The time that queued and running events may take to finish at shutdown. In mode `partitioned`, also the time that a handler may
    /// run while another node waits for its partition before it is [told](pillarbox_core::handle::Delivery::stop_requested). Default 5 s.
    pub fn drain_timeout(self, timeout: Duration) -> Self {
        self.set(|config| config.shutdown.drain_timeout = timeout)
    }

    /// The interval at which the gauges of rows, nodes and queues are brought up to date. Default 15 s.
    pub fn metrics_interval(self, interval: Duration) -> Self {
        self.set(|config| config.metrics.interval = interval)
    }

    /// Adds code that runs around every handler.
    pub fn interceptor(mut self, interceptor: impl Interceptor) -> Self {
        self.handling.interceptors.push(interceptor);
        self
    }

    /// The time for which DONE events are kept. `None` keeps them for ever. Default 7 days.
    pub fn purge_done_after(self, kept: impl Into<Option<Duration>>) -> Self {
        self.set(|config| config.purge.done_after = kept.into())
    }

    /// The time for which the [inbox](pillarbox_core::inbox) remembers messages that consumers have received. `None` keeps them for ever.
    /// Default 30 days.
    pub fn purge_inbox_after(self, kept: impl Into<Option<Duration>>) -> Self {
        self.set(|config| config.purge.inbox_after = kept.into())
    }

    /// The time for which the audit table keeps what operators have done. `None` keeps it for ever. Default 90 days.
    pub fn purge_audit_after(self, kept: impl Into<Option<Duration>>) -> Self {
        self.set(|config| config.purge.audit_after = kept.into())
    }

    /// The time for which DEAD events are kept. Default: `None`, until they are replayed or discarded.
    pub fn purge_dead_after(self, kept: impl Into<Option<Duration>>) -> Self {
        self.set(|config| config.purge.dead_after = kept.into())
    }
}

impl OutboxBuilder {
    /// The database. An outbox without one does not start.
    pub fn store(mut self, store: impl Store) -> Self {
        self.store = Some(Arc::new(store));
        self
    }
}

impl<K: Parallel> OutboxBuilder<K> {
    /// Lets a forwarding handler pause delivery of chosen event types. It has no effect in mode `ordered`, where events behind a paused one would
    /// have to wait: there the handler puts each of them off, and it keeps its place. So a program can hand it in whatever its mode.
    pub fn type_pause(mut self, type_pause: TypePause) -> Self {
        self.handling.type_pause = type_pause;
        self
    }
}

impl<K: DeliveringMode> OutboxBuilder<K> {
    /// Handlers running at once. Default 8. Mode `ordered` handles one event at a time and has no such setting.
    // The condition stands here and not at the block: so the compiler says why the mode lacks it.
    pub fn workers(self, workers: usize) -> Self
    where
        K: Parallel,
    {
        self.set(|config| config.dispatch.workers = workers)
    }
}

impl<K: HotPathMode> OutboxBuilder<K> {
    /// Events waiting in memory after their commit. Default 2000.
    pub fn hot_capacity(self, events: usize) -> Self {
        self.set(|config| config.dispatch.hot_capacity = events)
    }
}

impl OutboxBuilder<Partitioned> {
    /// The fate of the later events of a key when one of them fails. Default: they wait.
    pub fn failing_key(self, key: FailingKey) -> Self {
        self.set(|config| config.retry.failing_key = key)
    }
}

impl OutboxBuilder<Ordered> {
    /// The fate of the events behind one that fails. Default: they wait while it is tried again.
    pub fn failing_head(self, head: FailingHead) -> Self {
        self.set(|config| config.retry.failing_head = head)
    }
}

impl OutboxBuilder<WriterOnly> {
    /// Deletes rows this long after they were written, whatever their state: for tables read from outside, where no row
    /// ever ends; one millisecond to 100 years. Default: no row is deleted. While a node that delivers is alive, nothing is.
    pub fn purge_all_after(self, kept: Duration) -> Self {
        self.set(|config| config.purge.all_after = Some(kept))
    }

    /// Says which named handlers take the events of a type where they are delivered, at least one: each event is written once for each of
    /// them. The names are those given there with [`Registration::named`].
    ///
    /// ```
    /// # use pillarbox_engine::run::Outbox;
    /// # use pillarbox_memory::MemoryStore;
    /// let writer = Outbox::writer_only(MemoryStore::new()).handled_by(("order", "order.placed"), ["mailer", "ledger"]);
    /// ```
    pub fn handled_by<'a>(mut self, event_kind: impl Into<EventKind>, ids: impl IntoIterator<Item = &'a str>) -> Self {
        let event_kind = event_kind.into();
        let mut ids = ids.into_iter().peekable();
        if ids.peek().is_none() {
            let remedy = "give their names, or leave it out if its handler has none";
            self.check(Err::<(), _>(ConfigError::new(
                "handled_by",
                format!("names no handler of {event_kind}"),
                remedy,
            )));
        }
        for id in ids {
            if self.check(check_id(id)).is_some() {
                let added = self.writing.fan_out.add(&event_kind, Recipient { id: Some(id.into()), accepts: None });
                self.check(added);
            }
        }
        self
    }
}
