//! The client's news about its connections, beside the reports of single messages.

use std::time::Duration;

use pillarbox_core::publisher::PublishError;
use rdkafka::client::ClientContext;
use rdkafka::config::RDKafkaLogLevel;
use rdkafka::error::KafkaError;
use rdkafka::message::{DeliveryResult, Message};
use rdkafka::producer::{NoCustomPartitioner, ProducerContext};
use rdkafka::types::RDKafkaErrorCode;
use tokio::sync::{oneshot, watch};
use tokio::time::Instant;

use crate::error::{self, Cause};

/// The time without a delivery after which one broker's refusal is believed to be that of all, and nothing is expected to leave the queue.
pub(crate) const GRACE: Duration = Duration::from_secs(1);

/// The client's report on one message: its position, if the broker has told it.
pub(crate) type Report = Result<Option<String>, RDKafkaErrorCode>;

/// The callbacks that the client calls from its own thread.
#[derive(Debug, Default)]
pub(crate) struct Context {
    health: watch::Sender<Health>,
}

/// The state of the client's connections, as far as it is known.
#[derive(Debug, Default)]
pub(crate) struct Health {
    /// The last complaint, until a message is delivered.
    pub(crate) trouble: Option<Trouble>,
    /// The time of the last delivery.
    pub(crate) delivered: Option<Instant>,
}

/// A complaint about a connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Trouble {
    code: RDKafkaErrorCode,
    reason: String,
}

impl Context {
    /// Tells of each complaint, and of its end.
    pub(crate) fn health(&self) -> watch::Receiver<Health> {
        self.health.subscribe()
    }

    /// A broker has answered.
    pub(crate) fn clear(&self) {
        self.health.send_if_modified(|health| health.trouble.take().is_some());
    }

    fn delivered(&self) {
        self.health.send_if_modified(|health| {
            health.delivered = Some(Instant::now());
            health.trouble.take().is_some()
        });
    }
}

impl Health {
    /// The publish error if a broker refuses this client, and no message was delivered since.
    pub(crate) fn refusal(&self) -> Option<PublishError> {
        self.trouble.as_ref().filter(|trouble| trouble.is_a_refusal()).map(Trouble::error)
    }
}

impl Trouble {
    /// True if waiting does not help: the broker refuses this client.
    fn is_a_refusal(&self) -> bool {
        error::cause(self.code) == Cause::Refused
    }

    /// The publish error for a message that is not confirmed.
    pub(crate) fn error(&self) -> PublishError {
        if self.is_a_refusal() {
            PublishError::misconfigured(format!("the broker refuses: {}", self.reason))
        } else {
            PublishError::unavailable(format!("was not confirmed in time; the last that was heard is: {}", self.reason))
        }
    }
}

impl ClientContext for Context {
    fn log(&self, level: RDKafkaLogLevel, facility: &str, message: &str) {
        // Important errors come as those of a message or of the client, with a remedy.
        tracing::debug!(?level, facility, message, "librdkafka");
    }

    fn error(&self, error: KafkaError, reason: &str) {
        let Some(code) = error.rdkafka_error_code() else { return };
        tracing::debug!(%error, reason, "librdkafka reports an error");
        self.health.send_modify(|health| {
            // That nobody is left is heard after why.
            if code != RDKafkaErrorCode::AllBrokersDown || health.trouble.is_none() {
                health.trouble = Some(Trouble { code, reason: reason.to_owned() });
            }
        });
    }
}

impl ProducerContext<NoCustomPartitioner> for Context {
    type DeliveryOpaque = Box<oneshot::Sender<Report>>;

    fn delivery(&self, result: &DeliveryResult<'_>, waiting: Self::DeliveryOpaque) {
        let report = match result {
            Ok(message) => {
                self.delivered();
                Ok(position(message))
            }
            Err((error, _)) => Err(code(error)),
        };
        // The caller may have stopped waiting.
        let _ = waiting.send(report);
    }
}

/// The topic, the partition and the offset of a message. The offset is not known of one that the broker had stored already.
fn position(message: &impl Message) -> Option<String> {
    let (topic, partition, offset) = (message.topic(), message.partition(), message.offset());
    (offset >= 0).then(|| format!("{topic}/{partition}/{offset}"))
}

/// The code of an error that the client returned.
pub(crate) fn code(error: &KafkaError) -> RDKafkaErrorCode {
    error.rdkafka_error_code().unwrap_or(RDKafkaErrorCode::Unknown)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_stands_until_a_message_is_delivered() {
        let context = Context::default();
        let health = context.health();
        context.error(KafkaError::Global(RDKafkaErrorCode::SSL), "not trusted");
        context.error(KafkaError::Global(RDKafkaErrorCode::AllBrokersDown), "none is left");
        let refusal = health.borrow().refusal().expect("refused");
        assert!(refusal.to_string().contains("not trusted"), "{refusal}");
        context.delivered();
        assert_eq!(health.borrow().refusal(), None);
        assert!(health.borrow().delivered.is_some());
    }
}
