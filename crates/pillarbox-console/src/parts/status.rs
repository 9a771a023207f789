use maud::{Markup, html};
use pillarbox_core::clock::Timestamp;
use pillarbox_core::row;
use pillarbox_core::store::{CANCELLED, ListedEvent, PendingState, Record};

/// The state of an event as the console names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Status {
    New,
    Delayed,
    Retrying,
    Done,
    Cancelled,
    Dead,
    Unknown,
}

impl Status {
    pub(crate) fn of(record: &Record, now: Timestamp) -> Self {
        Self::stored(record.status, record.is_cancelled(), record.available_at, now)
    }

    pub(crate) fn listed(event: &ListedEvent, now: Timestamp) -> Self {
        Self::stored(event.status, event.last_error.as_deref() == Some(CANCELLED), event.due_at, now)
    }

    fn stored(status: i16, is_cancelled: bool, due_at: Option<Timestamp>, now: Timestamp) -> Self {
        use row::Status as Stored;
        match Stored::ALL.into_iter().find(|stored| stored.code() == status) {
            Some(Stored::Done) if is_cancelled => Self::Cancelled,
            Some(Stored::New) if due_at.is_some_and(|due_at| due_at > now) => Self::Delayed,
            Some(Stored::New) => Self::New,
            Some(Stored::Retry) => Self::Retrying,
            Some(Stored::Done) => Self::Done,
            Some(Stored::Dead) => Self::Dead,
            None => Self::Unknown,
        }
    }

    pub(crate) fn is_pending(self) -> bool {
        matches!(self, Self::New | Self::Delayed | Self::Retrying)
    }

    /// Its sign, its word, and the class of its color: never the color alone.
    const fn look(self) -> (&'static str, &'static str, &'static str) {
        match self {
            Self::New => ("○", "new", "neutral"),
            Self::Delayed => ("◷", "delayed", "neutral"),
            Self::Retrying => ("↻", "retrying", "warn"),
            Self::Done => ("✓", "done", "good"),
            Self::Cancelled => ("⊘", "cancelled", "neutral"),
            Self::Dead => ("✕", "DEAD", "bad"),
            Self::Unknown => ("?", "unknown", "warn"),
        }
    }
}

impl From<PendingState> for Status {
    fn from(state: PendingState) -> Self {
        match state {
            PendingState::New => Self::New,
            PendingState::Delayed => Self::Delayed,
            PendingState::Retrying => Self::Retrying,
        }
    }
}

/// The state as a sign and a word.
pub(crate) fn badge(status: Status) -> Markup {
    let (sign, word, class) = status.look();
    html! { span class={ "badge " (class) } { span aria-hidden="true" { (sign) } " " (word) } }
}
