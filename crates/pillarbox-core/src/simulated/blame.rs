use crate::handle::{HandlerError, HandlerErrorKind};

/// The part of a delivery that an error of a handler blames.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Blame {
    /// The attempt, which counts; another one may succeed.
    Attempt,
    /// Nobody: no attempt is counted.
    Nobody,
    /// The event, which is given up.
    Event,
}

impl Blame {
    /// The part that this error blames.
    #[must_use]
    pub fn of(error: &HandlerError) -> Self {
        if error.is_deferred() || error.is_unroutable() {
            return Self::Nobody;
        }
        if matches!(error.kind(), HandlerErrorKind::Unrecoverable) { Self::Event } else { Self::Attempt }
    }
}
