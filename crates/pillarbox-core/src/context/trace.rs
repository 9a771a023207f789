use pillarbox_otel::Origin;
use tracing::Span;

use super::ContextProvider;
use crate::error::BoxError;
use crate::event::{Envelope, Headers};
use crate::handle::BoxFuture;

/// The trace an event was written in, as the headers of W3C Trace Context.
#[derive(Debug)]
pub(super) struct TraceContext;

const PARENT: &str = "traceparent";
const STATE: &str = "tracestate";

impl TraceContext {
    fn origin(headers: &Headers) -> Option<Origin> {
        Origin::parse(headers.get(PARENT)?, headers.get(STATE))
    }
}

impl ContextProvider for TraceContext {
    fn name(&self) -> &'static str {
        "W3C trace context"
    }

    fn capture(&self, event: &Envelope) -> Result<Headers, BoxError> {
        // The two belong together: with one of them given, the other would be that of another trace.
        let given = event.headers().get(PARENT).or(event.headers().get(STATE));
        let Some(current) = Origin::current().filter(|_| given.is_none()) else { return Ok(Headers::new()) };
        let state = current.tracestate().map(|state| (STATE, state));
        Ok([(PARENT, current.traceparent())].into_iter().chain(state).collect())
    }

    fn restore<'a>(&'a self, headers: &'a Headers, call: BoxFuture<'a, ()>) -> BoxFuture<'a, ()> {
        Box::pin(pillarbox_otel::within(Self::origin(headers), call))
    }

    fn restore_batch<'a>(&'a self, _headers: &'a [&'a Headers], call: BoxFuture<'a, ()>) -> BoxFuture<'a, ()> {
        Box::pin(pillarbox_otel::within(None, call))
    }

    fn relate(&self, span: &Span, headers: &[&Headers]) {
        match headers {
            [headers] => Self::origin(headers).into_iter().for_each(|origin| origin.adopt(span)),
            _ => headers.iter().filter_map(|headers| Self::origin(headers)).for_each(|origin| origin.link(span)),
        }
    }
}
