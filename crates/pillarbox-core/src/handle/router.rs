use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::{BatchHandler, Handler};
use crate::event::{Event, GLOBAL_AGGREGATE};

/// Which events a handler takes: one aggregate type and one event type. The pair stays a pair: names may contain any
/// separator.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Route {
    aggregate_type: Box<str>,
    event_type: Box<str>,
}

impl Route {
    /// Events of this type on this kind of aggregate.
    #[must_use]
    pub fn new(aggregate_type: impl Into<Box<str>>, event_type: impl Into<Box<str>>) -> Self {
        Self { aggregate_type: aggregate_type.into(), event_type: event_type.into() }
    }

    /// The route of a typed event.
    #[must_use]
    pub fn of<E: Event>() -> Self {
        Self::new(E::AGGREGATE, E::TYPE)
    }
}

impl From<&str> for Route {
    /// Events of this type that belong to no aggregate.
    fn from(event_type: &str) -> Self {
        Self::new(GLOBAL_AGGREGATE, event_type)
    }
}

impl From<(&str, &str)> for Route {
    /// Aggregate type and event type.
    fn from((aggregate_type, event_type): (&str, &str)) -> Self {
        Self::new(aggregate_type, event_type)
    }
}

impl fmt::Display for Route {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "event type `{}` of aggregate type `{}`", self.event_type, self.aggregate_type)
    }
}

/// What becomes of an event that no handler takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Unroutable {
    /// It goes DEAD at once, with an error that names its types.
    #[default]
    Dead,
    /// It stays pending and is looked at again after this long, without counting an attempt: during a rolling deploy a
    /// newer node may know it.
    Park(Duration),
}

/// Two handlers claim the same events; exactly one may.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("two handlers are registered for {what}; register one, and let it call both if both are wanted")]
pub struct DuplicateHandler {
    what: String,
}

type TargetsByEventType = HashMap<Box<str>, Target>;

/// The handler of a route, and how it wants its events.
#[derive(Clone)]
pub enum Target {
    /// One by one.
    One(Arc<dyn Handler>),
    /// As many as are waiting, up to a number.
    Batch {
        /// Who handles them.
        handler: Arc<dyn BatchHandler>,
        /// How many at once at most.
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

/// Finds the one handler of an event.
#[derive(Clone, Default)]
pub struct Router {
    // By aggregate type, then event type: a look-up allocates nothing.
    routes: HashMap<Box<str>, TargetsByEventType>,
    catch_all: Option<Target>,
}

impl Router {
    /// Registers the handler of `route`.
    ///
    /// # Errors
    /// When it has one already.
    pub fn add(&mut self, route: Route, target: Target) -> Result<(), DuplicateHandler> {
        let events = self.routes.entry(route.aggregate_type.clone()).or_default();
        if events.contains_key(&route.event_type) {
            return Err(DuplicateHandler { what: route.to_string() });
        }
        events.insert(route.event_type, target);
        Ok(())
    }

    /// Registers the handler of every event that has no other.
    ///
    /// # Errors
    /// When there is one already.
    pub fn add_catch_all(&mut self, target: Target) -> Result<(), DuplicateHandler> {
        if self.catch_all.is_some() {
            return Err(DuplicateHandler { what: "all events that have no handler of their own".to_owned() });
        }
        self.catch_all = Some(target);
        Ok(())
    }

    /// Whether no handler is registered at all.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.routes.is_empty() && self.catch_all.is_none()
    }

    /// The event types that handlers are registered for; one of several aggregate types comes several times.
    pub fn event_types(&self) -> impl Iterator<Item = &str> {
        self.routes.values().flat_map(HashMap::keys).map(|event_type| &**event_type)
    }

    /// The handler of an event; `None` when nobody takes it.
    #[must_use]
    pub fn find(&self, aggregate_type: &str, event_type: &str) -> Option<&Target> {
        self.routes.get(aggregate_type).and_then(|events| events.get(event_type)).or(self.catch_all.as_ref())
    }
}

impl fmt::Debug for Router {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let routes = self.routes.values().map(HashMap::len).sum::<usize>();
        write!(f, "Router({routes} routes, catch-all: {})", self.catch_all.is_some())
    }
}
