//! Hands the messages of a call to the client, and waits for the report of each.

use std::sync::Arc;
use std::time::Duration;

use pillarbox_core::publisher::{Message, PublishError, Receipt, header};
use rdkafka::message::{Header, OwnedHeaders};
use rdkafka::producer::{BaseRecord, Producer as _, PurgeConfig};
use rdkafka::types::RDKafkaErrorCode;
use tokio::sync::{oneshot, watch};
use tokio::time::{Instant, sleep, timeout_at};

use crate::connect::{self, Client};
use crate::error::{self, Cause};
use crate::trouble::{Report, Trouble, code};
use crate::{KIND, KafkaPublisher, topic};

/// The time to wait for room in the client's queue before looking again.
const ROOM: Duration = Duration::from_millis(5);

const CONTENT_TYPE: &str = "content-type";

/// A message on its way.
type Waiting = oneshot::Receiver<Report>;

impl KafkaPublisher {
    pub(crate) async fn publish_all(&self, messages: Vec<Message>) -> Vec<Receipt> {
        let client = match self.connection.client() {
            Ok(client) => client,
            Err(error) => return vec![Err(error); messages.len()],
        };
        let mut call = Call {
            deadline: Instant::now() + self.timeout,
            troubles: client.context().troubles(),
            refused: None,
            client,
        };
        let mut sent = Vec::with_capacity(messages.len());
        for message in &messages {
            sent.push(call.enqueue(message).await);
        }
        let mut receipts = Vec::with_capacity(messages.len());
        for (message, waiting) in messages.iter().zip(sent) {
            let receipt = match waiting {
                Ok(waiting) => call.report(message, waiting).await,
                Err(error) => Err(error),
            };
            receipts.push(receipt);
        }
        call.send_alone(&messages, &mut receipts).await;
        if receipts.iter().any(|receipt| matches!(receipt, Err(failure) if failure.unfinished)) {
            call.call_back();
        }
        receipts.into_iter().map(|receipt| receipt.map_err(|failure| failure.error)).collect()
    }
}

/// The error of a message that was not confirmed, possibly only because of the others in its call.
struct Failure {
    error: PublishError,
    in_company: bool,
    unfinished: bool,
}

impl From<PublishError> for Failure {
    fn from(error: PublishError) -> Self {
        Self { error, in_company: false, unfinished: false }
    }
}

struct Call {
    client: Arc<Client>,
    deadline: Instant,
    /// The client's complaints since the call began.
    troubles: watch::Receiver<Option<Trouble>>,
    /// That the brokers refuse, and waiting does not help.
    refused: Option<PublishError>,
}

/// If the call is the last to have the client, ending it is left to a thread that may wait.
impl Drop for Call {
    fn drop(&mut self) {
        if Arc::strong_count(&self.client) == 1 {
            connect::leave(Arc::clone(&self.client));
        }
    }
}

impl Call {
    /// Hands a message to the client; waits where its queue is full.
    async fn enqueue(&self, message: &Message) -> Result<Waiting, Failure> {
        topic::accept(&message.target)?;
        let (sender, waiting) = oneshot::channel();
        let mut record = BaseRecord::with_opaque_to(&message.target, Box::new(sender))
            .payload(&message.body[..])
            .headers(headers(message));
        if let Some(key) = &message.key {
            record = record.key(key.as_bytes());
        }
        loop {
            match self.client.send(record) {
                Ok(()) => return Ok(waiting),
                Err((failure, same)) if code(&failure) == RDKafkaErrorCode::QueueFull => {
                    if Instant::now() + ROOM >= self.deadline {
                        return Err(error::of(RDKafkaErrorCode::QueueFull, &message.target).into());
                    }
                    record = same;
                    sleep(ROOM).await;
                }
                Err((failure, _)) => return Err(error::of(code(&failure), &message.target).into()),
            }
        }
    }

    async fn report(&mut self, message: &Message, mut waiting: Waiting) -> Result<Option<String>, Failure> {
        loop {
            if let Some(error) = &self.refused {
                return match waiting.try_recv() {
                    Ok(report) => report.map_err(|code| self.failure(message, code)),
                    Err(_) => Err(Failure { unfinished: true, ..error.clone().into() }),
                };
            }
            tokio::select! {
                // A report that is there counts, whatever else is.
                biased;
                report = timeout_at(self.deadline, &mut waiting) => return match report {
                    Ok(Ok(report)) => report.map_err(|code| self.failure(message, code)),
                    Ok(Err(_)) => Err(PublishError::unavailable("the publisher was closed").into()),
                    Err(_) => Err(Failure { unfinished: true, ..self.out_of_time().into() }),
                },
                // The client goes on trying, and would say nothing until the limit.
                Ok(()) = self.troubles.changed() => self.refused = self.refusal(),
            }
        }
    }

    fn failure(&self, message: &Message, code: RDKafkaErrorCode) -> Failure {
        let error = match (error::cause(code), self.refusal()) {
            (Cause::Away, Some(refusal)) => refusal,
            _ => error::of(code, &message.target),
        };
        Failure {
            error,
            in_company: matches!(error::cause(code), Cause::TooLarge | Cause::Neighbour | Cause::Message),
            unfinished: false,
        }
    }

    fn refusal(&self) -> Option<PublishError> {
        self.troubles.borrow().as_ref().filter(|trouble| trouble.is_a_refusal()).map(Trouble::error)
    }

    fn out_of_time(&self) -> PublishError {
        let heard = self.troubles.borrow().as_ref().map(Trouble::error);
        heard.unwrap_or_else(|| PublishError::unavailable("was not confirmed in time"))
    }

    /// A broker refuses a batch that is too large, or has a message that it never takes, as one, so each of its messages may be innocent. Each is
    /// sent alone, in their order, and only then it is its own fault.
    async fn send_alone(&mut self, messages: &[Message], receipts: &mut [Result<Option<String>, Failure>]) {
        if messages.len() < 2 {
            return;
        }
        for (message, receipt) in messages.iter().zip(receipts) {
            if matches!(receipt, Err(failure) if failure.in_company) {
                *receipt = match self.enqueue(message).await {
                    Ok(waiting) => self.report(message, waiting).await,
                    Err(failure) => Err(failure),
                };
            }
        }
    }

    /// Calls back the messages that still wait in the client's queue: their caller publishes them again, and they would arrive twice.
    /// Other calls lose their waiting messages too, and are told so. A message that was sent already cannot be called back.
    fn call_back(&self) {
        self.client.purge(PurgeConfig::default().queue().non_blocking());
    }
}

/// The message's headers, and its content type where Kafka's tools look for it.
fn headers(message: &Message) -> OwnedHeaders {
    let own = Header { key: CONTENT_TYPE, value: Some(&*message.content_type) };
    let others = message.headers.iter().filter(|(name, _)| !header::imitates(name) && !header::is_command(KIND, name));
    others
        .fold(OwnedHeaders::new_with_capacity(message.headers.len() + 1), |headers, (name, value)| {
            headers.insert(Header { key: name, value: Some(value.as_str()) })
        })
        .insert(own)
}
