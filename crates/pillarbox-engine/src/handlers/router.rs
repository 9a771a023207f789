use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use pillarbox_core::handle::{BatchHandler, Delivery, EventKind, Fallback, Handler, OnDead};
use pillarbox_core::hash::guarded::HashMap;
use pillarbox_core::retry::{ErrorFilter, Retry};
use pillarbox_core::store::Row;

use super::{HandlerConfig, Limited, Limiter, Registration, has_type_alone};
use crate::handlers::{Accepts, Recipient};

/// Handlers contradict each other about the events that each takes.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text}")]
pub struct DuplicateHandler {
    event_kind: Option<EventKind>,
    handler: Option<Box<str>>,
    text: String,
}

impl DuplicateHandler {
    /// The kind of the events that they contradict each other about; `None`: all that have no other handler.
    #[must_use]
    pub fn event_kind(&self) -> Option<&EventKind> {
        self.event_kind.as_ref()
    }

    /// The name that two of the handlers have; `None` if they contradict each other otherwise.
    #[must_use]
    pub fn handler(&self) -> Option<&str> {
        self.handler.as_deref()
    }

    fn catch_all() -> Self {
        let what = "two handlers are registered for all events that have no handler of their own";
        let text = format!("{what}; register one, and let it call both if both are wanted");
        Self { event_kind: None, handler: None, text }
    }

    fn unnamed(event_kind: &EventKind) -> Self {
        let text = format!(
            "two handlers are registered for {event_kind}; register one, or give each a name if both are wanted"
        );
        Self { event_kind: Some(event_kind.clone()), handler: None, text }
    }

    pub(crate) fn same_name(event_kind: &EventKind, id: &str) -> Self {
        let text = format!("two handlers of {event_kind} are named `{id}`; give each a name of its own");
        Self { event_kind: Some(event_kind.clone()), handler: Some(id.into()), text }
    }

    fn mixed(event_kind: &EventKind) -> Self {
        let text =
            format!("{event_kind} has a handler with a name and one without; name both, or register only one of them");
        Self { event_kind: Some(event_kind.clone()), handler: None, text }
    }
}

/// The handler of a kind, and how it wants its events.
#[derive(Clone)]
pub(crate) enum Target {
    /// One by one.
    One(Arc<dyn Handler>),
    /// As many as are waiting, up to a number.
    Batch {
        /// The handler that takes them.
        handler: Arc<dyn BatchHandler>,
        /// The largest number of events in one call.
        max: usize,
    },
}

impl fmt::Debug for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::One(_) => f.write_str("One"),
            Self::Batch { max, .. } => write!(f, "Batch(up to {max})"),
        }
    }
}

/// A handler, and how its failures are met.
#[derive(Clone)]
pub(crate) struct Registered {
    /// The index of the handler, in the order of registration.
    pub(crate) number: usize,
    pub(crate) target: Target,
    pub(crate) retry: Retry,
    accepts: Option<Accepts>,
    /// The time limit of a call, if the handler has its own; `Some(None)`: no limit.
    pub(crate) timeout: Option<Option<Duration>>,
    /// Its limits; `None` if it has none.
    pub(crate) limiter: Option<Arc<Limiter>>,
    fallback: Option<Arc<dyn Fallback>>,
    on_dead: Option<Arc<dyn OnDead>>,
}

impl Registered {
    /// True if it works in a transaction of its own.
    pub(crate) fn has_transactions(&self) -> bool {
        matches!(&self.target, Target::One(handler) if handler.transactional().is_some())
    }
}

/// The handlers that take the events of a kind: one without a name, which has all of them as they are, or some with names, each of
/// which has a row of its own.
type HandlerSet = Vec<(Option<Arc<str>>, Registered)>;

/// The reason why an event has no handler.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum UnroutableReason {
    /// No handler takes its type.
    Unknown,
    /// A handler takes events of its type, but of another aggregate type.
    OtherAggregate,
    /// It is for a handler that is not there.
    UnknownHandler,
    /// Its type has handlers with names, and it says none of them.
    NamesNone,
}

/// Finds the one handler of an event.
#[derive(Default)]
pub(crate) struct Router {
    // By aggregate type, then event type: a look-up allocates nothing.
    event_kinds: HashMap<Box<str>, HashMap<Box<str>, HandlerSet>>,
    catch_all: Option<Registered>,
    /// True if `catch_all` takes rows for named handlers, too.
    takes_any: bool,
    /// The number of handlers.
    handlers: usize,
    /// The number of their lanes.
    lanes: usize,
    /// The number of handlers that have limits.
    limited: usize,
    /// The errors after which an event is tried again, for handlers that do not say.
    pub(crate) errors: ErrorFilter,
    /// The fallback that runs before an event is given up, for handlers that have none of their own.
    pub(crate) fallback: Option<Arc<dyn Fallback>>,
    /// Observes events that go DEAD, for handlers that have no observer of their own.
    pub(crate) on_dead: Option<Arc<dyn OnDead>>,
}

impl Router {
    /// Adds a handler.
    pub(crate) fn add(&mut self, registration: Registration) -> Result<(), DuplicateHandler> {
        let Registration { event_kind, id, target, config, accepts, fallback, on_dead, any, .. } = registration;
        let HandlerConfig { timeout, concurrency, rate, retry } = config;
        let limiter = Limiter::new(concurrency, rate).map(Arc::new);
        let lanes = match &target {
            Target::One(_) => 1,
            Target::Batch { handler, .. } => handler.lanes(),
        };
        self.limited += usize::from(limiter.is_some());
        let registered =
            Registered { number: self.handlers, target, retry, accepts, timeout, limiter, fallback, on_dead };
        (self.handlers, self.lanes) = (self.handlers + 1, self.lanes.saturating_add(lanes));
        let Some(event_kind) = event_kind else {
            if self.catch_all.is_some() {
                return Err(DuplicateHandler::catch_all());
            }
            (self.catch_all, self.takes_any) = (Some(registered), any);
            return Ok(());
        };
        let events = self.event_kinds.entry(event_kind.aggregate_type().into()).or_default();
        let handlers = events.entry(event_kind.event_type().into()).or_default();
        match (handlers.first(), &id) {
            (Some((Some(_), _)), Some(id)) if handlers.iter().any(|(other, _)| other.as_ref() == Some(id)) => {
                return Err(DuplicateHandler::same_name(&event_kind, id));
            }
            (None, _) | (Some((Some(_), _)), Some(_)) => {}
            (Some((None, _)), None) => return Err(DuplicateHandler::unnamed(&event_kind)),
            (Some(_), _) => return Err(DuplicateHandler::mixed(&event_kind)),
        }
        handlers.push((id, registered));
        Ok(())
    }

    /// Leaves the limit of attempts of every handler to the outbox.
    pub(crate) fn forget_limits(&mut self) {
        let of_types = self.event_kinds.values_mut().flat_map(HashMap::values_mut).flatten().map(|(_, one)| one);
        of_types.chain(&mut self.catch_all).for_each(|one| one.retry.forget_limit());
    }

    /// True if no handler is registered at all.
    pub(crate) fn is_empty(&self) -> bool {
        self.event_kinds.is_empty() && self.catch_all.is_none()
    }

    /// The event types that handlers are registered for, with the names of their handlers, which may be none; a type of
    /// several aggregate types comes several times.
    pub(crate) fn event_types(&self) -> impl Iterator<Item = (&str, Vec<&str>)> {
        self.event_kinds.values().flatten().map(|(event_type, handlers)| {
            (&**event_type, handlers.iter().filter_map(|(id, _)| id.as_deref()).collect())
        })
    }

    /// True if the handler of all other events accepts this one; `None` if it accepts all.
    pub(crate) fn others_accept(&self) -> Option<Accepts> {
        self.catch_all.as_ref().and_then(|one| one.accepts.clone())
    }

    /// The handlers that are asked before an event of their type is written, or that have rows of their own, each with its kind. Where the
    /// handler of all other events is asked, all of them: what they take is none of the others.
    pub(crate) fn recipients(&self) -> impl Iterator<Item = (EventKind, Recipient)> {
        let all = self.others_accept().is_some();
        self.event_kinds.iter().flat_map(move |(aggregate_type, events)| {
            events.iter().flat_map(move |(event_type, handlers)| {
                let is_asked = move |(id, registered): &&(Option<Arc<str>>, Registered)| {
                    id.is_some() || registered.accepts.is_some() || all
                };
                handlers.iter().filter(is_asked).map(move |(id, registered)| {
                    let recipient = Recipient { id: id.clone(), accepts: registered.accepts.clone() };
                    (EventKind::new(&**aggregate_type, &**event_type), recipient)
                })
            })
        })
    }

    /// The handler of a row.
    pub(crate) fn find(&self, row: &Row) -> Result<&Registered, UnroutableReason> {
        let handlers =
            self.event_kinds.get(row.event.aggregate_type()).and_then(|events| events.get(row.event.event_type()));
        match (handlers, row.handler.as_deref()) {
            (Some(handlers), id) => {
                let found = handlers.iter().find(|(other, _)| other.as_deref() == id).map(|(_, one)| one);
                // A row for one handler is for no other, even if that is the only one.
                found.ok_or(if id.is_some() { UnroutableReason::UnknownHandler } else { UnroutableReason::NamesNone })
            }
            (None, Some(_)) if !self.takes_any => Err(UnroutableReason::UnknownHandler),
            (None, _) => self.catch_all.as_ref().ok_or_else(|| self.unknown(row)),
        }
    }

    fn unknown(&self, row: &Row) -> UnroutableReason {
        let known = self.event_kinds.values().any(|events| events.contains_key(row.event.event_type()));
        if known { UnroutableReason::OtherAggregate } else { UnroutableReason::Unknown }
    }

    /// The number of places that take events: handlers, and the lanes of batch handlers.
    pub(crate) fn lanes(&self) -> usize {
        self.lanes
    }

    /// True if a handler works in a transaction of its own.
    pub(crate) fn has_transactions(&self) -> bool {
        let of_types = self.event_kinds.values().flat_map(HashMap::values).flatten().map(|(_, one)| one);
        of_types.chain(&self.catch_all).any(Registered::has_transactions)
    }

    /// The number of handlers that have limits.
    pub(crate) fn limited(&self) -> usize {
        self.limited
    }

    /// The handlers that have limits, in the order of registration.
    pub(crate) fn limiters(&self) -> Vec<Limited<'_>> {
        let of_types = self.event_kinds.values().flatten().flat_map(|(event_type, handlers)| {
            handlers.iter().map(move |(id, one)| (Some(&**event_type), id.as_deref(), one))
        });
        let all = of_types.chain(self.catch_all.as_ref().map(|one| (None, None, one)));
        let mut limiters: Vec<_> = all
            .filter_map(|(event_type, handler, one)| {
                Some(Limited { number: one.number, event_type, handler, limiter: one.limiter.as_ref()? })
            })
            .collect();
        limiters.sort_unstable_by_key(|limited| limited.number);
        limiters
    }

    /// True if events may go to different places, or be held back.
    pub(crate) fn may_differ(&self) -> bool {
        let of_types = self.event_kinds.values().flat_map(HashMap::values).flatten().map(|(_, one)| one);
        self.handlers > 1
            || self.limited > 0
            || of_types.chain(&self.catch_all).any(|one| matches!(one.target, Target::Batch { .. }))
    }

    /// True if all events of a row's type go to the place to which it goes itself.
    pub(crate) fn has_type_alone(&self, row: &Row, delivery: impl FnOnce() -> Delivery) -> bool {
        let mut of_type = self.event_kinds.values().filter_map(|events| events.get(row.event.event_type()));
        let taker = match (of_type.next().map(Vec::as_slice), of_type.next(), &self.catch_all) {
            (Some([(None, one)]), None, None) => one,
            (None, _, Some(catch_all)) => catch_all,
            _ => return false,
        };
        match &taker.target {
            Target::One(_) => true,
            Target::Batch { handler, .. } => has_type_alone(&**handler, &delivery()),
        }
    }

    /// The errors of a handler after which its event is tried again.
    pub(crate) fn errors<'a>(&'a self, registered: Option<&'a Registered>) -> &'a ErrorFilter {
        registered.and_then(|one| one.retry.errors()).unwrap_or(&self.errors)
    }

    /// The fallback that runs before an event of a handler is given up.
    pub(crate) fn fallback<'a>(&'a self, registered: &'a Registered) -> Option<&'a dyn Fallback> {
        registered.fallback.as_deref().or(self.fallback.as_deref())
    }

    /// The observer of events of a handler, or of none, that go DEAD.
    pub(crate) fn on_dead<'a>(&'a self, registered: Option<&'a Registered>) -> Option<&'a dyn OnDead> {
        registered.and_then(|one| one.on_dead.as_deref()).or(self.on_dead.as_deref())
    }
}

impl fmt::Debug for Router {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let event_kinds = self.event_kinds.values().map(HashMap::len).sum::<usize>();
        write!(f, "Router({event_kinds} kinds of events, catch-all: {})", self.catch_all.is_some())
    }
}
