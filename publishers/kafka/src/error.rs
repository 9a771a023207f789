//! From the client's errors to those of the port.

use pillarbox_core::publisher::{FailureScope, PublishError};
use rdkafka::types::RDKafkaErrorCode;

/// The cause of an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cause {
    /// The brokers cannot be reached, do not answer, or take nothing at the moment.
    Away,
    /// A broker answers that a partition takes nothing at the moment.
    Partition,
    /// The brokers refuse this client.
    Refused,
    /// The topic is not there.
    NoTopic,
    /// The message, or the batch that it travelled in, is too large.
    TooLarge,
    /// Another message of the batch that it travelled in is one that is never taken.
    Neighbour,
    /// The message is one that is never taken.
    Message,
    /// Anything else.
    Other,
}

/// The cause of an error of the client or a broker.
pub(crate) fn cause(code: RDKafkaErrorCode) -> Cause {
    use RDKafkaErrorCode::*;
    match code {
        MessageTimedOut
        | OperationTimedOut
        | TimedOutQueue
        | BrokerTransportFailure
        | AllBrokersDown
        | Resolve
        | NetworkException
        | BrokerNotAvailable
        | CoordinatorLoadInProgress
        | CoordinatorNotAvailable
        | NotCoordinator
        | ThrottlingQuotaExceeded
        | QueueFull
        | PurgeQueue
        | PurgeInflight
        | BrokerDestroy
        // The client's own books do not fit the broker's any more, which a new client mends.
        | Fatal
        | Fenced
        | OutOfOrderSequenceNumber
        | InvalidProducerEpoch
        | InvalidProducerIdMapping
        | UnknownProducerId => Cause::Away,
        RequestTimedOut
        | LeaderNotAvailable
        | ReplicaNotAvailable
        | NotLeaderForPartition
        | NotEnoughReplicas
        | NotEnoughReplicasAfterAppend
        | ISRInsufficient
        | KafkaStorageError => Cause::Partition,
        Authentication
        | SaslAuthenticationFailed
        | UnsupportedSASLMechanism
        | IllegalSASLState
        | SecurityDisabled
        | SSL
        | TopicAuthorizationFailed
        | ClusterAuthorizationFailed
        | PolicyViolation => Cause::Refused,
        UnknownTopic | UnknownPartition | UnknownTopicOrPartition | InvalidTopic => Cause::NoTopic,
        MessageSizeTooLarge | MessageBatchTooLarge | InvalidMessageSize => Cause::TooLarge,
        InvalidDifferentRecord => Cause::Neighbour,
        InvalidRecord | InvalidTimestamp | UnsupportedForMessageFormat | InvalidArgument => Cause::Message,
        _ => Cause::Other,
    }
}

/// The publish error of a code, for a message to `topic`.
pub(crate) fn publish_error(code: RDKafkaErrorCode, topic: &str) -> PublishError {
    let text = format!("topic {topic}: {code}");
    match cause(code) {
        Cause::Away => PublishError::unavailable(text),
        Cause::Partition => PublishError::unavailable(text).limited_to(FailureScope::Target),
        Cause::Refused => {
            let scope = if code == RDKafkaErrorCode::TopicAuthorizationFailed {
                FailureScope::Target
            } else {
                FailureScope::Broker
            };
            let text = format!("{text}; correct the credentials or what they may do");
            PublishError::misconfigured(text).limited_to(scope)
        }
        Cause::NoTopic => {
            let text = format!("{text}; create the topic, or correct the target");
            PublishError::misconfigured(text).limited_to(FailureScope::Target)
        }
        Cause::TooLarge => PublishError::permanent(format!(
            "{text}; make the event smaller, or raise `message.max.bytes` in `properties` and of the topic"
        )),
        Cause::Message => PublishError::permanent(text),
        Cause::Neighbour => PublishError::unavailable(text).limited_to(FailureScope::Message),
        Cause::Other => PublishError::temporary(text),
    }
}

/// The publish error of a client that has given up, by the code and the text of its reason.
pub(crate) fn fatal(code: RDKafkaErrorCode, reason: &str) -> PublishError {
    let text = format!("the client has given up: {reason}");
    match cause(code) {
        Cause::Refused => PublishError::misconfigured(format!("{text}; correct the credentials or what they may do")),
        // A new one begins anew.
        _ => PublishError::unavailable(text),
    }
}

#[cfg(test)]
mod tests {
    use RDKafkaErrorCode::*;
    use pillarbox_core::publisher::PublishErrorKind::{self, Misconfigured, Permanent, Temporary, Unavailable};

    use super::*;

    #[test]
    fn an_answer_about_a_partition_concerns_its_topic_alone() {
        for code in [NotEnoughReplicas, NotEnoughReplicasAfterAppend, LeaderNotAvailable, KafkaStorageError] {
            assert_eq!(publish_error(code, "orders").scope(), FailureScope::Target, "{code:?}");
        }
        for code in [MessageTimedOut, BrokerTransportFailure, AllBrokersDown, PurgeQueue, QueueFull] {
            assert_eq!(publish_error(code, "orders").scope(), FailureScope::Broker, "{code:?}");
        }
    }

    #[test]
    fn a_client_that_has_given_up_says_why() {
        for (code, kind) in [(ClusterAuthorizationFailed, Misconfigured), (Fenced, Unavailable)] {
            let error = fatal(code, "for a reason");
            assert!(error.kind() == kind && error.to_string().contains("for a reason"), "{error}");
        }
    }

    #[test]
    fn each_error_says_whose_fault_it_is() {
        let cases: [(PublishErrorKind, &[RDKafkaErrorCode]); 4] = [
            (
                Unavailable,
                &[
                    MessageTimedOut,
                    AllBrokersDown,
                    BrokerTransportFailure,
                    RequestTimedOut,
                    NotEnoughReplicas,
                    NotEnoughReplicasAfterAppend,
                    NotLeaderForPartition,
                    LeaderNotAvailable,
                    PurgeQueue,
                    PurgeInflight,
                    QueueFull,
                    Fatal,
                    OutOfOrderSequenceNumber,
                    ThrottlingQuotaExceeded,
                    KafkaStorageError,
                    InvalidDifferentRecord,
                ],
            ),
            (
                Misconfigured,
                &[
                    Authentication,
                    SaslAuthenticationFailed,
                    SSL,
                    TopicAuthorizationFailed,
                    ClusterAuthorizationFailed,
                    UnknownTopic,
                    UnknownTopicOrPartition,
                    UnknownPartition,
                    InvalidTopic,
                    PolicyViolation,
                ],
            ),
            (Permanent, &[MessageSizeTooLarge, MessageBatchTooLarge, InvalidRecord, InvalidTimestamp]),
            (Temporary, &[Unknown, InvalidMessage, UnsupportedVersion, Fail]),
        ];
        for (kind, codes) in cases {
            for &code in codes {
                let error = publish_error(code, "orders");
                assert_eq!(error.kind(), kind, "{code:?}");
                assert!(error.to_string().starts_with("topic orders: "), "{error}");
            }
        }
    }
}
