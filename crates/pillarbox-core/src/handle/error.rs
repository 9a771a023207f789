use std::any::type_name_of_val;
use std::error::Error;
use std::fmt;
use std::time::Duration;

use crate::error::BoxError;

/// A handler's failure that says what should happen next.
///
/// ```
/// use pillarbox_core::handle::HandlerError;
/// # fn parse(_: &str) -> Result<u32, std::num::ParseIntError> { Ok(1) }
/// async fn bill(amount: String) -> Result<(), HandlerError> {
///     let cents = parse(&amount).map_err(HandlerError::unrecoverable)?;
///     # let _ = cents;
///     Ok(())
/// }
/// ```
#[derive(Debug)]
pub struct HandlerError {
    kind: HandlerErrorKind,
    source: BoxError,
    /// The path of the type that it was made of, unless it was given another name.
    name: &'static str,
}

/// The maximum length to which a chain of causes is followed. A chain that loops would be a bug of the error type; the limit keeps
/// it from becoming ours.
const MAX_CAUSES: usize = 64;
/// The number of causes that a text quotes.
const MAX_QUOTED: usize = 16;

/// The consequence that a failure asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HandlerErrorKind {
    /// Raised by the engine; always retried, regardless of error filters.
    Interrupted,
    /// Another attempt after the backoff; this one counts.
    Retryable,
    /// Another attempt after this time, at most 365 days; this one counts.
    RetryAfter(Duration),
    /// Another delivery after this time, at least 10 ms and at most 365 days; no attempt is counted.
    Deferred(Duration),
    /// As `Deferred`, but only this process has to wait.
    DeferredOnThisNode(Duration),
    /// No destination is known for the event; another delivery after this time, at least 10 ms and at most 365 days.
    Unroutable(Duration),
    /// None: the event goes DEAD.
    Unrecoverable,
}

impl HandlerError {
    /// A failure that counts as an attempt and is tried again after the backoff. Any other error means the same.
    pub fn retryable(error: impl Into<BoxError>) -> Self {
        Self::of(HandlerErrorKind::Retryable, error)
    }

    /// A failure that counts as an attempt and is tried again after `delay`, at most 365 days, such as a `Retry-After` answer. To defer an event
    /// that has not failed, return [`Outcome::Defer`](super::Outcome::Defer), which counts none.
    pub fn retry_after(delay: Duration, error: impl Into<BoxError>) -> Self {
        Self::of(HandlerErrorKind::RetryAfter(delay), error)
    }

    /// A failure that is not the event's, such as a broker that cannot be reached: the event is tried again after `delay`, at least 10 ms and at most
    /// 365 days, and no attempt is counted, however long it lasts.
    pub fn deferred(delay: Duration, error: impl Into<BoxError>) -> Self {
        Self::of(HandlerErrorKind::Deferred(delay), error)
    }

    /// As [`deferred`](Self::deferred), where only this process may be cut off: in mode `multi_node` another node may deliver the
    /// event at once, and this one does not take it again before `delay` is over. In other modes both are the same. The bounds of `delay` are the same
    /// in all modes.
    pub fn deferred_on_this_node(delay: Duration, error: impl Into<BoxError>) -> Self {
        Self::of(HandlerErrorKind::DeferredOnThisNode(delay), error)
    }

    /// Nobody takes the event, as if it had no handler: for handlers that pass events on. It is tried again after `delay`, at least 10 ms and at most
    /// 365 days, since a newer release may know where it goes, no attempt is counted, and it goes DEAD once it is too old.
    pub fn unroutable(delay: Duration, error: impl Into<BoxError>) -> Self {
        Self::of(HandlerErrorKind::Unroutable(delay), error)
    }

    /// A failure that no repetition will mend: the event goes DEAD at once and the attempt is not counted.
    pub fn unrecoverable(error: impl Into<BoxError>) -> Self {
        Self::of(HandlerErrorKind::Unrecoverable, error)
    }

    /// The handler has not failed, but could not end.
    pub fn interrupted(problem: impl Into<BoxError>) -> Self {
        Self::of(HandlerErrorKind::Interrupted, problem)
    }

    /// Finds what an error asks for: the first `HandlerError` in its chain of causes decides.
    pub fn classify(error: impl Into<BoxError>) -> Self {
        let name = type_name_of_val(&error);
        let error = match error.into().downcast::<Self>() {
            Ok(own) => return *own,
            Err(other) => other,
        };
        let mut causes = std::iter::successors(error.source(), |cause| (*cause).source()).take(MAX_CAUSES);
        let own = causes.find_map(|cause| cause.downcast_ref::<Self>());
        let kind = own.map_or(HandlerErrorKind::Retryable, |own| own.kind);
        Self { kind, source: error, name }
    }

    fn of(kind: HandlerErrorKind, error: impl Into<BoxError>) -> Self {
        let name = type_name_of_val(&error);
        Self { kind, source: error.into(), name }
    }

    /// Gives it a name, by which the rules for retries and the [configuration](crate::retry::Retry::retry_on_named) tell it from others. Without
    /// one its name is the path of the type that it was made of, such as `shop::mail::MailError`; an error that was boxed before has none.
    ///
    /// ```
    /// use pillarbox_core::handle::HandlerError;
    ///
    /// let full = HandlerError::retryable("the mailbox is full").named("mailbox-full");
    /// ```
    #[must_use]
    pub fn named(self, name: &'static str) -> Self {
        Self { name, ..self }
    }

    /// True if it, or a `HandlerError` among its causes, has this name. Of the path of a type the end is enough: `MailError` is the name of
    /// `shop::mail::MailError`, too.
    #[must_use]
    pub fn is_named(&self, name: &str) -> bool {
        let first: &(dyn Error + 'static) = &*self.source;
        let causes = std::iter::successors(Some(first), |error| (*error).source()).take(MAX_CAUSES);
        let mut names = causes.filter_map(|cause| Some(cause.downcast_ref::<Self>()?.name));
        is_name_of(name, self.name) || names.any(|own| is_name_of(name, own))
    }

    /// The error and its causes. Of a `HandlerError` among them comes what it was made of, which it shows as itself.
    pub fn causes(&self) -> impl Iterator<Item = &(dyn Error + 'static)> {
        fn made_of<'a>(mut error: &'a (dyn Error + 'static)) -> &'a (dyn Error + 'static) {
            while let Some(own) = error.downcast_ref::<HandlerError>() {
                error = &*own.source;
            }
            error
        }
        let first: &(dyn Error + 'static) = made_of(&*self.source);
        std::iter::successors(Some(first), |error| (*error).source().map(made_of)).take(MAX_CAUSES)
    }

    /// True if no attempt is counted because no event is to blame.
    #[must_use]
    pub fn is_deferred(&self) -> bool {
        matches!(self.kind, HandlerErrorKind::Deferred(_) | HandlerErrorKind::DeferredOnThisNode(_))
    }

    /// True if nobody takes the event.
    #[must_use]
    pub fn is_unroutable(&self) -> bool {
        matches!(self.kind, HandlerErrorKind::Unroutable(_))
    }

    /// For how long this process cannot take the event, where another may.
    #[must_use]
    pub fn node_backoff(&self) -> Option<Duration> {
        match self.kind {
            HandlerErrorKind::DeferredOnThisNode(delay) => Some(delay),
            _ => None,
        }
    }

    /// The consequence that it asks for.
    #[must_use]
    pub fn kind(&self) -> HandlerErrorKind {
        self.kind
    }

    /// The error and its causes, joined by colons; a cause that its parent already quotes is not repeated.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = self.source.to_string();
        let causes = std::iter::successors(self.source.source(), |cause| (*cause).source());
        for cause in causes.take(MAX_QUOTED) {
            let cause = cause.to_string();
            if !text.contains(&cause) {
                text.push_str(": ");
                text.push_str(&cause);
            }
        }
        text
    }
}

/// True if `name` is `own`, or the end of it where that is the path of a type.
fn is_name_of(name: &str, own: &str) -> bool {
    // Of a generic type, without what it is generic over.
    let own = own.split_once('<').map_or(own, |(path, _)| path);
    own.strip_suffix(name).is_some_and(|path| path.is_empty() || path.ends_with("::"))
}

impl fmt::Display for HandlerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.source, f)
    }
}

impl Error for HandlerError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.source.source()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("sending the mail")]
    struct Wrapped(#[source] HandlerError);

    #[test]
    fn the_first_handler_error_in_the_chain_decides() {
        let kind = |error: BoxError| HandlerError::classify(error).kind();
        assert_eq!(kind("plain".into()), HandlerErrorKind::Retryable);
        assert_eq!(kind(HandlerError::unrecoverable("x").into()), HandlerErrorKind::Unrecoverable);
        let wrapped = Wrapped(HandlerError::retry_after(Duration::from_secs(3), "busy"));
        assert_eq!(kind(wrapped.into()), HandlerErrorKind::RetryAfter(Duration::from_secs(3)));
    }

    #[test]
    fn an_error_that_is_its_own_cause_costs_no_thread() {
        /// Its cause is itself.
        #[derive(Debug)]
        struct Own;
        impl fmt::Display for Own {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("itself")
            }
        }
        impl Error for Own {
            fn source(&self) -> Option<&(dyn Error + 'static)> {
                Some(self)
            }
        }
        let error = HandlerError::classify(Own);
        assert_eq!(error.kind(), HandlerErrorKind::Retryable);
        assert!(error.text().starts_with("itself") && !error.is_named("other"), "{}", error.text());
    }

    #[test]
    fn the_text_names_every_cause_once() {
        let wrapped = Wrapped(HandlerError::retryable("connection refused"));
        assert_eq!(HandlerError::classify(wrapped).text(), "sending the mail: connection refused");
    }

    #[test]
    fn an_error_has_the_name_of_its_type_or_the_one_that_it_was_given() {
        let full = || HandlerError::retryable("full").named("mailbox-full");
        let table = [
            (HandlerError::classify(fmt::Error), "Error", true),
            (HandlerError::classify(fmt::Error), "fmt::Error", true),
            (HandlerError::classify(fmt::Error), "core::fmt::Error", true),
            (HandlerError::classify(fmt::Error), "mt::Error", false),
            (HandlerError::classify(fmt::Error), "", false),
            (HandlerError::classify(BoxError::from(fmt::Error)), "Error", false),
            (HandlerError::retry_after(Duration::ZERO, fmt::Error), "Error", true),
            (HandlerError::classify(full()), "mailbox-full", true),
            (HandlerError::classify(full()), "full", false),
            (HandlerError::classify(Wrapped(full())), "mailbox-full", true),
            (HandlerError::classify(Wrapped(full())), "Wrapped", true),
            (HandlerError::classify(BoxError::from(Wrapped(full()))), "mailbox-full", true),
            (HandlerError::retryable(full()), "mailbox-full", true),
        ];
        for (error, name, is_named) in table {
            assert_eq!(error.is_named(name), is_named, "{error:?}, {name}");
        }
    }
}
