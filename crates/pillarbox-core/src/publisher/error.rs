use std::time::Duration;

/// Why a message was not confirmed.
///
/// The text names the broker's or the network's complaint and holds no secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{problem}")]
pub struct PublishError {
    kind: PublishErrorKind,
    problem: String,
    retry_after: Option<Duration>,
}

/// Whose fault a failure is, and what that means for the message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PublishErrorKind {
    /// The broker takes nothing at the moment: it cannot be reached, does not answer in time, or says that it is overloaded. No
    /// message is to blame, so no attempt is counted.
    Unavailable,
    /// The broker answers and will take nothing until somebody changes something: wrong credentials, a target that is missing. No
    /// message is to blame, so no attempt is counted.
    Misconfigured,
    /// This message was not taken, and may be later. The attempt counts.
    Temporary,
    /// This message will never be taken, such as one that is too large.
    Permanent,
}

impl PublishError {
    /// The broker takes nothing at the moment.
    pub fn unavailable(problem: impl Into<String>) -> Self {
        Self::new(PublishErrorKind::Unavailable, problem)
    }

    /// The broker will take nothing until somebody changes something.
    pub fn misconfigured(problem: impl Into<String>) -> Self {
        Self::new(PublishErrorKind::Misconfigured, problem)
    }

    /// This message was not taken, and may be later.
    pub fn temporary(problem: impl Into<String>) -> Self {
        Self::new(PublishErrorKind::Temporary, problem)
    }

    /// This message will never be taken.
    pub fn permanent(problem: impl Into<String>) -> Self {
        Self::new(PublishErrorKind::Permanent, problem)
    }

    /// An error of this kind.
    pub fn new(kind: PublishErrorKind, problem: impl Into<String>) -> Self {
        Self { kind, problem: problem.into(), retry_after: None }
    }

    /// Says when to try again, as the broker has asked for.
    #[must_use]
    pub fn retry_after(mut self, delay: Duration) -> Self {
        self.retry_after = Some(delay);
        self
    }

    /// Whose fault it is.
    #[must_use]
    pub fn kind(&self) -> PublishErrorKind {
        self.kind
    }

    /// When the broker asked to be tried again.
    #[must_use]
    pub fn delay(&self) -> Option<Duration> {
        self.retry_after
    }

    /// Whether no message is to blame.
    #[must_use]
    pub fn blames_the_destination(&self) -> bool {
        matches!(self.kind, PublishErrorKind::Unavailable | PublishErrorKind::Misconfigured)
    }
}
