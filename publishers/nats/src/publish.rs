use std::sync::Arc;

use async_nats::Subject;
use async_nats::jetstream::context::PublishAckFuture;
use pillarbox_core::publisher::{Message, PublishError, Receipt};
use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout_at};

use crate::NatsPublisher;
use crate::connection::Connection;
use crate::error::{Failure, sort};
use crate::message::{self, LastSubject};

/// Messages of one call that are sent before the first confirmation is waited for. What a call holds it gives back as a whole
/// before it asks for more, so that calls never wait for each other in a circle.
const PORTION: usize = 1024;

impl NatsPublisher {
    /// Sends the messages and collects the confirmations.
    pub(crate) async fn publish_all(&self, messages: Vec<Message>, deadline: Instant) -> Vec<Receipt> {
        if messages.is_empty() {
            return Vec::new();
        }
        let linked = match self.connection(deadline).await {
            Ok(linked) => linked,
            Err(failure) => return vec![Err(failure); messages.len()],
        };
        let expected_stream = self.options.expected_stream.as_deref();
        let mut receipts = Vec::with_capacity(messages.len());
        let mut messages = messages.into_iter();
        while messages.len() > 0 {
            let messages = messages.by_ref().take(PORTION).collect();
            let portion = Portion { connection: &linked.connection, expected_stream, deadline, since: Instant::now() };
            let (answers, answering) = portion.publish(messages, &self.room).await;
            receipts.extend(answers);
            if !answering {
                // It may be this connection that hangs; another one shows. Calls that wait on it go on waiting.
                self.link.lost(&linked);
            }
        }
        receipts
    }
}

/// Messages that are sent together.
struct Portion<'a> {
    connection: &'a Arc<Connection>,
    expected_stream: Option<&'a str>,
    deadline: Instant,
    /// A time before the first is sent.
    since: Instant,
}

/// A message under way, or what has become of it already.
enum Sent {
    Waits(PublishAckFuture),
    Over(Receipt),
}

impl Portion<'_> {
    /// The receipts, and whether the server has answered in time.
    async fn publish(&self, messages: Vec<Message>, room: &Semaphore) -> (Vec<Receipt>, bool) {
        let count = messages.len();
        let permits = u32::try_from(count).unwrap_or(u32::MAX);
        // Never closed; and a portion is smaller than the whole room.
        let Ok(Ok(_permits)) = timeout_at(self.deadline, room.acquire_many(permits)).await else {
            return (vec![Err(late()); count], false);
        };
        let mut sent = Vec::with_capacity(count);
        let sending = async {
            let mut last = LastSubject::default();
            for message in messages {
                let subject = last.of(&message.target);
                let outcome = self.send(subject.clone(), message).await;
                sent.push((subject, outcome));
            }
        };
        let mut answering = timeout_at(self.deadline, sending).await.is_ok();
        let unsent = count - sent.len();

        // From the last to the first: confirmations mostly come in the order of the messages, so once the last has come there
        // is nothing to wait for in the others. Waiting for each of them in turn, the task would be woken for each.
        let mut receipts = vec![Err(late()); unsent];
        receipts.reserve(sent.len());
        let collecting = async {
            while let Some((subject, outcome)) = sent.pop() {
                // In its place, should the time be over before it is known.
                receipts.push(Err(late()));
                let receipt = self.receipt(&subject, outcome).await;
                receipts.pop();
                receipts.push(receipt);
            }
        };
        answering &= timeout_at(self.deadline, collecting).await.is_ok();
        // In time, nothing is left. After it, what has come meanwhile is taken, and nothing waited for.
        while let Some((subject, outcome)) = sent.pop() {
            let receipt = timeout_at(self.deadline, self.receipt(&subject, outcome)).await;
            receipts.push(receipt.unwrap_or_else(|_| Err(late())));
        }
        receipts.reverse();
        (receipts, answering)
    }

    async fn send(&self, subject: Subject, message: Message) -> Sent {
        let encoded = match message::encode(message, self.expected_stream) {
            Ok(encoded) => encoded,
            Err(refused) => return Sent::Over(Err(refused)),
        };
        match self.connection.context.send_publish(subject.clone(), encoded).await {
            Ok(ack) => Sent::Waits(ack),
            Err(failure) => Sent::Over(Err(sort(&Failure::Publish(&failure, &subject)))),
        }
    }

    /// Waits for what becomes of a message.
    async fn receipt(&self, subject: &str, outcome: Sent) -> Receipt {
        let ack = match outcome {
            Sent::Waits(ack) => ack,
            Sent::Over(receipt) => return receipt,
        };
        tokio::select! {
            // The confirmation first: mostly it is there, and then there is nothing else to ask for.
            biased;
            answer = ack.into_future() => match answer {
                Ok(ack) if ack.stream.is_empty() => Err(sort(&Failure::Stranger(subject))),
                // Servers from before September 2024 may never store it: they know its id alone.
                Ok(ack) if ack.sequence == 0 => Err(sort(&Failure::NotStored(subject))),
                Ok(ack) => Ok(Some(format!("{}/{}", ack.stream, ack.sequence))),
                Err(failure) => Err(sort(&Failure::Publish(&failure, subject))),
            },
            refusal = self.connection.refusals.wait(subject, self.since) => Err(sort(&Failure::Refused(refusal, subject))),
        }
    }
}

fn late() -> PublishError {
    PublishError::unavailable("no confirmation came in time; the message may have been stored")
}
