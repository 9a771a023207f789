use std::fmt;

use pillarbox_core::error::{ConfigError, StoreError};

use crate::handlers::DuplicateHandler;

/// An outbox could not be started. Nothing runs and nothing was changed in the table.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// A setting is wrong, or two of them contradict each other.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// Two handlers claim the same events.
    #[error("{0}")]
    Handlers(#[from] DuplicateHandler),
    /// The database refused, or cannot be reached.
    #[error("the outbox could not be started: {0}")]
    Store(#[from] StoreError),
}

/// Writes the same text as `Display`, as [`StoreError`] does.
impl fmt::Debug for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
