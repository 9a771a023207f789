use super::Admin;
use crate::error::StoreError;

/// A change of events that operators make.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum OperatorAction {
    /// [Replays](Admin::replay) DEAD events.
    Replay,
    /// [Discards](Admin::discard) DEAD events.
    Discard,
    /// [Retries](Admin::retry_now) pending events that wait for a time.
    RetryNow,
    /// [Cancels](Admin::cancel) pending events.
    Cancel,
}

impl OperatorAction {
    /// All actions.
    pub const ALL: [Self; 4] = [Self::Replay, Self::Discard, Self::RetryNow, Self::Cancel];

    /// The number of rows that a change of many makes in one transaction.
    pub const PAGE: usize = 500;

    /// The action's name: in the audit table, and wherever else a program names it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Replay => "replay",
            Self::Discard => "discard",
            Self::RetryNow => "retry-now",
            Self::Cancel => "cancel",
        }
    }

    /// The result in words: `replayed`.
    #[must_use]
    pub const fn participle(self) -> &'static str {
        match self {
            Self::Replay => "replayed",
            Self::Discard => "discarded",
            Self::RetryNow => "made due now",
            Self::Cancel => "cancelled",
        }
    }

    /// True if it changes DEAD events, false if it changes pending ones.
    #[must_use]
    pub const fn is_about_dead(self) -> bool {
        matches!(self, Self::Replay | Self::Discard)
    }

    /// Changes those of the rows with these numbers that it is about, in one transaction, and returns their numbers.
    ///
    /// # Errors
    /// The database's.
    pub async fn apply<S: Admin + ?Sized>(self, store: &S, seqs: &[i64]) -> Result<Vec<i64>, StoreError> {
        match self {
            Self::Replay => store.replay(seqs).await,
            Self::Discard => store.discard(seqs).await,
            Self::RetryNow => store.retry_now(seqs).await,
            Self::Cancel => store.cancel(seqs).await,
        }
    }
}
