//! Translates answers of the broker and errors of the client into receipts and errors of the port.

use pillarbox_connect::tls;
use pillarbox_core::publisher::{FailureScope, PublishError, PublishErrorKind, Receipt};
use rumqttc::{
    ConnectReturnCode, ConnectionError, DisconnectReasonCode, PubAckReason, PublishResult, StateError, mqttbytes,
};

/// The one place where the client's errors get their kind. `about` is the broker.
pub(crate) fn publish_error(error: &ConnectionError, about: &str) -> PublishError {
    let said = match error {
        ConnectionError::ConnectionRefused(code)
        | ConnectionError::MqttState(StateError::ConnFail { reason: code }) => {
            format!("the connection was refused: {code:?}")
        }
        ConnectionError::MqttState(StateError::ServerDisconnect { reason_code, reason_string }) => {
            let more = reason_string.as_ref().map(|text| format!(", {text}")).unwrap_or_default();
            format!("the broker has ended the connection: {reason_code:?}{more}{}", remedy(*reason_code))
        }
        other if suspicion(other) == Some(Suspicion::Refused) => {
            format!("the broker finds a body too large{}", remedy(DisconnectReasonCode::PacketTooLarge))
        }
        other => other.to_string(),
    };
    let text = format!("{about}: {said}");
    if is_misconfigured(error) { PublishError::misconfigured(text) } else { PublishError::unavailable(text) }
}

/// The end of a connection.
#[derive(Debug, Clone)]
pub(crate) struct End {
    /// The error of messages that had no answer, where none of them is to blame.
    pub(crate) error: PublishError,
    /// `None` if no message is the reason: the broker was left or is leaving.
    pub(crate) suspicion: Option<Suspicion>,
}

/// The suspicion against a message that was alone on a connection when that ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Suspicion {
    /// The broker gives no reason that tells: it may have ended over the message or by chance.
    Possible,
    /// The broker will never take the message.
    Refused,
    /// The broker does not allow this client to publish there.
    Forbidden,
}

impl End {
    /// The end of a connection of which nothing is known.
    pub(crate) fn without_a_reason() -> Self {
        Self { error: PublishError::unavailable("the connection was lost"), suspicion: Some(Suspicion::Possible) }
    }
}

impl Suspicion {
    /// The error of a message that is to blame.
    pub(crate) fn error(self, target: &str, end: &PublishError) -> PublishError {
        match self {
            Self::Possible => PublishError::temporary(format!(
                "{target}: the connection has ended twice while nothing but this message was under way: {end}"
            )),
            Self::Refused => {
                PublishError::permanent(format!("{target}: the broker ends the connection over it: {end}"))
            }
            Self::Forbidden => PublishError::misconfigured(format!(
                "{target}: the broker ends the connection over it; allow it to the user of this connection: {end}"
            ))
            .limited_to(FailureScope::Target),
        }
    }
}

/// The end of a connection by this error of the client. `about` is the broker.
pub(crate) fn end(error: &ConnectionError, about: &str) -> End {
    End { error: publish_error(error, about), suspicion: suspicion(error) }
}

/// MQTT's reason code for "packet too large".
const TOO_LARGE: u8 = 0x95;

fn suspicion(error: &ConnectionError) -> Option<Suspicion> {
    use DisconnectReasonCode as Disconnect;
    match error {
        // An acknowledgement that the client does not know, and breaks off at.
        ConnectionError::MqttState(StateError::Deserialization(
            mqttbytes::Error::InvalidConnectReturnCode(TOO_LARGE) | mqttbytes::Error::InvalidReason(TOO_LARGE),
        )) => Some(Suspicion::Refused),
        ConnectionError::MqttState(StateError::ServerDisconnect { reason_code, .. }) => match reason_code {
            Disconnect::PacketTooLarge | Disconnect::TopicNameInvalid | Disconnect::PayloadFormatInvalid => {
                Some(Suspicion::Refused)
            }
            Disconnect::NotAuthorized => Some(Suspicion::Forbidden),
            // It does not like the packet, or does not say what it does not like.
            Disconnect::UnspecifiedError
            | Disconnect::MalformedPacket
            | Disconnect::ProtocolError
            | Disconnect::ImplementationSpecificError => Some(Suspicion::Possible),
            _ => None,
        },
        ConnectionError::MqttState(StateError::AwaitPingResp) | ConnectionError::ConnectionRefused(_) => None,
        other => tls::failure(other).is_none().then_some(Suspicion::Possible),
    }
}

fn is_misconfigured(error: &ConnectionError) -> bool {
    use ConnectReturnCode as Connect;
    use DisconnectReasonCode as Disconnect;
    match error {
        ConnectionError::ConnectionRefused(code)
        | ConnectionError::MqttState(StateError::ConnFail { reason: code }) => {
            matches!(
                code,
                Connect::RefusedProtocolVersion
                    | Connect::UnsupportedProtocolVersion
                    | Connect::BadClientId
                    | Connect::ClientIdentifierNotValid
                    | Connect::BadUserNamePassword
                    | Connect::NotAuthorized
                    | Connect::Banned
                    | Connect::BadAuthenticationMethod
                    | Connect::UseAnotherServer
                    | Connect::ServerMoved
            )
        }
        ConnectionError::MqttState(StateError::ServerDisconnect { reason_code, .. }) => matches!(
            reason_code,
            Disconnect::NotAuthorized
                | Disconnect::QoSNotSupported
                | Disconnect::UseAnotherServer
                | Disconnect::ServerMoved
        ),
        other => tls::failure(other).is_some(),
    }
}

fn remedy(code: DisconnectReasonCode) -> &'static str {
    match code {
        DisconnectReasonCode::SessionTakenOver => "; another client has the same `client_id`: give each its own",
        DisconnectReasonCode::PacketTooLarge => "; set `max_body` to its limit, so that it need not end the connection",
        _ => "",
    }
}

/// Reads the receipt of a message from its acknowledgement.
pub(crate) fn receipt(result: &PublishResult, target: &str) -> Receipt {
    let PublishResult::Qos1(ack) = result else {
        return Err(PublishError::unavailable(format!("{target}: the acknowledgement is not one of a publication")));
    };
    let (kind, problem) = match ack.reason {
        // That nobody listens makes it no less confirmed.
        PubAckReason::Success | PubAckReason::NoMatchingSubscribers => return Ok(None),
        PubAckReason::NotAuthorized => (
            PublishErrorKind::Misconfigured,
            "publishing there is not allowed; allow it to the user of this connection",
        ),
        PubAckReason::QuotaExceeded => (PublishErrorKind::Unavailable, "a quota of the broker is exceeded"),
        PubAckReason::TopicNameInvalid => (PublishErrorKind::Permanent, "the broker does not accept this topic"),
        PubAckReason::PayloadFormatInvalid => (PublishErrorKind::Permanent, "the broker does not accept this payload"),
        PubAckReason::UnspecifiedError => (PublishErrorKind::Temporary, "the broker refuses it and does not say why"),
        PubAckReason::ImplementationSpecificError => {
            (PublishErrorKind::Temporary, "the broker refuses it for a reason of its own")
        }
        PubAckReason::PacketIdentifierInUse => (PublishErrorKind::Temporary, "its number is in use"),
    };
    let said = ack.properties.as_ref().and_then(|properties| properties.reason_string.as_ref());
    let text = said.map_or_else(|| format!("{target}: {problem}"), |said| format!("{target}: {problem} ({said})"));
    let scope = if ack.reason == PubAckReason::NotAuthorized { FailureScope::Target } else { FailureScope::Broker };
    Err(PublishError::new(kind, text).limited_to(scope))
}

#[cfg(test)]
mod tests {
    use rumqttc::PubAck;

    use super::*;
    use PublishErrorKind::{Misconfigured, Permanent, Temporary, Unavailable};

    #[test]
    fn each_acknowledgement_has_its_meaning() {
        let table = [
            (PubAckReason::Success, None),
            (PubAckReason::NoMatchingSubscribers, None),
            (PubAckReason::NotAuthorized, Some(Misconfigured)),
            (PubAckReason::QuotaExceeded, Some(Unavailable)),
            (PubAckReason::TopicNameInvalid, Some(Permanent)),
            (PubAckReason::PayloadFormatInvalid, Some(Permanent)),
            (PubAckReason::UnspecifiedError, Some(Temporary)),
            (PubAckReason::ImplementationSpecificError, Some(Temporary)),
            (PubAckReason::PacketIdentifierInUse, Some(Temporary)),
        ];
        for (reason, expected) in table {
            let result = PublishResult::Qos1(PubAck { pkid: 1, reason, properties: None });
            let receipt = receipt(&result, "shop/a");
            assert_eq!(receipt.as_ref().err().map(PublishError::kind), expected, "{reason:?}");
            assert!(receipt.is_ok() || receipt.is_err_and(|error| error.to_string().starts_with("shop/a: ")));
        }
        assert!(receipt(&PublishResult::Qos0Flushed, "shop/a").is_err(), "written is not acknowledged");
    }

    #[test]
    fn each_error_of_the_client_has_its_kind() {
        let left = |reason_code| {
            let reason_string = Some("said".to_owned());
            ConnectionError::MqttState(StateError::ServerDisconnect { reason_code, reason_string })
        };
        let io = |error: std::io::Error| ConnectionError::Io(error);
        let expired = rustls::Error::InvalidCertificate(rustls::CertificateError::Expired);
        let table = [
            (ConnectionError::ConnectionRefused(ConnectReturnCode::NotAuthorized), Misconfigured),
            (ConnectionError::ConnectionRefused(ConnectReturnCode::BadUserNamePassword), Misconfigured),
            (ConnectionError::ConnectionRefused(ConnectReturnCode::ServerBusy), Unavailable),
            // It may have been this publisher itself, which connects anew when a connection is silent.
            (left(DisconnectReasonCode::SessionTakenOver), Unavailable),
            (left(DisconnectReasonCode::ServerShuttingDown), Unavailable),
            (left(DisconnectReasonCode::QuotaExceeded), Unavailable),
            (io(std::io::ErrorKind::ConnectionRefused.into()), Unavailable),
            (io(std::io::Error::new(std::io::ErrorKind::InvalidData, expired)), Misconfigured),
            (ConnectionError::MqttState(StateError::ConnectionAborted), Unavailable),
        ];
        for (error, kind) in table {
            let told = publish_error(&error, "mqtt://h:1883");
            assert_eq!(told.kind(), kind, "{error:?}");
            assert!(told.to_string().starts_with("mqtt://h:1883: "), "{told}");
        }
        let text = publish_error(&left(DisconnectReasonCode::SessionTakenOver), "h").to_string();
        assert!(text.contains("client_id") && text.contains("said"), "{text}");
    }

    #[test]
    fn the_end_of_a_connection_says_whether_a_message_may_be_the_reason() {
        use DisconnectReasonCode as Disconnect;
        let left =
            |reason_code| ConnectionError::MqttState(StateError::ServerDisconnect { reason_code, reason_string: None });
        let unknown =
            |code| ConnectionError::MqttState(StateError::Deserialization(mqttbytes::Error::InvalidReason(code)));
        let table = [
            (unknown(0x95), Some(Suspicion::Refused)),
            (unknown(0x96), Some(Suspicion::Possible)),
            (left(Disconnect::PacketTooLarge), Some(Suspicion::Refused)),
            (left(Disconnect::NotAuthorized), Some(Suspicion::Forbidden)),
            (left(Disconnect::ProtocolError), Some(Suspicion::Possible)),
            (ConnectionError::MqttState(StateError::ConnectionAborted), Some(Suspicion::Possible)),
            (ConnectionError::Io(std::io::ErrorKind::ConnectionReset.into()), Some(Suspicion::Possible)),
            (left(Disconnect::ServerShuttingDown), None),
            (left(Disconnect::SessionTakenOver), None),
            (left(Disconnect::AdministrativeAction), None),
            (left(Disconnect::QuotaExceeded), None),
            (ConnectionError::MqttState(StateError::AwaitPingResp), None),
        ];
        for (error, suspicion) in table {
            assert_eq!(end(&error, "mqtt://h:1883").suspicion, suspicion, "{error:?}");
        }
    }
}
