use super::admin::is_cancelled;
use super::{ListedEvent, PendingState, Record};
use crate::clock::Timestamp;
use crate::row::Status;

/// The state of an event as operators see it, on the command line and in the console. Unlike the column `status` it tells a delayed NEW
/// event from a due one, and a cancelled DONE event from a delivered one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum EventState {
    /// It waits for its first attempt, and is due.
    New,
    /// It waits for its first attempt, and its time has not come.
    Delayed,
    /// It has failed, or was deferred, and waits for another attempt.
    Retrying,
    /// It was delivered.
    Done,
    /// An operator has [cancelled](super::Admin::cancel) it.
    Cancelled,
    /// It was given up.
    Dead,
    /// Its column `status` has a number that this release does not know.
    Unknown,
}

impl EventState {
    fn of(status: i16, error: Option<&str>, due_at: Option<Timestamp>, now: Timestamp) -> Self {
        match Status::from_code(status) {
            Some(Status::New) if due_at.is_some_and(|due_at| due_at > now) => Self::Delayed,
            Some(Status::New) => Self::New,
            Some(Status::Retry) => Self::Retrying,
            Some(Status::Done) if is_cancelled(status, error) => Self::Cancelled,
            Some(Status::Done) => Self::Done,
            Some(Status::Dead) => Self::Dead,
            None => Self::Unknown,
        }
    }

    /// The state's name, in lower case.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::New => PendingState::New.name(),
            Self::Delayed => PendingState::Delayed.name(),
            Self::Retrying => PendingState::Retrying.name(),
            Self::Done => "done",
            Self::Cancelled => "cancelled",
            Self::Dead => "dead",
            Self::Unknown => "unknown",
        }
    }

    /// True if the event still has to be delivered.
    #[must_use]
    pub const fn is_pending(self) -> bool {
        matches!(self, Self::New | Self::Delayed | Self::Retrying)
    }
}

impl From<PendingState> for EventState {
    fn from(state: PendingState) -> Self {
        match state {
            PendingState::New => Self::New,
            PendingState::Delayed => Self::Delayed,
            PendingState::Retrying => Self::Retrying,
        }
    }
}

impl ListedEvent {
    /// Its state at `now`, the present time of the database.
    #[must_use]
    pub fn state(&self, now: Timestamp) -> EventState {
        EventState::of(self.status, self.last_error.as_deref(), self.due_at, now)
    }
}

impl Record {
    /// Its state at `now`, the present time of the database.
    #[must_use]
    pub fn state(&self, now: Timestamp) -> EventState {
        EventState::of(self.status, self.last_error.as_deref(), self.available_at, now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::CANCELLED;

    #[test]
    fn a_state_says_more_than_the_status() {
        let now = Timestamp::from_micros(10);
        let (past, future) = (Some(Timestamp::from_micros(10)), Some(Timestamp::from_micros(11)));
        let table = [
            (Status::New.code(), None, None, "new"),
            (Status::New.code(), None, past, "new"),
            (Status::New.code(), None, future, "delayed"),
            (Status::Retry.code(), Some("no"), future, "retrying"),
            (Status::Retry.code(), Some(CANCELLED), past, "retrying"),
            (Status::Done.code(), None, future, "done"),
            (Status::Done.code(), Some("a fallback has ended it"), None, "done"),
            (Status::Done.code(), Some(CANCELLED), None, "cancelled"),
            (Status::Dead.code(), Some(CANCELLED), None, "dead"),
            (7, Some(CANCELLED), None, "unknown"),
        ];
        for (status, error, due_at, expected) in table {
            let state = EventState::of(status, error, due_at, now);
            assert_eq!(state.name(), expected, "{status}, {error:?}, {due_at:?}");
            assert_eq!(state.is_pending(), [0, 2].contains(&status), "{state:?}");
        }
    }
}
