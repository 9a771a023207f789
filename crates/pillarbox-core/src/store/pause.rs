use std::fmt;
use std::time::Duration;

use crate::clock::Timestamp;
use crate::error::ConfigError;
use crate::event::limits;

/// The thing that an operator has paused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PauseKind {
    /// An event type, for any handler of its events.
    Type,
    /// A handler that has a name, for events of any type.
    Handler,
}

impl PauseKind {
    /// The name that tables and texts have for it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Type => "type",
            Self::Handler => "handler",
        }
    }

    /// The kind of this [name](Self::name), to the byte; `None` if no kind has it.
    #[must_use]
    pub fn of_name(name: &str) -> Option<Self> {
        [Self::Type, Self::Handler].into_iter().find(|kind| kind.name() == name)
    }
}

impl fmt::Display for PauseKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// An event type or a handler that is paused: no call of it begins on any node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pause {
    /// An event type or a handler.
    pub kind: PauseKind,
    /// The event type, or the name of the handler.
    pub name: String,
    /// The time at which it was paused, by the database's clock.
    pub since: Timestamp,
    /// The time at which it ends by itself, by the database's clock; `None` if it has to be resumed.
    pub until: Option<Timestamp>,
    /// The person or program that has paused it, if it said so.
    pub by: Option<String>,
    /// The reason, if one was given.
    pub reason: Option<String>,
}

impl Pause {
    /// The maximum number of pauses in a table.
    pub const MAX_PAUSES: usize = 1000;
    /// The maximum number of characters of a reason.
    pub const MAX_REASON_CHARS: usize = 1000;
    /// The maximum number of characters of [`Pause::by`].
    pub const MAX_BY_CHARS: usize = 255;
    /// The longest time after which a pause ends by itself: ten years.
    pub const MAX_LENGTH: Duration = Duration::from_secs(3650 * 24 * 3600);

    /// True if rows of this type for this handler wait for its end.
    #[must_use]
    pub fn applies_to(&self, event_type: &str, handler: Option<&str>) -> bool {
        match self.kind {
            PauseKind::Type => self.name == event_type,
            PauseKind::Handler => handler == Some(&*self.name),
        }
    }
}

/// A pause that is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewPause {
    /// An event type or a handler.
    pub kind: PauseKind,
    /// The event type, or the name of the handler.
    pub name: String,
    /// The person or program that pauses it.
    pub by: Option<String>,
    /// The reason.
    pub reason: Option<String>,
    /// The time after which it ends by itself, by the database's clock.
    pub length: Option<Duration>,
}

impl NewPause {
    /// A pause without a reason that has to be resumed.
    #[must_use]
    pub fn new(kind: PauseKind, name: impl Into<String>) -> Self {
        Self { kind, name: name.into(), by: None, reason: None, length: None }
    }

    /// Accepts it if each of its texts fits into its column and its time is above zero.
    ///
    /// # Errors
    /// The field that is refused, and the remedy.
    pub fn check(&self) -> Result<(), ConfigError> {
        let (field, most) = match self.kind {
            PauseKind::Type => ("pause.type", limits::EVENT_TYPE),
            PauseKind::Handler => ("pause.handler", limits::HANDLER_ID),
        };
        check_text(field, &self.name, most)?;
        self.by.as_ref().map_or(Ok(()), |by| check_text("pause.by", by, Pause::MAX_BY_CHARS))?;
        self.reason.as_ref().map_or(Ok(()), |reason| check_text("pause.reason", reason, Pause::MAX_REASON_CHARS))?;
        match self.length {
            Some(length) if length < Duration::from_millis(1) || length > Pause::MAX_LENGTH => Err(ConfigError::new(
                "pause.for",
                format!("is {length:?}"),
                "set a time from 1ms to 3650 days, or none to pause until it is resumed",
            )),
            _ => Ok(()),
        }
    }
}

fn check_text(field: &'static str, text: &str, most: usize) -> Result<(), ConfigError> {
    let characters = text.chars().count();
    let (problem, remedy) = if text.is_empty() {
        ("is empty".to_owned(), "give it a value, or leave it out where it is optional".to_owned())
    } else if text.contains('\0') {
        ("contains a NUL character".to_owned(), "leave that character out".to_owned())
    } else if characters > most {
        (format!("has {characters} characters"), format!("shorten it to {most}"))
    } else {
        return Ok(());
    };
    Err(ConfigError::new(field, problem, remedy))
}

/// The answer to a pause that was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PauseChange {
    /// It is paused from now on.
    Paused,
    /// It was paused already: its reason, end and author are now those of the new pause.
    Updated,
    /// Refused: the table holds the maximum number of pauses, [`Pause::MAX_PAUSES`].
    TooMany,
}

/// The changes by operators that nodes have to notice.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Interventions {
    /// The number of times that operators have changed rows, as [`Fetched::interventions`](super::Fetched::interventions) counts them.
    pub count: i64,
    /// The pauses that have not ended, ascending by kind and name.
    pub pauses: Vec<Pause>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_is_known_by_its_name_alone() {
        for kind in [PauseKind::Type, PauseKind::Handler] {
            assert_eq!(PauseKind::of_name(kind.name()), Some(kind));
        }
        for other in ["", "Type", "types", "handler "] {
            assert_eq!(PauseKind::of_name(other), None, "{other:?}");
        }
    }

    #[test]
    fn a_pause_that_cannot_be_is_refused_by_its_field() {
        let pause = NewPause::new(PauseKind::Type, "order.placed");
        let long = "x".repeat(1001);
        let text = |text: &str| Some(text.to_owned());
        for (refused, field) in [
            (NewPause::new(PauseKind::Type, ""), "pause.type"),
            (NewPause::new(PauseKind::Type, "x".repeat(129)), "pause.type"),
            (NewPause::new(PauseKind::Handler, "a\0"), "pause.handler"),
            (NewPause { by: text(&long), ..pause.clone() }, "pause.by"),
            (NewPause { reason: text(&long), ..pause.clone() }, "pause.reason"),
            (NewPause { reason: text(""), ..pause.clone() }, "pause.reason"),
            (NewPause { length: Some(Duration::ZERO), ..pause.clone() }, "pause.for"),
            (NewPause { length: Some(Duration::MAX), ..pause.clone() }, "pause.for"),
        ] {
            assert_eq!(refused.check().map_err(|error| error.field()), Err(field), "{refused:?}");
        }
        let full =
            NewPause { reason: text(&long[1..]), by: text(&long[..255]), length: Some(Pause::MAX_LENGTH), ..pause };
        assert_eq!(full.check(), Ok(()));
    }
}
