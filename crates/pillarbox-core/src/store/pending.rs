use super::Attributes;
use super::attributes::attribute_methods;
use crate::clock::Timestamp;
use crate::ownership::{CRASHED, DIED};

/// Selects the pending events that match every field that is set.
///
/// ```
/// use pillarbox_core::store::{PendingFilter, PendingState};
///
/// let filter = PendingFilter::new().event_type("order.placed").state(PendingState::Retrying);
/// assert_eq!(filter.state, Some(PendingState::Retrying));
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PendingFilter {
    /// With these attributes.
    pub attributes: Attributes,
    /// In this state.
    pub state: Option<PendingState>,
}

attribute_methods!(PendingFilter);

impl PendingFilter {
    /// All pending events.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Only those in this state.
    #[must_use]
    pub fn state(self, state: PendingState) -> Self {
        Self { state: Some(state), ..self }
    }
}

/// The reason for which an event is still pending.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PendingState {
    /// It waits for its first attempt and is due: for a node, in the memory of one, or behind an earlier one of its key.
    New,
    /// It waits for its first attempt, and its time has not come.
    Delayed,
    /// It has failed, or was deferred, and waits for another attempt.
    Retrying,
}

impl PendingState {
    /// All states.
    pub const ALL: [Self; 3] = [Self::New, Self::Delayed, Self::Retrying];

    /// The state's number in the statements of stores.
    #[must_use]
    pub const fn code(self) -> i16 {
        match self {
            Self::New => 0,
            Self::Delayed => 1,
            Self::Retrying => 2,
        }
    }

    /// The state with this number; [`New`](Self::New) for any other.
    #[must_use]
    pub fn of_code(code: i64) -> Self {
        Self::ALL.into_iter().find(|state| i64::from(state.code()) == code).unwrap_or(Self::New)
    }

    /// The state's name, in lower case.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::New => "new",
            Self::Delayed => "delayed",
            Self::Retrying => "retrying",
        }
    }
}

/// The beginning of the error of an event that no handler takes.
#[doc(hidden)]
pub const NO_HANDLER: &str = "no handler is registered for ";
/// The beginning of the error of an event that no route takes.
#[doc(hidden)]
pub const NO_ROUTE: &str = "no route takes ";

/// An event that still has to be delivered. Its payload is in its [`Record`](super::Record).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PendingEvent {
    /// Its place in the order of the table.
    pub seq: i64,
    /// Its id, as stored.
    pub event_id: String,
    /// The event type.
    pub event_type: String,
    /// The kind of thing it happened to; `__GLOBAL__` where the row names none.
    pub aggregate_type: String,
    /// The id of the thing it happened to.
    pub aggregate_id: Option<String>,
    /// The tenant it belongs to.
    pub tenant_id: Option<String>,
    /// The ordering key as stored.
    pub key: Option<String>,
    /// The handler it is for, if its event has several.
    pub handler: Option<String>,
    /// The reason for which it is pending.
    pub state: PendingState,
    /// Failed handler calls.
    pub attempts: i32,
    /// The error of the last failed call.
    pub last_error: Option<String>,
    /// The time at which it was written.
    pub created_at: Timestamp,
    /// The time at which it is due, or has been since; `None` if it was due when it was written.
    pub due_at: Option<Timestamp>,
    /// The node that the row names as its holder. In the modes in which a node owns whole partitions, rows mostly name
    /// none: their holder is the partition's owner.
    pub held_by: Option<String>,
}

impl PendingEvent {
    /// True if no handler and no route has taken it when it was looked at last: it waits for a release or a configuration that does.
    #[must_use]
    pub fn is_unrouted(&self) -> bool {
        let error = self.last_error.as_deref().filter(|_| self.state == PendingState::Retrying);
        error.is_some_and(|error| error.starts_with(NO_HANDLER) || error.starts_with(NO_ROUTE))
    }

    /// The node that holds a row, as its column `locked_by` names it; `None` if nobody does, or the holder died.
    #[must_use]
    pub fn holder(locked_by: Option<&str>) -> Option<String> {
        let holder = locked_by.filter(|holder| *holder != DIED)?;
        Some(holder.strip_suffix(CRASHED).unwrap_or(holder)).filter(|node| !node.is_empty()).map(str::to_owned)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_marks_of_dead_nodes_name_no_holder() {
        let holder = PendingEvent::holder;
        assert_eq!([None, Some("?"), Some("!")].map(holder), [None, None, None]);
        assert_eq!([Some("node"), Some("node!")].map(holder), [Some("node".to_owned()), Some("node".to_owned())]);
    }

    #[test]
    fn an_event_that_nobody_takes_is_told_by_its_error() {
        let told = |state, error: Option<&str>| {
            let last_error = error.map(str::to_owned);
            PendingEvent { state, last_error, ..event() }.is_unrouted()
        };
        assert!(told(PendingState::Retrying, Some("no route takes event type `a`")));
        assert!(told(PendingState::Retrying, Some("no handler is registered for event type `a`")));
        assert!(!told(PendingState::Retrying, Some("no route to host")));
        assert!(!told(PendingState::Retrying, None));
        assert!(!told(PendingState::New, Some("no route takes event type `a`")), "it was tried again by hand");
    }

    fn event() -> PendingEvent {
        PendingEvent {
            seq: 1,
            event_id: "e".to_owned(),
            event_type: "a".to_owned(),
            aggregate_type: "b".to_owned(),
            aggregate_id: None,
            tenant_id: None,
            key: None,
            handler: None,
            state: PendingState::New,
            attempts: 0,
            last_error: None,
            created_at: Timestamp::from_micros(0),
            due_at: None,
            held_by: None,
        }
    }

    #[test]
    fn a_state_is_found_by_its_number() {
        for state in PendingState::ALL {
            assert_eq!(PendingState::of_code(state.code().into()), state);
        }
    }
}
