use std::sync::Arc;

use pillarbox_core::clock::{Clock, Random};
use pillarbox_core::context::ContextProvider;
use pillarbox_core::handle::{EventHandler, EventKind, Fallback, Interceptor, IntoHandler, OnDead};
use pillarbox_core::retry::{Retry, RetryPolicy};
use pillarbox_core::store::Store;
use pillarbox_core::write::WriterHook;
use pillarbox_engine::handlers::{Register, Registration};
use pillarbox_engine::run::{Mode, Outbox, OutboxBuilder, StartError, TypePause};

use crate::{Error, Settings};

/// An outbox being set up: the settings, and the code that goes with them.
///
/// The mode is known only when the program runs, so handlers are registered the same way for all of them. In mode
/// `writer_only`, and in any mode while `enabled` is `false`, nothing is delivered, so handlers, interceptors and the retry
/// policy are not used; a line in the log says so. One program can thus be deployed as a service that only writes and as one that delivers, by its settings alone.
#[derive(Debug)]
#[must_use = "nothing runs until start() is called"]
pub struct Setup {
    settings: Settings,
    store: Option<Arc<dyn Store>>,
    builder: OutboxBuilder,
    /// The handlers that may have names, and with them settings of their own.
    registrations: Vec<Registration>,
    /// The complaint about the settings, which [`start`](Self::start) reports.
    refused: Option<Error>,
}

impl Setup {
    pub(crate) fn new(settings: Settings) -> Self {
        let builder = Outbox::builder(settings.mode).enabled(settings.enabled);
        let (builder, refused) = match settings.config() {
            Ok(config) => (builder.config(config), None),
            Err(error) => (builder, Some(error)),
        };
        Self { settings, store: None, builder, registrations: Vec::new(), refused }
    }

    fn with(self, step: impl FnOnce(OutboxBuilder) -> OutboxBuilder) -> Self {
        Self { builder: step(self.builder), ..self }
    }

    /// The same for rules that mode `writer_only` has no use for, and whose builder refuses them.
    fn with_retries(self, step: impl FnOnce(OutboxBuilder) -> OutboxBuilder) -> Self {
        if self.settings.mode == Mode::WriterOnly { self } else { self.with(step) }
    }

    /// Takes this store. The section `store` of the settings is then not used, except for `store.migrate`.
    pub fn store(mut self, store: impl Store) -> Self {
        self.store = Some(Arc::new(store));
        self
    }

    /// Registers the handler of a typed event: `async fn(Payload)` or `async fn(Payload, Delivery)`.
    pub fn handle<S, H: EventHandler<S>>(self, handler: H) -> Self {
        self.with(|builder| builder.handle(handler))
    }

    /// Registers the handler of events known by name: a pair of aggregate type and event type, or an event type alone.
    pub fn handle_type<S>(self, event_kind: impl Into<EventKind>, handler: impl IntoHandler<S>) -> Self {
        self.with(|builder| builder.handle_type(event_kind, handler))
    }

    /// Registers the handler of every event that has no handler of its own.
    pub fn handle_all<S>(self, handler: impl IntoHandler<S>) -> Self {
        self.with(|builder| builder.handle_all(handler))
    }

    /// Registers a handler with what belongs to it: a function with the attribute `#[handler]`, or a
    /// [`Registration`](pillarbox_engine::handlers::Registration) with a name, retries or a fallback of its own.
    ///
    /// A section `handler.NAME` of the settings replaces what is set for the handler of that name.
    pub fn handler(self, handler: impl Register) -> Self {
        self.handlers([handler.register()])
    }

    /// Registers all handlers of a list, such as one that production and tests share.
    pub fn handlers(mut self, handlers: impl IntoIterator<Item = Registration>) -> Self {
        self.registrations.extend(handlers);
        self
    }

    /// Decides about events whose handler has failed for good, for handlers that have no fallback of their own. A second one replaces the first.
    pub fn fallback(self, fallback: impl Fallback) -> Self {
        self.with(|builder| builder.fallback(fallback))
    }

    /// Observes events that go DEAD, for handlers that have no observer of their own. A second one replaces the first.
    pub fn on_dead(self, observer: impl OnDead) -> Self {
        self.with(|builder| builder.on_dead(observer))
    }

    /// Adds code that runs around every handler.
    pub fn interceptor(self, interceptor: impl Interceptor) -> Self {
        self.with(|builder| builder.interceptor(interceptor))
    }

    /// Takes another policy than the one that the settings of `retry` describe.
    pub fn retry_policy(self, policy: impl RetryPolicy) -> Self {
        self.with_retries(|builder| builder.retry_policy(policy))
    }

    /// Sets the retries of handlers that configure none: a value that the argument sets replaces the one in the settings of
    /// `retry`. It also sets which errors are tried again.
    pub fn retry(self, retry: Retry) -> Self {
        self.with_retries(|builder| builder.retry(retry))
    }

    /// Adds a provider that carries a context from where events are written to where they are handled.
    pub fn context(self, provider: impl ContextProvider) -> Self {
        self.with(|builder| builder.context(provider))
    }

    /// Adds a hook that sees every batch of events being written.
    pub fn writer_hook(self, hook: impl WriterHook) -> Self {
        self.with(|builder| builder.writer_hook(hook))
    }

    /// Lets a forwarding handler pause delivery of chosen event types. It has no effect in modes `ordered` and `writer_only`.
    pub fn type_pause(self, type_pause: TypePause) -> Self {
        self.with(|builder| builder.type_pause(type_pause))
    }

    /// The span that every line which the outbox logs by itself stands in; one without a parent.
    pub fn span(self, span: tracing::Span) -> Self {
        self.with(|builder| builder.span(span))
    }

    /// Sets the source of the events' time. Default: the operating system.
    pub fn clock(self, clock: impl Clock) -> Self {
        self.with(|builder| builder.clock(clock))
    }

    /// Sets the source of randomness. Default: the operating system.
    pub fn random(self, random: impl Random) -> Self {
        self.with(|builder| builder.random(random))
    }

    /// Checks the settings, opens the store, creates or upgrades its tables if `store.migrate` says so, and starts the
    /// mode.
    ///
    /// # Errors
    /// A setting, the handlers, the schema or the database; nothing is left running then.
    pub async fn start(self) -> Result<Outbox, Error> {
        let Self { settings, store, builder, registrations, refused } = self;
        if let Some(error) = refused {
            return Err(error);
        }
        let builder = builder.handlers(settings.configure(registrations)?);
        let store = match store {
            Some(store) => store,
            None => settings.connect().await?,
        };
        if settings.store.migrate {
            store.migrate().await.map_err(StartError::Store)?;
        }
        Ok(builder.store(store).start().await?)
    }
}
