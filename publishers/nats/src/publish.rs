use std::future::IntoFuture;
use std::sync::Arc;
use std::time::Duration;

use async_nats::Subject;
use async_nats::jetstream::context::PublishAckFuture;
use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use pillarbox_core::publisher::{FailureScope, Message, PublishError, Receipt};
use tokio::sync::Semaphore;
use tokio::task::unconstrained;
use tokio::time::{Instant, timeout_at};

use crate::NatsPublisher;
use crate::connection::Connection;
use crate::error::{Failure, publish_error};
use crate::message::{self, LastSubject};

/// Messages of one call that are sent before the first confirmation is waited for. What a call holds it gives back as a whole
/// before it asks for more, so that calls never wait for each other in a circle.
const PORTION: usize = 1024;

/// The fraction of the time limit for which a call waits for further answers after one has come: a quarter.
const GRACE_DIVISOR: u32 = 4;

impl NatsPublisher {
    /// Sends the messages and collects the confirmations.
    pub(crate) async fn publish_all(&self, messages: Vec<Message>, deadline: Instant) -> Vec<Receipt> {
        if messages.is_empty() {
            return Vec::new();
        }
        let began = Instant::now();
        let linked = match self.connection(deadline).await {
            Ok(linked) => linked,
            Err(failure) => return vec![Err(failure); messages.len()],
        };
        let (connection, expected_stream) = (&linked.connection, self.options.expected_stream.as_deref());
        let grace = self.options.timeout / GRACE_DIVISOR;
        let mut receipts = Vec::with_capacity(messages.len());
        let mut messages = messages.into_iter();
        while messages.len() > 0 {
            let messages = messages.by_ref().take(PORTION).collect();
            let portion = Portion { connection, expected_stream, deadline, grace, since: Instant::now() };
            let answers = portion.publish(messages, &self.room).await;
            let is_answering = connection.has_answered_since(began);
            if !is_answering && answers.iter().any(Result::is_err) {
                // It may be this connection that hangs; another one shows. Calls that wait on it go on waiting.
                self.link.lost(&linked);
            }
            let receipt = |answer: Answer| answer.unwrap_or_else(|gap| Err(gap.error(is_answering)));
            receipts.extend(answers.into_iter().map(receipt));
        }
        receipts
    }
}

/// Messages that are sent together.
struct Portion<'a> {
    connection: &'a Arc<Connection>,
    expected_stream: Option<&'a str>,
    deadline: Instant,
    /// The time to wait for further answers after one has come.
    grace: Duration,
    /// A time before the first is sent.
    since: Instant,
}

/// A message under way.
struct Waiting {
    /// Its place in the portion.
    index: usize,
    subject: Subject,
    ack: <PublishAckFuture as IntoFuture>::IntoFuture,
}

/// The receipt of a message, if its fate is known when the time is up.
type Answer = Result<Receipt, Gap>;

/// The reason why a message has no receipt.
#[derive(Debug, Clone, Copy)]
enum Gap {
    Unsent,
    Unconfirmed,
}

impl Gap {
    /// The error of the message. If the connection has answered for other messages, this one's subject alone is in trouble.
    fn error(self, is_answering: bool) -> PublishError {
        let (text, scope) = match self {
            Self::Unsent => ("was not sent, since no time was left", FailureScope::Message),
            Self::Unconfirmed => {
                ("no confirmation came in time; the message may have been stored", FailureScope::Target)
            }
        };
        PublishError::unavailable(text).limited_to(if is_answering { scope } else { FailureScope::Broker })
    }
}

impl Portion<'_> {
    /// Sends the messages, and returns their answers in the same order.
    async fn publish(&self, messages: Vec<Message>, room: &Semaphore) -> Vec<Answer> {
        let count = messages.len();
        let permits = u32::try_from(count).unwrap_or(u32::MAX);
        let room = timeout_at(self.deadline, room.acquire_many(permits)).await;
        // Never closed; and a portion is smaller than the whole room.
        let Ok(Ok(_permits)) = room else { return vec![Err(Gap::Unsent); count] };
        if Instant::now() >= self.deadline {
            return vec![Err(Gap::Unsent); count];
        }
        let mut answers = Vec::with_capacity(count);
        let mut waiting = Vec::with_capacity(count);
        let sending = async {
            let mut last = LastSubject::default();
            for (index, message) in messages.into_iter().enumerate() {
                let subject = last.of(&message.target);
                match self.send(subject.clone(), message).await {
                    Ok(ack) => {
                        waiting.push(Waiting { index, subject, ack: ack.into_future() });
                        answers.push(Err(Gap::Unconfirmed));
                    }
                    Err(error) => answers.push(Ok(Err(error))),
                }
            }
        };
        // If the time is over before all are sent, the others are left.
        let _ = timeout_at(self.deadline, sending).await;
        answers.resize(count, Err(Gap::Unsent));
        self.collect(waiting, &mut answers).await;
        answers
    }

    async fn send(&self, subject: Subject, message: Message) -> Result<PublishAckFuture, PublishError> {
        let encoded = message::encode(message, self.expected_stream)?;
        let sent = self.connection.context.send_publish(subject.clone(), encoded).await;
        sent.map_err(|failure| publish_error(&Failure::Publish(&failure, &subject)))
    }

    /// Waits for the answers until the deadline, or until none has come for a while after one has.
    async fn collect(&self, mut waiting: Vec<Waiting>, answers: &mut [Answer]) {
        let mut limit = self.deadline;
        let mut settle = |index: usize, receipt: Receipt| {
            let is_answer = is_answer(&receipt);
            if let Some(answer) = answers.get_mut(index) {
                *answer = Ok(receipt);
            }
            is_answer
        };
        // From the last to the first: confirmations mostly come in the order of the messages, so once the last has come there
        // is nothing to wait for in the others. Waiting for each of them in turn, the task would be woken for each.
        let in_order = async {
            while let Some(last) = waiting.last_mut() {
                if settle(last.index, self.receipt(last).await) {
                    limit = self.graced();
                }
                waiting.pop();
            }
        };
        if timeout_at(self.graced(), in_order).await.is_ok() {
            return;
        }
        // One is silent. The others are not kept waiting behind it.
        let receipt = async |one: &mut Waiting| (one.index, self.receipt(one).await);
        let mut others: FuturesUnordered<_> = waiting.iter_mut().map(receipt).collect();
        // All receipts that have come are taken, though the time is over.
        while let Ok(Some((index, receipt))) = timeout_at(limit, unconstrained(others.next())).await {
            if settle(index, receipt) {
                limit = self.graced();
            }
        }
    }

    /// The end of the wait for further answers, if one has come now.
    fn graced(&self) -> Instant {
        self.deadline.min(Instant::now() + self.grace)
    }

    /// Waits for what becomes of a message.
    async fn receipt(&self, one: &mut Waiting) -> Receipt {
        let subject = &*one.subject;
        let receipt = tokio::select! {
            // The confirmation first: mostly it is there, and then there is nothing else to ask for.
            biased;
            answer = &mut one.ack => match answer {
                Ok(ack) if ack.stream.is_empty() => Err(publish_error(&Failure::Stranger(subject))),
                // Servers from before September 2024 may never store it: they know its id alone.
                Ok(ack) if ack.sequence == 0 => Err(publish_error(&Failure::NotStored(subject))),
                Ok(ack) => Ok(Some(format!("{}/{}", ack.stream, ack.sequence))),
                Err(failure) => Err(publish_error(&Failure::Publish(&failure, subject))),
            },
            refusal = self.connection.refusals.wait(subject, self.since) => Err(publish_error(&Failure::Refused(refusal, subject))),
        };
        if is_answer(&receipt) {
            self.connection.note_answer(Instant::now());
        }
        receipt
    }
}

/// True if a message was confirmed, or refused for itself or its subject: its connection is well.
fn is_answer(receipt: &Receipt) -> bool {
    receipt.as_ref().err().is_none_or(|error| error.scope() != FailureScope::Broker)
}
