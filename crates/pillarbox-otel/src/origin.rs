use opentelemetry::Context;
use opentelemetry::propagation::{Extractor, Injector, TextMapPropagator as _};
use opentelemetry::trace::{SpanContext, TraceContextExt as _};
use opentelemetry_sdk::propagation::TraceContextPropagator;
use tracing::Span;
use tracing_opentelemetry::OpenTelemetrySpanExt as _;

/// The place in a trace at which something was caused: a span, perhaps of another process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin(SpanContext);

impl Origin {
    /// The current span; `None` if tracing is off, or no span is open.
    ///
    /// It is that of `tracing`, if a layer passes it on to OpenTelemetry, else that of OpenTelemetry.
    #[must_use]
    pub fn current() -> Option<Self> {
        Self::of(&Span::current().context()).or_else(|| Context::map_current(Self::of))
    }

    /// Reads the headers of these names. `None` if `traceparent` is malformed; a malformed `tracestate` is left out.
    #[must_use]
    pub fn parse(traceparent: &str, tracestate: Option<&str>) -> Option<Self> {
        if !has_shape(traceparent) {
            return None;
        }
        let carrier = Carrier { parent: traceparent.to_owned(), state: tracestate.unwrap_or_default().to_owned() };
        Self::of(&TraceContextPropagator::new().extract_with_context(&Context::new(), &carrier))
    }

    /// The header of this name.
    #[must_use]
    pub fn traceparent(&self) -> String {
        let mut carrier = Carrier::default();
        TraceContextPropagator::new().inject_context(&self.clone().into_context(), &mut carrier);
        carrier.parent
    }

    /// The header of this name; `None` if the trace has no such state.
    #[must_use]
    pub fn tracestate(&self) -> Option<String> {
        Some(self.0.trace_state().header()).filter(|state| !state.is_empty())
    }

    /// Makes `span` a child of this. It takes effect if the span was never entered, and reaches OpenTelemetry.
    pub fn adopt(self, span: &Span) {
        // What it fails at is what it is documented not to do.
        let _ = span.set_parent(self.into_context());
    }

    /// Links `span` to this: related, but not its child.
    pub fn link(self, span: &Span) {
        span.add_link(self.0);
    }

    fn of(context: &Context) -> Option<Self> {
        let span = context.span().span_context().clone();
        span.is_valid().then_some(Self(span))
    }

    pub(crate) fn into_context(self) -> Context {
        Context::new().with_remote_span_context(self.0)
    }
}

/// True if the text looks like `00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01`; versions after `00` may have more
/// behind that. The propagator lets shorter numbers pass, and would make other ones of them.
fn has_shape(traceparent: &str) -> bool {
    let Some((known, more)) = traceparent.as_bytes().split_at_checked(55) else { return false };
    let fits = |(at, byte): (usize, &u8)| match at {
        2 | 35 | 52 => *byte == b'-',
        _ => matches!(byte, b'0'..=b'9' | b'a'..=b'f'),
    };
    let later = !known.starts_with(b"00") && more.starts_with(b"-");
    known.iter().enumerate().all(fits) && (more.is_empty() || later)
}

/// The two headers, as the propagator reads and writes them.
#[derive(Default)]
struct Carrier {
    parent: String,
    state: String,
}

const PARENT: &str = "traceparent";
const STATE: &str = "tracestate";

impl Extractor for Carrier {
    fn get(&self, name: &str) -> Option<&str> {
        match name {
            PARENT => Some(&self.parent),
            STATE => Some(&self.state),
            _ => None,
        }
    }

    fn keys(&self) -> Vec<&str> {
        vec![PARENT, STATE]
    }
}

impl Injector for Carrier {
    fn set(&mut self, name: &str, value: String) {
        match name {
            PARENT => self.parent = value,
            STATE => self.state = value,
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    #[test]
    fn headers_come_back_as_they_were() {
        for state in [None, Some("vendor=value,other=1")] {
            let origin = Origin::parse(PARENT, state).expect("valid");
            assert_eq!(origin.traceparent(), PARENT);
            assert_eq!(origin.tracestate().as_deref(), state);
        }
    }

    #[test]
    fn malformed_traceparents_are_no_origin() {
        let zeroes = "00-00000000000000000000000000000000-00f067aa0ba902b7-01";
        let multibyte = "00-4bf92f3577b34da6a3ce929d0e0e473é-00f067aa0ba902b7-01";
        for parent in [
            "",
            "-",
            "00",
            "nonsense",
            zeroes,
            multibyte,
            &PARENT[..54],
            &PARENT.to_uppercase(),
            &format!("{PARENT}-"),
            &format!("{PARENT}0"),
            &format!("ff{}", &PARENT[2..]),
        ] {
            assert_eq!(Origin::parse(parent, Some("a=b")), None, "{parent:?}");
        }
        let later = format!("01{}-more", &PARENT[2..]);
        assert_eq!(Origin::parse(&later, None).map(|origin| origin.traceparent()).as_deref(), Some(PARENT));
        assert_eq!(Origin::parse(PARENT, Some("no state")).and_then(|origin| origin.tracestate()), None);
    }

    #[test]
    fn without_tracing_there_is_none() {
        assert_eq!(Origin::current(), None);
        Origin::parse(PARENT, None).expect("valid").adopt(&Span::none());
    }
}
