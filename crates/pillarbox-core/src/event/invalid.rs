use std::borrow::Cow;

/// A value that cannot be an event: the field, the problem and the remedy.
///
/// It is returned when the event is built, before any SQL, so the caller's transaction stays usable. Retrying the same
/// value fails the same way.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("event field `{field}` {problem}; {remedy}")]
pub struct InvalidEvent {
    field: &'static str,
    problem: Cow<'static, str>,
    remedy: &'static str,
}

impl InvalidEvent {
    /// An error that reads "event field `field` problem; remedy".
    #[must_use]
    pub fn new(field: &'static str, problem: impl Into<Cow<'static, str>>, remedy: &'static str) -> Self {
        Self { field, problem: problem.into(), remedy }
    }

    /// The name of the field, as in [`Envelope`](super::Envelope).
    #[must_use]
    pub fn field(&self) -> &'static str {
        self.field
    }

    /// The problem with its value, without the value itself.
    #[must_use]
    pub fn problem(&self) -> &str {
        &self.problem
    }

    /// The remedy for the problem.
    #[must_use]
    pub fn remedy(&self) -> &'static str {
        self.remedy
    }
}
