//! Hands the messages of a call to the client, and waits for the report of each.

use std::sync::Arc;
use std::time::Duration;

use pillarbox_core::publisher::{FailureScope, Message, PublishError, PublishErrorKind, Receipt, header};
use rdkafka::message::{Header, OwnedHeaders};
use rdkafka::producer::{BaseRecord, Producer as _, PurgeConfig};
use rdkafka::types::RDKafkaErrorCode::{self, Fatal, MessageTimedOut, PurgeInflight, PurgeQueue};
use tokio::sync::{oneshot, watch};
use tokio::time::{Instant, sleep, sleep_until};

use crate::connect::{self, Client};
use crate::error::{self, Cause};
use crate::trouble::{GRACE, Health, Report, Trouble, code};
use crate::{KIND, KafkaPublisher, topic};

/// The time to wait for room in the client's queue before looking again.
const ROOM: Duration = Duration::from_millis(5);

const CONTENT_TYPE: &str = "content-type";

/// A message on its way.
type Waiting = oneshot::Receiver<Report>;

/// A receipt that may not be the last word.
type Outcome = Result<Option<String>, Failure>;

impl KafkaPublisher {
    pub(crate) async fn publish_all(&self, messages: Vec<Message>) -> Vec<Receipt> {
        let deadline = Instant::now() + self.timeout;
        let mut call = match self.connection.client() {
            Ok(client) => Call::new(client, deadline),
            Err(error) => return vec![Err(error); messages.len()],
        };
        let mut sent = Vec::with_capacity(messages.len());
        for message in &messages {
            sent.push(call.enqueue(message).await);
        }
        let mut outcomes = Vec::with_capacity(messages.len());
        for (message, waiting) in messages.iter().zip(sent) {
            let outcome = match waiting {
                Ok(waiting) => call.report(message, waiting).await,
                Err(error) => Err(error.into()),
            };
            outcomes.push(outcome);
        }
        call.call_back();
        if outcomes.iter().any(is_in_company) {
            self.send_alone(&messages, &mut outcomes, deadline).await;
        }
        outcomes.into_iter().map(|outcome| outcome.map_err(|failure| failure.error)).collect()
    }

    /// A broker refuses a batch that is too large, or has a message that it never takes, as one, so each of its messages may be innocent. Each is
    /// sent alone, in their order, and only then it is its own fault. The client that batches would put them together with those of other
    /// calls, so another one sends them.
    async fn send_alone(&self, messages: &[Message], outcomes: &mut [Outcome], deadline: Instant) {
        let mut call = self.alone.client().map(|client| Call::new(client, deadline));
        for (message, outcome) in messages.iter().zip(outcomes).filter(|(_, outcome)| is_in_company(outcome)) {
            *outcome = match &mut call {
                Ok(call) => call.send(message).await,
                Err(error) => Err(error.clone().into()),
            };
        }
        if let Ok(call) = call {
            call.call_back();
        }
    }
}

/// The error of a message that was not confirmed, possibly only because of others in its batch.
struct Failure {
    error: PublishError,
    in_company: bool,
}

impl From<PublishError> for Failure {
    fn from(error: PublishError) -> Self {
        Self { error, in_company: false }
    }
}

fn is_in_company(outcome: &Outcome) -> bool {
    matches!(outcome, Err(failure) if failure.in_company)
}

struct Call {
    client: Arc<Client>,
    began: Instant,
    deadline: Instant,
    /// The client's complaints since the call began.
    health: watch::Receiver<Health>,
    /// The time at which a broker was heard to refuse, unless a message was delivered since.
    refused: Option<Instant>,
    /// True if a message was given up before its report came.
    has_given_up: bool,
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
    fn new(client: Arc<Client>, deadline: Instant) -> Self {
        let (began, health) = (Instant::now(), client.context().health());
        Self { client, began, deadline, health, refused: None, has_given_up: false }
    }

    /// Hands a message to the client; waits where its queue is full.
    async fn enqueue(&self, message: &Message) -> Result<Waiting, PublishError> {
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
                        return Err(error::publish_error(RDKafkaErrorCode::QueueFull, &message.target));
                    }
                    record = same;
                    sleep(ROOM).await;
                }
                Err((failure, _)) => return Err(self.error(message, code(&failure))),
            }
        }
    }

    async fn report(&mut self, message: &Message, mut waiting: Waiting) -> Outcome {
        loop {
            let limit = self.limit();
            tokio::select! {
                // A report that is there counts, whatever else is.
                biased;
                report = &mut waiting => return match report {
                    Ok(report) => report.map_err(|code| self.failure(message, code)),
                    Err(_) => Err(PublishError::unavailable("the publisher was closed").into()),
                },
                // The client goes on trying, and would say nothing until the deadline.
                Ok(()) = self.health.changed() => self.listen(),
                () = sleep_until(limit) => {
                    // A delivery may have moved it.
                    if Instant::now() >= self.limit() {
                        self.has_given_up = true;
                        return Err(self.out_of_time().into());
                    }
                }
            }
        }
    }

    /// Sends a message to which a broker has objected when it was one of several.
    async fn send(&mut self, message: &Message) -> Outcome {
        let outcome = if Instant::now() >= self.deadline {
            // Handed over now, it would be sent, and published again.
            Err(self.out_of_time().into())
        } else {
            match self.enqueue(message).await {
                Ok(waiting) => self.report(message, waiting).await,
                Err(error) => Err(error.into()),
            }
        };
        outcome.map_err(|failure| match (failure.error.kind(), failure.error.scope()) {
            // The broker that objected is there.
            (PublishErrorKind::Unavailable, FailureScope::Broker) => {
                failure.error.limited_to(FailureScope::Target).into()
            }
            _ => failure,
        })
    }

    /// Takes note of a complaint, or of its end.
    fn listen(&mut self) {
        let refuses = self.health.borrow().refusal().is_some();
        self.refused = refuses.then(|| self.refused.unwrap_or_else(Instant::now));
    }

    /// The end of waiting for reports. A broker that refuses ends it early, unless another one takes messages.
    fn limit(&self) -> Instant {
        match self.refused {
            Some(refused) => self.deadline.min(self.health.borrow().delivered.unwrap_or(refused).max(refused) + GRACE),
            None => self.deadline,
        }
    }

    fn failure(&self, message: &Message, code: RDKafkaErrorCode) -> Failure {
        Failure {
            error: self.error(message, code),
            in_company: matches!(error::cause(code), Cause::TooLarge | Cause::Neighbour | Cause::Message),
        }
    }

    fn error(&self, message: &Message, code: RDKafkaErrorCode) -> PublishError {
        let given_up = || self.client.client().fatal_error().map(|(code, reason)| error::fatal(code, &reason));
        let error = match code {
            PurgeQueue | PurgeInflight | Fatal => given_up(),
            MessageTimedOut => Some(self.out_of_time()),
            _ => None,
        };
        let refusal = || self.health.borrow().refusal().filter(|_| error::cause(code) == Cause::Away);
        error.or_else(refusal).unwrap_or_else(|| error::publish_error(code, &message.target))
    }

    /// The error of a message without a report. Where others were delivered meanwhile, its topic alone is in trouble.
    fn out_of_time(&self) -> PublishError {
        let health = self.health.borrow();
        let unheard = || PublishError::unavailable("was not confirmed in time");
        let error = health.trouble.as_ref().map_or_else(unheard, Trouble::error);
        let others_are = health.delivered.is_some_and(|last| last >= self.began);
        match error.kind() {
            PublishErrorKind::Unavailable if others_are => error.limited_to(FailureScope::Target),
            _ => error,
        }
    }

    /// Calls back the messages that still wait in the client's queue: their caller publishes them again, and they would arrive twice. Other
    /// calls lose their waiting messages too, and are told so. So it is only done where nothing was delivered for a while; else the client
    /// gives them up by itself. A message that was sent already cannot be called back.
    fn call_back(&self) {
        let is_quiet = self.health.borrow().delivered.is_none_or(|last| last + GRACE <= Instant::now());
        if self.has_given_up && is_quiet {
            self.client.purge(PurgeConfig::default().queue().non_blocking());
        }
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
