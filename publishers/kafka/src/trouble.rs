//! Complaints of the client about its connections, beside the reports of single messages.

use pillarbox_core::publisher::PublishError;
use rdkafka::client::ClientContext;
use rdkafka::config::RDKafkaLogLevel;
use rdkafka::error::KafkaError;
use rdkafka::message::{DeliveryResult, Message};
use rdkafka::producer::{NoCustomPartitioner, ProducerContext};
use rdkafka::types::RDKafkaErrorCode;
use tokio::sync::{oneshot, watch};

use crate::error::{self, Cause};

/// The client's report on one message: its position, if the broker has told it.
pub(crate) type Report = Result<Option<String>, RDKafkaErrorCode>;

/// The callbacks that the client calls from its own thread.
#[derive(Debug, Default)]
pub(crate) struct Context {
    trouble: watch::Sender<Option<Trouble>>,
}

/// The last complaint about a connection, until a message is delivered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Trouble {
    code: RDKafkaErrorCode,
    reason: String,
}

impl Context {
    pub(crate) fn troubles(&self) -> watch::Receiver<Option<Trouble>> {
        self.trouble.subscribe()
    }

    pub(crate) fn clear(&self) {
        self.trouble.send_if_modified(|trouble| trouble.take().is_some());
    }
}

impl Trouble {
    /// True if waiting does not help: the broker refuses this client.
    pub(crate) fn is_a_refusal(&self) -> bool {
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
        // What matters comes as an error of a message or of the client, with what to do about it.
        tracing::debug!(?level, facility, message, "librdkafka");
    }

    fn error(&self, error: KafkaError, reason: &str) {
        let Some(code) = error.rdkafka_error_code() else { return };
        tracing::debug!(%error, reason, "librdkafka reports an error");
        self.trouble.send_modify(|trouble| {
            // That nobody is left is heard after why.
            if code != RDKafkaErrorCode::AllBrokersDown || trouble.is_none() {
                *trouble = Some(Trouble { code, reason: reason.to_owned() });
            }
        });
    }
}

impl ProducerContext<NoCustomPartitioner> for Context {
    type DeliveryOpaque = Box<oneshot::Sender<Report>>;

    fn delivery(&self, result: &DeliveryResult<'_>, waiting: Self::DeliveryOpaque) {
        let report = match result {
            Ok(message) => {
                self.clear();
                Ok(position(message))
            }
            Err((error, _)) => Err(code(error)),
        };
        // Whoever asked may have stopped waiting.
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
