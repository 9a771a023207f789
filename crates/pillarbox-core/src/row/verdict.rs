use std::fmt;
use std::time::Duration;

use super::{Position, RowId};

/// The states of a row, as the table's `status` column holds them.
///
/// ```text
/// NEW ──▶ DONE | RETRY | DEAD      RETRY ──▶ DONE | RETRY | DEAD      DEAD ──▶ NEW (replay)
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(i16)]
pub enum Status {
    /// Waiting for its first attempt.
    New = 0,
    /// Delivered.
    Done = 1,
    /// Waiting for another attempt.
    Retry = 2,
    /// Given up.
    Dead = 3,
}

impl Status {
    /// All of them, in the order of their codes.
    pub const ALL: [Self; 4] = [Self::New, Self::Done, Self::Retry, Self::Dead];

    /// The code in the `status` column.
    #[must_use]
    pub const fn code(self) -> i16 {
        self as i16
    }

    /// The state of this code; `None` if this release does not know it.
    #[must_use]
    pub fn from_code(code: i16) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.code() == code)
    }

    /// True if the row still has to be delivered.
    #[must_use]
    pub const fn is_pending(self) -> bool {
        matches!(self, Self::New | Self::Retry)
    }

    /// The one table of legal transitions; the guards in every store's SQL say the same.
    #[must_use]
    pub const fn can_become(self, next: Self) -> bool {
        match self {
            Self::New | Self::Retry => !matches!(next, Self::New),
            Self::Dead => matches!(next, Self::New),
            Self::Done => false,
        }
    }
}

/// The word for it in the documentation of the table: `NEW`, `DONE`, `RETRY` or `DEAD`.
impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::New => "NEW",
            Self::Done => "DONE",
            Self::Retry => "RETRY",
            Self::Dead => "DEAD",
        })
    }
}

/// The state of a row that a verdict was decided on. A row that is in another by now refuses the verdict: recorded twice it
/// counts once, and one that was sent before an operator replayed the row changes nothing afterwards.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Expected {
    /// Failed handler calls so far.
    pub attempts: u32,
    /// The number of times that the row was replayed, from DEAD to NEW.
    pub replays: u32,
}

impl Expected {
    /// The state of a row that was never tried in vain and never replayed: nearly every one.
    pub const FIRST: Self = Self { attempts: 0, replays: 0 };
}

/// A change that is to be recorded in a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    /// The row.
    pub row: RowId,
    /// The state of the row that it was decided on.
    pub expected: Expected,
    /// The change.
    pub change: Change,
}

impl Verdict {
    /// The failure that the row keeps as a [`FailedAttempt`](crate::store::FailedAttempt), with the attempts up to it; `None` if there is
    /// none, as with a deferral.
    #[must_use]
    pub fn failure(&self) -> Option<(u32, &str)> {
        match &self.change {
            Change::Done | Change::DeliveredAs(_) | Change::Remove | Change::Retry { error: None, .. } => None,
            Change::Retry { attempts, error: Some(error), .. } => {
                (*attempts > self.expected.attempts).then_some((*attempts, error))
            }
            Change::Rescued { attempts, error }
            | Change::RetryInPlace { attempts, error }
            | Change::Dead { attempts, error } => Some((*attempts, error)),
        }
    }
}

/// The change that a verdict makes to a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// DONE; the error of earlier attempts is cleared.
    Done,
    /// As DONE, and the row keeps the position at which the broker has the event.
    DeliveredAs(Position),
    /// DONE by a fallback, after the handler failed for good: the attempts and the last error are kept.
    Rescued {
        /// Failed handler calls, the last one included if it counted.
        attempts: u32,
        /// The error of the handler, cleaned.
        error: String,
    },
    /// As DONE, and the row is deleted: nothing is kept of it.
    Remove,
    /// RETRY, due again `delay` from now by the database's clock.
    Retry {
        /// Failed handler calls so far, this one included if it failed.
        attempts: u32,
        /// The time to wait.
        delay: Duration,
        /// The error, cleaned; `None` leaves that of the row.
        error: Option<String>,
    },
    /// RETRY in its place, which is that of its number: it has no due time, its holder stays, the node keeps it in memory and tries again by itself.
    RetryInPlace {
        /// Failed handler calls so far, this one included.
        attempts: u32,
        /// The error, cleaned.
        error: String,
    },
    /// DEAD.
    Dead {
        /// Failed handler calls so far, this one included if it failed.
        attempts: u32,
        /// The error, cleaned.
        error: String,
    },
}

impl Change {
    /// The state it leads to.
    #[must_use]
    pub const fn status(&self) -> Status {
        match self {
            Self::Done | Self::DeliveredAs(_) | Self::Rescued { .. } | Self::Remove => Status::Done,
            Self::Retry { .. } | Self::RetryInPlace { .. } => Status::Retry,
            Self::Dead { .. } => Status::Dead,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::Status::{self, Dead, Done, New, Retry};
    use super::{Change, Expected, Position, RowId, Verdict};
    use crate::event::EventId;

    #[test]
    fn a_failure_counts_or_gives_the_event_up() {
        let retry = |attempts, error: Option<&str>| Change::Retry {
            attempts,
            delay: Duration::ZERO,
            error: error.map(str::to_owned),
        };
        let error = "no".to_owned();
        for (change, failure) in [
            (Change::Done, None),
            (Change::Remove, None),
            (Change::DeliveredAs(Position::new("s/1").expect("a position")), None),
            (retry(2, None), None),
            (retry(2, Some("no")), None),
            (retry(3, Some("no")), Some((3, "no"))),
            (Change::RetryInPlace { attempts: 3, error: error.clone() }, Some((3, "no"))),
            (Change::Rescued { attempts: 2, error: error.clone() }, Some((2, "no"))),
            (Change::Dead { attempts: 2, error }, Some((2, "no"))),
        ] {
            let row = RowId { seq: 1, event_id: EventId::from_stored("e"), handler: None };
            let verdict = Verdict { row, expected: Expected { attempts: 2, replays: 0 }, change };
            assert_eq!(verdict.failure(), failure, "{verdict:?}");
        }
    }

    #[test]
    fn only_the_documented_transitions_are_legal() {
        let legal = [(New, Done), (New, Retry), (New, Dead), (Retry, Done), (Retry, Retry), (Retry, Dead), (Dead, New)];
        for from in Status::ALL {
            for to in Status::ALL {
                assert_eq!(from.can_become(to), legal.contains(&(from, to)), "{from:?} -> {to:?}");
            }
        }
    }

    #[test]
    fn codes_are_those_of_the_table() {
        assert_eq!(Status::ALL.map(Status::code), [0, 1, 2, 3]);
        assert_eq!([0, 1, 2, 3].map(Status::from_code), Status::ALL.map(Some));
        assert_eq!([-1, 4, i16::MAX].map(Status::from_code), [None; 3]);
        assert_eq!(Status::ALL.map(|status| status.to_string()), ["NEW", "DONE", "RETRY", "DEAD"]);
    }
}
