use std::error::Error;
use std::fmt;
use std::sync::Arc;

/// A predicate that is true for errors of a certain sort.
type Predicate = Arc<dyn Fn(&(dyn Error + 'static)) -> bool + Send + Sync>;

/// Selects the errors of a handler that are tried again.
///
/// Every predicate is asked about the error and about each of its causes. An error that one of `never` matches is not tried
/// again, whatever else matches. Where there is any `only`, an error that none of them matches is not tried again either.
/// Without a predicate every error is.
#[derive(Clone, Default)]
pub struct ErrorFilter {
    only: Vec<Predicate>,
    never: Vec<Predicate>,
}

impl ErrorFilter {
    /// True if it lets every error pass.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.only.is_empty() && self.never.is_empty()
    }

    /// Tries again what `predicate` matches, and nothing that no such predicate does.
    #[must_use]
    pub fn retry_on(mut self, predicate: impl Fn(&(dyn Error + 'static)) -> bool + Send + Sync + 'static) -> Self {
        self.only.push(Arc::new(predicate));
        self
    }

    /// Never tries again what `predicate` matches.
    #[must_use]
    pub fn never_retry_on(
        mut self,
        predicate: impl Fn(&(dyn Error + 'static)) -> bool + Send + Sync + 'static,
    ) -> Self {
        self.never.push(Arc::new(predicate));
        self
    }

    /// True if an error with these causes, itself the first of them, is to be tried again.
    pub fn passes<'a>(&self, causes: impl Iterator<Item = &'a (dyn Error + 'static)>) -> bool {
        if self.is_empty() {
            return true;
        }
        let mut wanted = self.only.is_empty();
        for cause in causes {
            let matches = |predicate: &Predicate| predicate(cause);
            if self.never.iter().any(matches) {
                return false;
            }
            wanted = wanted || self.only.iter().any(matches);
        }
        wanted
    }
}

impl fmt::Debug for ErrorFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ErrorFilter(retry on {}, never on {})", self.only.len(), self.never.len())
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Error as IoError, ErrorKind};

    use super::*;
    use crate::error::BoxError;
    use crate::handle::HandlerError;

    #[derive(Debug, thiserror::Error)]
    #[error("sending the mail")]
    struct Sending(#[source] BoxError);

    fn is_io(error: &(dyn Error + 'static)) -> bool {
        error.is::<IoError>()
    }

    fn is_refused(error: &(dyn Error + 'static)) -> bool {
        error.downcast_ref::<IoError>().is_some_and(|error| error.kind() == ErrorKind::ConnectionRefused)
    }

    fn is_text(error: &(dyn Error + 'static)) -> bool {
        error.to_string() == "text"
    }

    #[test]
    fn never_wins_and_only_excludes_through_every_cause() {
        let refused = || IoError::from(ErrorKind::ConnectionRefused);
        let errors: [fn(BoxError) -> HandlerError; 4] = [
            HandlerError::classify,
            |error| HandlerError::classify(HandlerError::retryable(error)),
            |error| HandlerError::classify(Sending(error)),
            // A `HandlerError` on the way hides nothing of what it was made of.
            |error| HandlerError::classify(Sending(Box::new(HandlerError::retryable(error)))),
        ];
        let none = ErrorFilter::default;
        let table = [
            (none(), true, true),
            (none().retry_on(is_io), true, false),
            (none().retry_on(is_text).retry_on(is_refused), true, true),
            (none().never_retry_on(is_refused), false, true),
            (none().retry_on(is_io).never_retry_on(is_refused), false, false),
            (none().never_retry_on(is_refused).retry_on(is_text), false, true),
        ];
        for (number, (filter, io, text)) in table.iter().enumerate() {
            for (form, wrap) in errors.iter().enumerate() {
                assert_eq!(filter.passes(wrap(refused().into()).causes()), *io, "filter {number}, form {form}");
                assert_eq!(filter.passes(wrap("text".into()).causes()), *text, "filter {number}, form {form}");
            }
        }
    }
}
