use super::admin::is_cancelled;
use crate::event::EventId;
use crate::row::Status;

/// The state of one row of an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RowState {
    /// The event's id, as stored.
    pub event_id: EventId,
    /// The handler that the row is for, if its event has several.
    pub handler: Option<Box<str>>,
    /// Its state.
    pub status: Status,
    /// Of a DEAD row the error for which it was given up, of a DONE one the error that a fallback has ended, or [`CANCELLED`](super::CANCELLED). `None` while the
    /// row is pending.
    pub error: Option<String>,
    /// Column `delivered_as`: the position at which the receiver has the event, if the handler has reported one.
    pub delivered_as: Option<String>,
}

impl RowState {
    /// The state that a row's columns name. One of a number that this release does not know counts as pending, since
    /// nothing tells that its event is over.
    #[must_use]
    pub fn new(
        event_id: EventId,
        handler: Option<Box<str>>,
        status: i64,
        error: Option<String>,
        delivered_as: Option<String>,
    ) -> Self {
        let status = Status::ALL.into_iter().find(|known| i64::from(known.code()) == status).unwrap_or(Status::New);
        Self { event_id, handler, status, error, delivered_as }
    }

    /// True if the row was [cancelled](super::Admin::cancel).
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        is_cancelled(self.status.code(), self.error.as_deref())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_that_this_release_does_not_know_is_not_taken_for_an_end() {
        let of = |status| RowState::new(EventId::from_stored("e"), None, status, None, None).status;
        assert_eq!([0, 1, 2, 3].map(of), Status::ALL);
        assert!([-1, 4, i64::MAX].map(of).iter().all(|status| status.is_pending()));
    }
}
