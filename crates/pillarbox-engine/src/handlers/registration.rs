use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use pillarbox_core::error::ConfigError;
use pillarbox_core::event::limits::{HANDLER_ID, check_text};
use pillarbox_core::event::{Decode, Envelope, Event};
use pillarbox_core::handle::{EventHandler, EventKind, Fallback, IntoBatchHandler, IntoHandler, OnDead};
use pillarbox_core::retry::Retry;

use super::{HandlerConfig, Rate, Target};
use crate::handlers::Accepts;

/// A handler with all that belongs to it: which events it takes, its name, how its failures are met.
///
/// Made by [`on`], [`on_type`] and [`on_batch`], and given to [`OutboxBuilder::handler`](crate::run::OutboxBuilder::handler), or to
/// [`handlers`](crate::run::OutboxBuilder::handlers) in a list that production and tests share.
///
/// ```
/// use std::time::Duration;
/// use pillarbox_core::handle::{Delivery, Failure};
/// use pillarbox_engine::handlers::on_type;
/// use pillarbox_core::retry::Retry;
/// use pillarbox_engine::run::Outbox;
/// use pillarbox_memory::MemoryStore;
///
/// async fn send_receipt(_: Delivery) -> Result<(), std::io::Error> { Ok(()) }
/// async fn book(_: Delivery) -> Result<(), std::io::Error> { Ok(()) }
/// async fn tell_support(_: Delivery, _: Failure) {}
///
/// let placed = ("order", "order.placed");
/// let mailer = on_type(placed, send_receipt)
///     .named("mailer")
///     .retry(Retry::fixed(Duration::from_secs(5)).max_retries(3))
///     .on_dead(tell_support);
/// let outbox = Outbox::single_node(MemoryStore::new()).handlers([mailer, on_type(placed, book).named("ledger")]);
/// ```
#[must_use = "it handles nothing until an outbox is given it"]
pub struct Registration {
    /// `None`: every event that has no handler of its own.
    pub(crate) event_kind: Option<EventKind>,
    pub(crate) id: Option<Arc<str>>,
    pub(crate) target: Target,
    pub(crate) config: HandlerConfig,
    pub(crate) accepts: Option<Accepts>,
    pub(crate) fallback: Option<Arc<dyn Fallback>>,
    pub(crate) on_dead: Option<Arc<dyn OnDead>>,
    /// Takes rows for named handlers, too.
    pub(crate) any: bool,
    failure: Option<ConfigError>,
}

/// The handler of a typed event: `async fn(Payload)` or `async fn(Payload, Delivery)`.
pub fn on<S, H: EventHandler<S>>(handler: H) -> Registration {
    Registration::new(Some(H::event_kind()), Target::One(handler.into_handler()))
}

/// The handler of events known by name: a pair of aggregate type and event type, `("order", "order.placed")`, or an event
/// type alone for events that belong to no aggregate; or [`Events::Others`]. It is an `async fn(Delivery)` or a
/// [`Handler`](pillarbox_core::handle::Handler).
pub fn on_type<S>(events: impl Into<Events>, handler: impl IntoHandler<S>) -> Registration {
    Registration::new(events.into().event_kind(), Target::One(handler.into_handler()))
}

/// A handler that takes many events at once: those that are waiting for it, 1 to `max` (at most 10,000), and never waits for more. It
/// is an `async fn(Vec<Delivery>) -> Vec<R>` that answers for each, in order. A batch of [`Events::Others`] mixes all types, unless
/// the handler [says otherwise](pillarbox_core::handle::BatchHandler::lane).
///
/// ```
/// # use pillarbox_core::handle::Delivery;
/// # use pillarbox_engine::run::Outbox;
/// # use pillarbox_memory::MemoryStore;
/// use pillarbox_engine::handlers::on_batch;
///
/// async fn index(deliveries: Vec<Delivery>) -> Vec<Result<(), std::io::Error>> {
///     deliveries.iter().map(|_delivery| Ok(())).collect()
/// }
/// let outbox = Outbox::single_node(MemoryStore::new()).handler(on_batch(("order", "order.placed"), 100, index));
/// ```
pub fn on_batch<R>(events: impl Into<Events>, max: usize, handler: impl IntoBatchHandler<R>) -> Registration {
    let target = Target::Batch { handler: handler.into_batch_handler(), max };
    let mut registration = Registration::new(events.into().event_kind(), target);
    if !(1..=10_000).contains(&max) {
        registration.failure =
            Some(ConfigError::new("on_batch.max", format!("is {max}"), "set a number from 1 to 10000"));
    }
    registration
}

/// The events that a handler takes.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Events {
    /// Events of one aggregate type and event type.
    Of(EventKind),
    /// Every event that has no handler of its own.
    Others,
}

impl Events {
    fn event_kind(self) -> Option<EventKind> {
        match self {
            Self::Of(event_kind) => Some(event_kind),
            Self::Others => None,
        }
    }
}

impl<R: Into<EventKind>> From<R> for Events {
    fn from(event_kind: R) -> Self {
        Self::Of(event_kind.into())
    }
}

impl Registration {
    fn new(event_kind: Option<EventKind>, target: Target) -> Self {
        Self {
            event_kind,
            id: None,
            target,
            config: HandlerConfig::default(),
            accepts: None,
            fallback: None,
            on_dead: None,
            any: false,
            failure: None,
        }
    }

    /// Gives the handler a name, so that several can have the events of one type: each event is then written once for each
    /// of them, and each row is delivered, tried again and given up by itself.
    ///
    /// The name is stored in those rows, so it stays the same in every release of your service: 1 to 128 characters,
    /// unique among the handlers of its events.
    pub fn named(mut self, id: impl Into<Arc<str>>) -> Self {
        let id = id.into();
        let named = if self.event_kind.is_some() {
            check_id(&id)
        } else {
            let problem = format!("is named `{id}`");
            let remedy = "leave it without a name: only the handlers of one type of event have names";
            Err(ConfigError::new("handler", problem, remedy))
        };
        match named {
            Ok(()) => self.id = Some(id),
            Err(error) => {
                self.failure.get_or_insert(error);
            }
        }
        self
    }

    /// Takes rows for named handlers, too: for programs that pass events on, such as a relay. In a service, a row for a handler that is
    /// not there is a mistake, and the handler of [`Events::Others`] does not take it.
    ///
    /// ```
    /// use pillarbox_core::handle::Delivery;
    /// use pillarbox_engine::handlers::{Events, on_type};
    ///
    /// async fn pass_on(_: Delivery) {}
    ///
    /// let everything = on_type(Events::Others, pass_on).for_any_name();
    /// ```
    pub fn for_any_name(mut self) -> Self {
        self.any = true;
        self
    }

    /// Asks `accepts` before an event is written; where it says false, no row is written for this handler. An event that none
    /// of its handlers accepts is not written at all, and its receipt has no id for it. Of several conditions, all have to be true.
    ///
    /// It is asked where the event is written, so every program that writes such events registers the handler, or at least its condition.
    /// Rows that other programs insert are delivered without being asked about. To look at a typed event, use
    /// [`accepts_event`](Self::accepts_event).
    ///
    /// ```
    /// use pillarbox_core::handle::Delivery;
    /// use pillarbox_engine::handlers::on_type;
    ///
    /// async fn notify_partner(_: Delivery) {}
    ///
    /// let partner = on_type("order.placed", notify_partner)
    ///     .named("partner")
    ///     .accepts(|event| event.tenant_id() == Some("partner"));
    /// ```
    pub fn accepts(mut self, accepts: impl Fn(&Envelope) -> bool + Send + Sync + 'static) -> Self {
        self.accepts = Some(match self.accepts.take() {
            Some(earlier) => Arc::new(move |event: &Envelope| earlier(event) && accepts(event)),
            None => Arc::new(accepts),
        });
        self
    }

    /// [`accepts`](Self::accepts) for a condition on the typed event, which is read from its payload once more for that. What cannot be read is
    /// accepted: the handler says what is wrong of it.
    ///
    /// ```text
    /// let partner = on(notify_partner).accepts_event(|order: &OrderPlaced, _| order.total_cents >= 100_00);
    /// ```
    pub fn accepts_event<E: Event<Codec: Decode<E>>>(
        mut self,
        accepts: impl Fn(&E, &Envelope) -> bool + Send + Sync + 'static,
    ) -> Self {
        if self.event_kind.as_ref().is_some_and(|event_kind| *event_kind != EventKind::of::<E>()) {
            let problem = format!("has a condition on {}, and takes others", EventKind::of::<E>());
            let remedy = "give it a condition on the event that it takes";
            self.failure.get_or_insert(ConfigError::new("handler.accepts_event", problem, remedy));
        }
        self.accepts(move |envelope| {
            let is_other = envelope.event_type() != E::TYPE || envelope.aggregate_type() != E::AGGREGATE;
            is_other || envelope.decode::<E>().map_or(true, |event| accepts(&event, envelope))
        })
    }

    /// Sets the retry rules for its failures. Rules that `retry` does not set are those of the outbox.
    pub fn retry(mut self, retry: Retry) -> Self {
        self.config.retry = retry;
        self
    }

    /// Lays settings over its own: each that `config` sets replaces the one that was set before. Of the retry rules the policy, the limit of
    /// attempts and the filter of errors are one setting each.
    pub fn configured(mut self, config: &HandlerConfig) -> Self {
        self.config.overlay(config);
        self
    }

    /// The time limit of a call, 1 ms to 100 years, in place of the outbox's
    /// [`handler_timeout`](crate::run::OutboxBuilder::handler_timeout); `None`: for ever. Then the call is dropped, and the
    /// attempt has failed. A [`blocking`](pillarbox_core::handle::blocking) handler cannot be dropped: its thread goes on. The same limit
    /// holds for each interceptor phase, the fallback and the observer, and for the begin and the commit of a handler's transaction.
    pub fn timeout(mut self, timeout: impl Into<Option<Duration>>) -> Self {
        self.config.timeout = Some(timeout.into());
        self
    }

    /// The number of its calls that run at once on a node, at least 1; a call of a batch handler counts once. Default: no limit but that of
    /// the [workers](crate::run::OutboxBuilder::workers), of which one handler of several has half.
    ///
    /// Events beyond it wait, in memory or in the table, and count no attempt. They take no worker, so other handlers go on. With several
    /// nodes there are as many calls on each. In mode `ordered` one call runs at a time anyway.
    ///
    /// A [`blocking`](pillarbox_core::handle::blocking) call that timed out does not count any more, though its thread goes on.
    pub fn concurrency(mut self, calls: usize) -> Self {
        self.config.concurrency = Some(calls);
        self
    }

    /// The number of its events that begin in a time on a node, further attempts included. Default: no limit.
    ///
    /// Events beyond it wait, in memory or in the table, and count no attempt. They take no worker, so other handlers go on; in mode
    /// `ordered` all that is behind them waits as well. With several nodes each has the whole rate: divide it by their number.
    ///
    /// ```
    /// # use pillarbox_core::handle::Delivery;
    /// use pillarbox_engine::handlers::{Rate, on_type};
    ///
    /// async fn notify_partner(_: Delivery) {}
    ///
    /// let partner = on_type("order.placed", notify_partner).concurrency(4).rate(Rate::per_second(100));
    /// ```
    pub fn rate(mut self, rate: Rate) -> Self {
        self.config.rate = Some(rate);
        self
    }

    /// Decides about its events once it has failed for good, in place of the outbox's fallback. A second one replaces the first. See [`Fallback`].
    pub fn fallback(mut self, fallback: impl Fallback) -> Self {
        self.fallback = Some(Arc::new(fallback));
        self
    }

    /// Observes its events that go DEAD, in place of the outbox's observer. A second one replaces the first. See [`OnDead`].
    pub fn on_dead(mut self, observer: impl OnDead) -> Self {
        self.on_dead = Some(Arc::new(observer));
        self
    }

    /// The kind of the events that it takes; `None` if it takes all that have no other handler.
    #[must_use]
    pub fn event_kind(&self) -> Option<&EventKind> {
        self.event_kind.as_ref()
    }

    /// The name it was given.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        self.id.as_deref()
    }

    /// Checks that its settings are valid together. An error says which handler it is about.
    pub(crate) fn check(&self) -> Result<(), ConfigError> {
        self.check_settings().map_err(|error| {
            let name = self.id.as_deref().map(|id| format!(" `{id}`")).unwrap_or_default();
            let events = self.event_kind.as_ref().map_or_else(|| "all other events".to_owned(), ToString::to_string);
            let problem = format!("of the handler{name} of {events} {}", error.problem());
            ConfigError::new(error.field(), problem, error.remedy().to_owned())
        })
    }

    fn check_settings(&self) -> Result<(), ConfigError> {
        if self.any && self.event_kind.is_some() {
            let problem = "is set, though the handler takes the events of one type";
            return Err(ConfigError::new("for_any_name", problem, "leave it out, or register it for `Events::Others`"));
        }
        if let Target::Batch { handler, .. } = &self.target
            && self.config.is_limited()
            && handler.lanes() > 1
        {
            let problem =
                "passes events on to several places, so a limit of all of them would let one hold up the others";
            return Err(ConfigError::new("handler", problem, "limit each place within the handler"));
        }
        self.failure.clone().map_or_else(|| self.config.validate(), Err)
    }
}

impl fmt::Debug for Registration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("Registration");
        debug.field("event_kind", &self.event_kind).field("id", &self.id).field("target", &self.target);
        debug.field("config", &self.config).field("fallback", &self.fallback.is_some());
        debug.field("on_dead", &self.on_dead.is_some()).finish_non_exhaustive()
    }
}

/// Accepts what can be a handler's name.
pub(crate) fn check_id(id: &str) -> Result<(), ConfigError> {
    check_text("handler", id, HANDLER_ID).map_err(|error| {
        let remedy = format!("name it with 1 to {HANDLER_ID} characters, none of them NUL");
        ConfigError::new("handler", error.problem().to_owned(), remedy)
    })
}

/// A handler as an outbox accepts it: a [`Registration`], or a function with the attribute `#[handler]`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not say which events it handles",
    label = "expected a function with the attribute `#[handler]`, or `on(…)`",
    note = "a function without the attribute is registered with `handle`, or wrapped: `on(…)`, `on_type(…, …)`"
)]
pub trait Register {
    /// The handler and what belongs to it.
    fn register(self) -> Registration;
}

impl Register for Registration {
    fn register(self) -> Registration {
        self
    }
}
