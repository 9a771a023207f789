use std::time::Duration;

/// The error of a message that was not confirmed.
///
/// The text names the broker's or the network's complaint and holds no secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{problem}")]
pub struct PublishError {
    kind: PublishErrorKind,
    scope: FailureScope,
    problem: String,
    retry_after: Option<Duration>,
}

/// The part of a destination that a failure concerns: a route whose target depends on the event leaves it alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum FailureScope {
    /// The broker, with all its targets: the connection, the credentials.
    #[default]
    Broker,
    /// The [server](super::Publisher::server) that the target names.
    Server,
    /// The message's target: a queue that is missing, an endpoint that asks for a pause.
    Target,
    /// The message alone: it was not sent, and nothing was learnt about its target.
    Message,
}

/// The cause of a failure, and its consequence for the message.
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
        Self { kind, scope: FailureScope::default(), problem: problem.into(), retry_after: None }
    }

    /// Limits the failure to a part of the destination, so that messages for other parts are still sent.
    #[must_use]
    pub fn limited_to(mut self, scope: FailureScope) -> Self {
        self.scope = scope;
        self
    }

    /// Says when to try again, as the broker has asked for.
    #[must_use]
    pub fn retry_after(mut self, delay: Duration) -> Self {
        self.retry_after = Some(delay);
        self
    }

    /// The kind of failure.
    #[must_use]
    pub fn kind(&self) -> PublishErrorKind {
        self.kind
    }

    /// The part of the destination that it concerns. Default: [`FailureScope::Broker`].
    #[must_use]
    pub fn scope(&self) -> FailureScope {
        self.scope
    }

    /// The delay after which the broker asked to be tried again.
    #[must_use]
    pub fn delay(&self) -> Option<Duration> {
        self.retry_after
    }

    /// True if no message is to blame.
    #[must_use]
    pub fn blames_the_destination(&self) -> bool {
        matches!(self.kind, PublishErrorKind::Unavailable | PublishErrorKind::Misconfigured)
    }
}
