use std::fmt;

use pillarbox_core::error::{ConfigError, StoreError};

use crate::handlers::DuplicateHandler;

/// An outbox could not be started. Nothing runs, and no event was delivered. A node that had joined has left again, or is gone once its lease
/// ends where the database does not answer.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// A setting is wrong, or two of them contradict each other.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// Two handlers claim the same events.
    #[error(transparent)]
    Handlers(#[from] DuplicateHandler),
    /// The database refused, or cannot be reached.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Writes the same text as `Display`, as [`StoreError`] does.
impl fmt::Debug for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use std::error::Error;

    use pillarbox_core::error::StoreErrorKind;

    use super::*;

    /// The error and all of its causes, as a program prints them that knows nothing of ours.
    fn chain(error: &(dyn Error + 'static)) -> Vec<String> {
        std::iter::successors(Some(error), |error| (*error).source()).map(ToString::to_string).collect()
    }

    #[test]
    fn a_chain_says_each_sentence_once() {
        let store = StoreError::new(StoreErrorKind::Denied, "connect to the database", "the password is wrong");
        let table: [(StartError, &[&str]); 3] = [
            (
                store.at("db:5432/shop").with_source("SQLSTATE 28P01").into(),
                &["could not connect to the database at db:5432/shop: the password is wrong", "SQLSTATE 28P01"],
            ),
            (
                ConfigError::new("lease", "is zero", "set a duration").into(),
                &["setting `lease` is zero; set a duration"],
            ),
            (
                DuplicateHandler::same_name(&"placed".into(), "mailer").into(),
                &[
                    "two handlers of event type `placed` of aggregate type `__GLOBAL__` are named `mailer`; give each a name of its own",
                ],
            ),
        ];
        for (error, expected) in table {
            assert_eq!(chain(&error), expected);
        }
    }
}
