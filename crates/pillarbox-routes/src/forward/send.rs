use pillarbox_core::handle::Delivery;
use pillarbox_core::publisher::{Message, PublishError, Receipt};
use tokio::time::Instant;
use tracing::Instrument as _;

use super::message_span::MessageSpan;
use crate::route::{RouteRuntime, Sink};

/// Sends the messages of events, and counts what came of it; a receipt for each.
pub(super) async fn send(
    runtime: &RouteRuntime,
    sink: &Sink,
    events: &[&Delivery],
    messages: Vec<Message>,
) -> Vec<Receipt> {
    let sent = messages.len();
    if sent == 0 {
        return Vec::new();
    }
    let spans: Vec<_> = events
        .iter()
        .zip(&messages)
        .map(|(event, message)| MessageSpan::begin(runtime, sink, event, message))
        .collect();
    let began = Instant::now();
    let publishing = sink.publisher.publish(messages);
    let mut receipts = publishing.instrument(tracing::error_span!("send", route = &*runtime.name)).await;
    receipts.resize_with(sent, no_receipt);
    runtime.meters.duration.record(began.elapsed());
    runtime.meters.messages.record(f64::from(u32::try_from(sent).unwrap_or(u32::MAX)));
    spans.into_iter().zip(&receipts).for_each(|(span, receipt)| span.end(receipt));
    for receipt in &receipts {
        match receipt {
            Ok(_) => runtime.meters.confirmed.increment(1),
            Err(error) if error.blames_the_destination() => runtime.meters.deferred.increment(1),
            Err(_) => runtime.meters.failed.increment(1),
        }
    }
    receipts
}

/// A publisher that forgets a message has not confirmed it.
pub(super) fn no_receipt() -> Receipt {
    Err(PublishError::temporary("the publisher gave no receipt for it"))
}
