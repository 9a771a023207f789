use serde::Deserialize;

use crate::parts::Status;

/// A change of events.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Action {
    Replay,
    Discard,
    RetryNow,
    Cancel,
}

impl Action {
    /// Its name, in forms and in the audit.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Replay => "replay",
            Self::Discard => "discard",
            Self::RetryNow => "retry-now",
            Self::Cancel => "cancel",
        }
    }

    pub(crate) const fn title(self) -> &'static str {
        match self {
            Self::Replay => "Replay",
            Self::Discard => "Discard",
            Self::RetryNow => "Try now",
            Self::Cancel => "Cancel",
        }
    }

    pub(crate) const fn participle(self) -> &'static str {
        match self {
            Self::Replay => "replayed",
            Self::Discard => "discarded",
            Self::RetryNow => "made due now",
            Self::Cancel => "cancelled",
        }
    }

    /// The consequence, in a sentence.
    pub(crate) const fn consequence(self) -> &'static str {
        match self {
            Self::Replay => "They become NEW, without attempts and error, and are delivered again at once.",
            Self::Discard => "They are deleted for good. Nothing brings them back.",
            Self::RetryNow => "Their next attempt begins now; their attempts and errors stay.",
            Self::Cancel => "They end without a delivery. A call that runs is not stopped.",
        }
    }

    /// True if what it takes away does not come back.
    pub(crate) const fn is_final(self) -> bool {
        matches!(self, Self::Discard | Self::Cancel)
    }

    pub(crate) const fn is_about_dead(self) -> bool {
        matches!(self, Self::Replay | Self::Discard)
    }

    /// True if it changes rows in this state.
    pub(crate) fn is_about(self, status: Status) -> bool {
        match self {
            Self::Replay | Self::Discard => status == Status::Dead,
            Self::RetryNow => matches!(status, Status::Delayed | Status::Retrying),
            Self::Cancel => status.is_pending(),
        }
    }
}
