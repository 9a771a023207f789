use std::collections::VecDeque;
use std::sync::Arc;

use async_nats::jetstream::context::PublishAckFuture;
use pillarbox_core::publisher::{Message, PublishError, Receipt};
use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout_at};

use crate::connect::Connector;
use crate::connection::Connection;
use crate::error::{Failure, sort};
use crate::message;

/// Messages of one call that are sent before the first confirmation is waited for. What a call holds it gives back as a whole
/// before it asks for more, so that calls never wait for each other in a circle.
const PORTION: usize = 1024;

/// Sends the messages and collects the confirmations.
pub(crate) async fn publish(
    connector: &Connector,
    room: &Semaphore,
    messages: Vec<Message>,
    deadline: Instant,
) -> Vec<Receipt> {
    if messages.is_empty() {
        return Vec::new();
    }
    let connection = match connector.connection(deadline).await {
        Ok(connection) => connection,
        Err(failure) => return messages.iter().map(|_| Err(failure.clone())).collect(),
    };
    let mut receipts = Vec::with_capacity(messages.len());
    let mut messages = VecDeque::from(messages);
    while !messages.is_empty() {
        let portion: Vec<Message> = messages.drain(..messages.len().min(PORTION)).collect();
        send_portion(connector, &connection, room, portion, deadline, &mut receipts).await;
    }
    receipts
}

/// A message under way, or what has become of it already.
enum Sent {
    Waits(PublishAckFuture),
    Over(Receipt),
}

async fn send_portion(
    connector: &Connector,
    connection: &Arc<Connection>,
    room: &Semaphore,
    messages: Vec<Message>,
    deadline: Instant,
    receipts: &mut Vec<Receipt>,
) {
    let permits = u32::try_from(messages.len()).unwrap_or(u32::MAX);
    // Never closed; and a portion is smaller than the whole room.
    let Ok(Ok(_permits)) = timeout_at(deadline, room.acquire_many(permits)).await else {
        receipts.extend(messages.iter().map(|_| Err(late())));
        return;
    };
    let since = Instant::now();
    let mut sent = Vec::with_capacity(messages.len());
    for message in messages {
        let outcome = send(connector, connection, &message, deadline).await;
        sent.push((message.target, outcome));
    }
    for (target, outcome) in sent {
        receipts.push(match outcome {
            Sent::Over(receipt) => receipt,
            Sent::Waits(ack) => confirm(connector, connection, &target, ack, since, deadline).await,
        });
    }
}

async fn send(connector: &Connector, connection: &Connection, message: &Message, deadline: Instant) -> Sent {
    let encoded = match message::encode(message, connector.options.expected_stream.as_deref()) {
        Ok(encoded) => encoded,
        Err(refused) => return Sent::Over(Err(refused)),
    };
    let sending = connection.context.send_publish(message::subject(&message.target), encoded);
    match timeout_at(deadline, sending).await {
        Ok(Ok(ack)) => Sent::Waits(ack),
        Ok(Err(failure)) => Sent::Over(Err(sort(&Failure::Publish(&failure, &message.target)))),
        Err(_) => Sent::Over(Err(late())),
    }
}

async fn confirm(
    connector: &Connector,
    connection: &Arc<Connection>,
    target: &str,
    ack: PublishAckFuture,
    since: Instant,
    deadline: Instant,
) -> Receipt {
    let answer = async {
        tokio::select! {
            // The confirmation first: mostly it is there, and then there is nothing else to ask for.
            biased;
            answer = ack.into_future() => match answer {
                Ok(confirmation) if !confirmation.stream.is_empty() => Ok(()),
                Ok(_) => Err(sort(&Failure::Stranger(target))),
                Err(failure) => Err(sort(&Failure::Publish(&failure, target))),
            },
            refusal = connection.refusals.wait(target, since) => Err(sort(&Failure::Refused(refusal, target))),
        }
    };
    match timeout_at(deadline, answer).await {
        Ok(receipt) => receipt,
        Err(_) => {
            // It may be this connection that hangs; another one shows.
            connector.discard(connection).await;
            Err(late())
        }
    }
}

fn late() -> PublishError {
    PublishError::unavailable("no confirmation came in time; the message may have been stored")
}
