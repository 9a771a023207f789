use std::time::Duration;

use pillarbox_core::handle::Delivery;
use pillarbox_core::publisher::{FailureScope, Message, PublishError, PublishErrorKind, Receipt};
use tokio::time::Instant;
use tracing::Instrument as _;

use super::message_span::MessageSpan;
use crate::route::{RouteOutput, RouteRuntime};

/// The time from which on a call that brings nothing counts as silence, and not as a connection that was refused.
const SILENCE: Duration = Duration::from_millis(100);

/// The time in which a batch begins further calls, where it takes several.
const MAX_TIME_OF_PARTS: Duration = Duration::from_secs(5);

/// Sends the messages of events, and counts what came of it; a receipt for each.
pub(super) async fn send(
    runtime: &RouteRuntime,
    output: &RouteOutput,
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
        .map(|(event, message)| MessageSpan::begin(runtime, output, event, message))
        .collect();
    let receipts = publish_in_parts(runtime, output, messages).await;
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

/// Publishes messages in as many calls as the destination bears. After one of which something was not taken, or that took long, the rest is
/// not sent: messages of a key stay in their order, and a worker is not kept for minutes.
async fn publish_in_parts(runtime: &RouteRuntime, output: &RouteOutput, messages: Vec<Message>) -> Vec<Receipt> {
    let (all, began) = (messages.len(), Instant::now());
    if all <= output.call_size.lock().most() {
        return publish(runtime, output, messages).await;
    }
    let (mut receipts, mut messages) = (Vec::with_capacity(all), messages.into_iter());
    while receipts.len() < all && began.elapsed() < MAX_TIME_OF_PARTS && receipts.iter().all(Result::is_ok) {
        let part = messages.by_ref().take(output.call_size.lock().most()).collect();
        receipts.extend(publish(runtime, output, part).await);
    }
    receipts.resize_with(all, not_sent);
    receipts
}

/// Publishes messages in one call; a receipt for each.
async fn publish(runtime: &RouteRuntime, output: &RouteOutput, messages: Vec<Message>) -> Vec<Receipt> {
    let (sent, began) = (messages.len(), Instant::now());
    let publishing = output.publisher.publish(messages);
    let mut receipts = publishing.instrument(tracing::error_span!("send", route = &*runtime.name)).await;
    receipts.resize_with(sent, no_receipt);
    runtime.meters.duration.record(began.elapsed());
    runtime.meters.messages.record(f64::from(u32::try_from(sent).unwrap_or(u32::MAX)));
    if receipts.iter().any(is_answer) {
        output.call_size.lock().note_answer(sent);
    } else if began.elapsed() >= SILENCE && receipts.iter().all(|receipt| is_silence(output, receipt)) {
        output.call_size.lock().note_silence(sent);
    }
    receipts
}

/// True if the destination has taken or refused the message.
fn is_answer(receipt: &Receipt) -> bool {
    receipt.as_ref().err().is_none_or(|error| !error.blames_the_destination())
}

/// True if the message was not taken, and the whole destination is to blame. Where there are many targets, one of them that is silent says
/// nothing about the others, and all of them are asked at once.
fn is_silence(output: &RouteOutput, receipt: &Receipt) -> bool {
    let is_one_place = output.target.fixed().is_some();
    receipt.as_ref().is_err_and(|error| {
        error.kind() == PublishErrorKind::Unavailable && (is_one_place || error.scope() == FailureScope::Broker)
    })
}

/// A message behind others of its call that were not taken.
fn not_sent() -> Receipt {
    let error = PublishError::unavailable("not sent: messages before it were not taken, or took long");
    Err(error.limited_to(FailureScope::Message))
}

/// A publisher that forgets a message has not confirmed it.
pub(super) fn no_receipt() -> Receipt {
    Err(PublishError::temporary("the publisher gave no receipt for it"))
}
