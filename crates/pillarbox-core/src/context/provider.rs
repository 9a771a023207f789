use std::sync::Arc;

use tracing::Span;

use crate::error::BoxError;
use crate::event::{Envelope, Headers};
use crate::handle::BoxFuture;

/// Carries a context of the process along with events: from the code that writes them to the handler.
///
/// Registered with `OutboxBuilder::context`. A provider is never in the way: a step that
/// fails, by an error or a panic, is left out with a warning, and events are written and handled without it.
///
/// ```
/// use pillarbox_core::context::ContextProvider;
/// use pillarbox_core::error::BoxError;
/// use pillarbox_core::event::{Envelope, Headers};
/// use pillarbox_core::handle::BoxFuture;
///
/// tokio::task_local! { static USER: String; }
///
/// struct CurrentUser;
///
/// impl ContextProvider for CurrentUser {
///     fn capture(&self, _event: &Envelope) -> Result<Headers, BoxError> {
///         // Nobody is logged in: no header.
///         Ok(USER.try_with(|user| ("user", user.clone())).into_iter().collect())
///     }
///
///     fn restore<'a>(&'a self, headers: &'a Headers, call: BoxFuture<'a, ()>) -> BoxFuture<'a, ()> {
///         match headers.get("user") {
///             Some(user) => Box::pin(USER.scope(user.to_owned(), call)),
///             None => call,
///         }
///     }
/// }
/// ```
pub trait ContextProvider: Send + Sync + 'static {
    /// The provider's name in warnings. Default: the name of its type.
    fn name(&self) -> &str {
        std::any::type_name::<Self>()
    }

    /// The headers to add to an event that is being written.
    ///
    /// It is called for each event, on the writer's task, after the writer hooks and before the insert. Headers that the
    /// event has already, from the call site, its type, a hook or an earlier provider, stay as they are. If the event
    /// would exceed its [limits](crate::event::limits) with them, none of them is added.
    ///
    /// # Errors
    /// An error is logged, at most every ten seconds, and the event is written without these headers.
    fn capture(&self, _event: &Envelope) -> Result<Headers, BoxError> {
        Ok(Headers::new())
    }

    /// Runs a handler within the context that the headers of its event describe.
    ///
    /// `call` is the handler, of any kind. It is awaited once, inside the provider's context; a call that is
    /// dropped instead is run without a context. The handler's outcome passes by unseen. Providers nest: the first
    /// registered is the outermost.
    fn restore<'a>(&'a self, _headers: &'a Headers, call: BoxFuture<'a, ()>) -> BoxFuture<'a, ()> {
        call
    }

    /// Runs a batch handler; `headers` are those of its events, in order, and at least two.
    ///
    /// Default: without a context, since the events may have come from as many. A batch of one goes through
    /// [`restore`](Self::restore).
    fn restore_batch<'a>(&'a self, _headers: &'a [&'a Headers], call: BoxFuture<'a, ()>) -> BoxFuture<'a, ()> {
        call
    }

    /// Tells the span of a handler call where its events come from, before the span is entered. For tracing systems, which
    /// take the parent of a span only then. Called inside of [`restore`](Self::restore), if that span is on.
    fn relate(&self, _span: &Span, _headers: &[&Headers]) {}
}

/// A provider that somebody else holds as well, to ask it later.
impl<P: ContextProvider + ?Sized> ContextProvider for Arc<P> {
    fn name(&self) -> &str {
        (**self).name()
    }

    fn capture(&self, event: &Envelope) -> Result<Headers, BoxError> {
        (**self).capture(event)
    }

    fn restore<'a>(&'a self, headers: &'a Headers, call: BoxFuture<'a, ()>) -> BoxFuture<'a, ()> {
        (**self).restore(headers, call)
    }

    fn restore_batch<'a>(&'a self, headers: &'a [&'a Headers], call: BoxFuture<'a, ()>) -> BoxFuture<'a, ()> {
        (**self).restore_batch(headers, call)
    }

    fn relate(&self, span: &Span, headers: &[&Headers]) {
        (**self).relate(span, headers);
    }
}
