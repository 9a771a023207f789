use maud::{Markup, html};
use pillarbox_core::row;
use pillarbox_core::store::{PendingState, Record};

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
    pub(crate) fn of(record: &Record) -> Self {
        use row::Status as Stored;
        if record.is_cancelled() {
            return Self::Cancelled;
        }
        let stored = [Stored::New, Stored::Retry, Stored::Done, Stored::Dead].into_iter();
        match stored.into_iter().find(|status| status.code() == record.status) {
            Some(Stored::New) if record.available_at.is_some() => Self::Delayed,
            Some(Stored::New) => Self::New,
            Some(Stored::Retry) => Self::Retrying,
            Some(Stored::Done) => Self::Done,
            Some(Stored::Dead) => Self::Dead,
            _ => Self::Unknown,
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
