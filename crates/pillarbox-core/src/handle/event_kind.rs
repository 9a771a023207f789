use std::fmt;

use crate::event::{Event, GLOBAL_AGGREGATE};

/// The events that a handler takes: one aggregate type and one event type. The pair stays a pair: names may contain any
/// separator.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct EventKind {
    aggregate_type: Box<str>,
    event_type: Box<str>,
}

impl EventKind {
    /// Events of this type on this kind of aggregate.
    #[must_use]
    pub fn new(aggregate_type: impl Into<Box<str>>, event_type: impl Into<Box<str>>) -> Self {
        Self { aggregate_type: aggregate_type.into(), event_type: event_type.into() }
    }

    /// The aggregate type.
    #[must_use]
    pub fn aggregate_type(&self) -> &str {
        &self.aggregate_type
    }

    /// The event type.
    #[must_use]
    pub fn event_type(&self) -> &str {
        &self.event_type
    }

    /// The kind of a typed event.
    #[must_use]
    pub fn of<E: Event>() -> Self {
        Self::new(E::AGGREGATE, E::TYPE)
    }
}

impl From<&str> for EventKind {
    /// Events of this type that belong to no aggregate.
    fn from(event_type: &str) -> Self {
        Self::new(GLOBAL_AGGREGATE, event_type)
    }
}

impl From<(&str, &str)> for EventKind {
    /// Aggregate type and event type.
    fn from((aggregate_type, event_type): (&str, &str)) -> Self {
        Self::new(aggregate_type, event_type)
    }
}

impl fmt::Display for EventKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "event type `{}` of aggregate type `{}`", self.event_type, self.aggregate_type)
    }
}
