use std::borrow::Cow;

use pillarbox_core::context;
use pillarbox_core::handle::Delivery;
use pillarbox_core::publisher::{Message, Receipt};
use tracing::Span;
use tracing::field::Empty;

use crate::route::{RouteOutput, RouteRuntime};

/// The span of a message from its call to the broker's answer, in the trace that its event was written in. Its fields are those of
/// [OpenTelemetry's conventions](https://opentelemetry.io/docs/specs/semconv/messaging/messaging-spans/) for a producer.
///
/// An event without a trace has none: each would begin a trace of its own.
pub(super) struct MessageSpan(Span);

impl MessageSpan {
    pub(super) fn begin(runtime: &RouteRuntime, output: &RouteOutput, event: &Delivery, message: &Message) -> Self {
        let traces = context::BUILT_IN.filter(|_| event.headers().trace_id().is_some());
        let Some(traces) = traces else { return Self(Span::none()) };
        let span = tracing::debug_span!(
            parent: None,
            "publish",
            otel.name = Empty,
            otel.kind = "producer",
            otel.status_code = Empty,
            otel.status_description = Empty,
            messaging.system = output.publisher.info().kind,
            messaging.operation.type = "send",
            messaging.destination.name = Empty,
            messaging.message.id = event.id().as_str(),
            route = &*runtime.name,
            event_type = event.event_type(),
            attempt = event.attempt(),
        );
        if !span.is_disabled() {
            span.record("otel.name", format!("publish {}", runtime.name));
            let target: Cow<'_, str> = output.publisher.shown(&message.target);
            span.record("messaging.destination.name", &*target);
            traces.relate(&span, &[event.headers()]);
        }
        Self(span)
    }

    /// Ends it with the broker's answer.
    pub(super) fn end(self, receipt: &Receipt) {
        match receipt {
            Ok(_) => self.0.record("otel.status_code", "OK"),
            Err(error) => {
                self.0.record("otel.status_code", "ERROR");
                self.0.record("otel.status_description", error.to_string())
            }
        };
    }
}
