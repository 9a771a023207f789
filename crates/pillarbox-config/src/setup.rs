use std::fmt;
use std::sync::Arc;

use pillarbox_core::clock::{Clock, Random};
use pillarbox_core::context::ContextProvider;
use pillarbox_core::handle::{EventHandler, Fallback, Interceptor, IntoHandler, OnDead, Route};
use pillarbox_core::retry::{Retry, RetryPolicy};
use pillarbox_core::store::Store;
use pillarbox_core::write::WriterHook;
use pillarbox_engine::handlers::{Events, Register, Registration, on, on_type};
use pillarbox_engine::run::StartError;
use pillarbox_engine::run::{Config, MultiNode, Ordered, Outbox, Partitioned, SingleNode, TypePause, WriterOnly};

use crate::value::Mode;
use crate::{Error, PurgeSettings, Settings};

/// An outbox being set up: the settings, and the code that goes with them.
///
/// The mode is known only when the program runs, so handlers are registered the same way for all of them. In mode
/// `writer_only`, and in any mode while `enabled` is `false`, nothing is delivered, so handlers, interceptors and the retry
/// policy are not used; a line in the log says so. One program can thus be deployed as a service that only writes and as one that delivers, by its settings alone.
#[must_use = "nothing runs until start() is called"]
pub struct Setup {
    settings: Settings,
    store: Option<Arc<dyn Store>>,
    /// The steps that are applied to the builder once the mode's builder exists.
    steps: Vec<Step>,
    handlers: usize,
}

type Step = Box<dyn FnOnce(Builder) -> Builder + Send>;

/// The builder of the mode that was asked for.
enum Builder {
    SingleNode(SingleNode),
    MultiNode(MultiNode),
    Partitioned(Partitioned),
    Ordered(Ordered),
    WriterOnly(WriterOnly),
}

/// Does the same to the builder of whatever mode it is.
macro_rules! in_any_mode {
    ($builder:expr, $inner:ident => $done:expr) => {
        match $builder {
            Builder::SingleNode($inner) => Builder::SingleNode($done),
            Builder::MultiNode($inner) => Builder::MultiNode($done),
            Builder::Partitioned($inner) => Builder::Partitioned($done),
            Builder::Ordered($inner) => Builder::Ordered($done),
            Builder::WriterOnly($inner) => Builder::WriterOnly($done),
        }
    };
}

/// Does the same to the builder of whatever mode it is that delivers.
macro_rules! where_delivered {
    ($builder:expr, $inner:ident => $done:expr) => {
        match $builder {
            Builder::SingleNode($inner) => Builder::SingleNode($done),
            Builder::MultiNode($inner) => Builder::MultiNode($done),
            Builder::Partitioned($inner) => Builder::Partitioned($done),
            Builder::Ordered($inner) => Builder::Ordered($done),
            writer @ Builder::WriterOnly(_) => writer,
        }
    };
}

impl Setup {
    pub(crate) fn new(settings: Settings) -> Self {
        Self { settings, store: None, steps: Vec::new(), handlers: 0 }
    }

    fn step(mut self, step: impl FnOnce(Builder) -> Builder + Send + 'static) -> Self {
        self.steps.push(Box::new(step));
        self
    }

    /// Takes this store. The section `store` of the settings is then not used, except for `store.migrate`.
    pub fn store(mut self, store: impl Store) -> Self {
        self.store = Some(Arc::new(store));
        self
    }

    /// Registers the handler of a typed event: `async fn(Payload)` or `async fn(Payload, Delivery)`.
    pub fn handle<S, H: EventHandler<S>>(self, handler: H) -> Self {
        self.handler(on(handler))
    }

    /// Registers the handler of events known by name: a pair of aggregate type and event type, or an event type alone.
    pub fn handle_type<S>(self, route: impl Into<Route>, handler: impl IntoHandler<S>) -> Self {
        self.handler(on_type(route, handler))
    }

    /// Registers the handler of every event that has no handler of its own.
    pub fn handle_all<S>(self, handler: impl IntoHandler<S>) -> Self {
        self.handler(on_type(Events::Others, handler))
    }

    /// Registers a handler with what belongs to it: a function with the attribute `#[handler]`, or a
    /// [`Registration`](pillarbox_engine::handlers::Registration) with a name, retries or a fallback of its own.
    pub fn handler(mut self, handler: impl Register) -> Self {
        let registration = handler.register();
        self.handlers += 1;
        self.step(move |builder| match builder {
            // It is not called here, but if it has a name, events are written once for it.
            Builder::WriterOnly(writer) => Builder::WriterOnly(writer.handler(registration)),
            builder => where_delivered!(builder, it => it.handler(registration)),
        })
    }

    /// Registers all handlers of a list, such as one that production and tests share.
    pub fn handlers(self, handlers: impl IntoIterator<Item = Registration>) -> Self {
        handlers.into_iter().fold(self, Self::handler)
    }

    /// Decides about events whose handler has failed for good, for handlers that have no fallback of their own.
    pub fn fallback(self, fallback: impl Fallback) -> Self {
        self.step(move |builder| where_delivered!(builder, it => it.fallback(fallback)))
    }

    /// Observes events that go DEAD, for handlers that have no observer of their own.
    pub fn on_dead(self, observer: impl OnDead) -> Self {
        self.step(move |builder| where_delivered!(builder, it => it.on_dead(observer)))
    }

    /// Adds code that runs around every handler.
    pub fn interceptor(self, interceptor: impl Interceptor) -> Self {
        self.step(move |builder| where_delivered!(builder, it => it.interceptor(interceptor)))
    }

    /// Takes another policy than the one that the settings of `retry` describe.
    pub fn retry_policy(self, policy: impl RetryPolicy) -> Self {
        self.step(move |builder| where_delivered!(builder, it => it.retry_policy(policy)))
    }

    /// Sets the retries of handlers that configure none: a value that the argument sets replaces the one in the settings of
    /// `retry`. It also sets which errors are tried again.
    pub fn retry(self, retry: Retry) -> Self {
        self.step(move |builder| where_delivered!(builder, it => it.retry(retry)))
    }

    /// Adds a provider that carries a context from where events are written to where they are handled.
    pub fn context(self, provider: impl ContextProvider) -> Self {
        self.step(move |builder| in_any_mode!(builder, it => it.context(provider)))
    }

    /// Adds a hook that sees every batch of events being written.
    pub fn writer_hook(self, hook: impl WriterHook) -> Self {
        self.step(move |builder| in_any_mode!(builder, it => it.writer_hook(hook)))
    }

    /// Holds back events of some types for a while, as a handler says that passes events on; in every mode but `ordered` and
    /// `writer_only`.
    pub fn type_pause(self, type_pause: TypePause) -> Self {
        self.step(move |builder| match builder {
            Builder::SingleNode(builder) => Builder::SingleNode(builder.type_pause(type_pause)),
            Builder::MultiNode(builder) => Builder::MultiNode(builder.type_pause(type_pause)),
            Builder::Partitioned(builder) => Builder::Partitioned(builder.type_pause(type_pause)),
            other @ (Builder::Ordered(_) | Builder::WriterOnly(_)) => other,
        })
    }

    /// The span that every line which the outbox logs by itself stands in; one without a parent.
    pub fn span(self, span: tracing::Span) -> Self {
        self.step(move |builder| in_any_mode!(builder, it => it.span(span)))
    }

    /// Sets the source of the events' time. Default: the operating system.
    pub fn clock(self, clock: impl Clock) -> Self {
        self.step(move |builder| in_any_mode!(builder, it => it.clock(clock)))
    }

    /// Sets the source of randomness. Default: the operating system.
    pub fn random(self, random: impl Random) -> Self {
        self.step(move |builder| in_any_mode!(builder, it => it.random(random)))
    }

    /// Checks the settings, opens the store, creates or upgrades its tables if `store.migrate` says so, and starts the
    /// mode.
    ///
    /// # Errors
    /// A setting, the handlers, the schema or the database; nothing is left running then.
    pub async fn start(self) -> Result<Outbox, Error> {
        let Self { settings, store, steps, handlers } = self;
        let config = settings.config()?;
        let store = match store {
            Some(store) => store,
            None => settings.connect().await?,
        };
        if settings.store.migrate {
            store.migrate().await.map_err(StartError::Store)?;
        }
        if settings.mode == Mode::WriterOnly && handlers > 0 {
            tracing::info!(handlers, "mode writer_only: the registered handlers are not called in this process");
        }
        let builder = Builder::new(settings.mode, store, config, &settings.purge);
        let builder = where_delivered!(builder, it => it.enabled(settings.enabled));
        let builder = steps.into_iter().fold(builder, |builder, step| step(builder));
        Ok(builder.start().await?)
    }
}

impl Builder {
    fn new(mode: Mode, store: Arc<dyn Store>, config: Config, purge: &PurgeSettings) -> Self {
        match mode {
            Mode::SingleNode => Self::SingleNode(Outbox::single_node(store).config(config)),
            Mode::MultiNode => Self::MultiNode(Outbox::multi_node(store).config(config)),
            Mode::Partitioned => Self::Partitioned(Outbox::partitioned(store).config(config)),
            Mode::Ordered => Self::Ordered(Outbox::ordered(store).config(config)),
            Mode::WriterOnly => {
                let builder = Outbox::writer_only(store)
                    .wake_up(config.wake_up.enabled)
                    .metrics_prefix(config.metrics.prefix)
                    .purge_interval(config.purge.interval, config.purge.batch);
                Self::WriterOnly(match purge.all_after {
                    Some(kept) => builder.purge_all_after(kept),
                    None => builder,
                })
            }
        }
    }

    async fn start(self) -> Result<Outbox, StartError> {
        match self {
            Self::SingleNode(builder) => builder.start().await,
            Self::MultiNode(builder) => builder.start().await,
            Self::Partitioned(builder) => builder.start().await,
            Self::Ordered(builder) => builder.start().await,
            Self::WriterOnly(builder) => builder.start().await,
        }
    }
}

impl fmt::Debug for Setup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Setup")
            .field("settings", &self.settings)
            .field("store", &self.store)
            .field("handlers", &self.handlers)
            .finish_non_exhaustive()
    }
}
