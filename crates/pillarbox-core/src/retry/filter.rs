use std::error::Error;
use std::fmt;
use std::sync::Arc;

/// A predicate that is true for errors of a certain sort.
type Predicate = Arc<dyn Fn(&(dyn Error + 'static)) -> bool + Send + Sync>;

/// Selects the errors of a handler that are tried again.
///
/// Every predicate is asked about the error and about each of its causes. An error that one of `never` matches is not tried
/// again, even if others match. If there is any `only`, an error that none of them matches is not tried again either.
/// Without a predicate every error is. A [name](crate::handle::HandlerError::named) is a predicate as well.
#[derive(Clone, Default)]
pub struct ErrorFilter {
    only: Matching,
    never: Matching,
}

/// The errors that one of several predicates matches, or that have one of several names.
#[derive(Clone, Default)]
struct Matching {
    predicates: Vec<Predicate>,
    names: Vec<Box<str>>,
}

impl Matching {
    fn is_empty(&self) -> bool {
        self.predicates.is_empty() && self.names.is_empty()
    }

    fn len(&self) -> usize {
        self.predicates.len() + self.names.len()
    }

    fn has(&self, cause: &(dyn Error + 'static)) -> bool {
        self.predicates.iter().any(|predicate| predicate(cause))
    }

    fn has_name(&self, is_named: &impl Fn(&str) -> bool) -> bool {
        self.names.iter().any(|name| is_named(name))
    }
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
        self.only.predicates.push(Arc::new(predicate));
        self
    }

    /// Never tries again what `predicate` matches.
    #[must_use]
    pub fn never_retry_on(
        mut self,
        predicate: impl Fn(&(dyn Error + 'static)) -> bool + Send + Sync + 'static,
    ) -> Self {
        self.never.predicates.push(Arc::new(predicate));
        self
    }

    /// Tries errors of this [name](crate::handle::HandlerError::named) again, and nothing that no such name or predicate matches.
    #[must_use]
    pub fn retry_on_named(mut self, name: impl Into<Box<str>>) -> Self {
        self.only.names.push(name.into());
        self
    }

    /// Never tries errors of this [name](crate::handle::HandlerError::named) again.
    #[must_use]
    pub fn never_retry_on_named(mut self, name: impl Into<Box<str>>) -> Self {
        self.never.names.push(name.into());
        self
    }

    /// True if an error with these causes, itself the first of them, is to be tried again; `is_named` tells its names.
    pub fn passes<'a>(
        &self,
        causes: impl Iterator<Item = &'a (dyn Error + 'static)>,
        is_named: impl Fn(&str) -> bool,
    ) -> bool {
        if self.is_empty() {
            return true;
        }
        if self.never.has_name(&is_named) {
            return false;
        }
        let mut wanted = self.only.is_empty() || self.only.has_name(&is_named);
        for cause in causes {
            if self.never.has(cause) {
                return false;
            }
            wanted = wanted || self.only.has(cause);
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

    fn passes(filter: &ErrorFilter, error: &HandlerError) -> bool {
        filter.passes(error.causes(), |name| error.is_named(name))
    }

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
            // A `HandlerError` on the way hides none of its causes.
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
                assert_eq!(passes(filter, &wrap(refused().into())), *io, "filter {number}, form {form}");
                assert_eq!(passes(filter, &wrap("text".into())), *text, "filter {number}, form {form}");
            }
        }
    }

    #[test]
    fn names_select_errors_as_predicates_do() {
        let io = || HandlerError::classify(IoError::from(ErrorKind::ConnectionRefused));
        let full = || HandlerError::classify(Sending(Box::new(HandlerError::retryable("full").named("full"))));
        let none = ErrorFilter::default;
        let table = [
            (none().retry_on_named("io::error::Error"), true, false),
            (none().retry_on_named("full"), false, true),
            (none().never_retry_on_named("full"), true, false),
            (none().never_retry_on_named("Sending"), true, false),
            (none().retry_on_named("Sending").never_retry_on_named("full"), false, false),
            (none().retry_on_named("full").retry_on(is_io), true, true),
            (none().retry_on_named("Sending").never_retry_on(is_io), false, true),
            (none().retry_on_named("Others"), false, false),
        ];
        for (number, (filter, of_io, of_full)) in table.iter().enumerate() {
            assert_eq!((passes(filter, &io()), passes(filter, &full())), (*of_io, *of_full), "filter {number}");
        }
    }
}
