//! Translates answers of the broker and errors of the client into receipts and errors of the port.

use pillarbox_connect::tls;
use pillarbox_core::publisher::{PublishError, PublishErrorKind, Receipt, Scope};
use rumqttc::{
    ConnectReturnCode, ConnectionError, DisconnectReasonCode, PubAckReason, PublishResult, StateError, mqttbytes,
};

/// The one place where the client's errors get their kind. `about` is the broker.
pub(crate) fn explain(error: &ConnectionError, about: &str) -> PublishError {
    let said = match error {
        ConnectionError::ConnectionRefused(code)
        | ConnectionError::MqttState(StateError::ConnFail { reason: code }) => {
            format!("the connection was refused: {code:?}")
        }
        ConnectionError::MqttState(StateError::ServerDisconnect { reason_code, reason_string }) => {
            let more = reason_string.as_ref().map(|text| format!(", {text}")).unwrap_or_default();
            format!("the broker has ended the connection: {reason_code:?}{more}{}", remedy(*reason_code))
        }
        other => other.to_string(),
    };
    let text = format!("{about}: {said}");
    if is_misconfigured(error) { PublishError::misconfigured(text) } else { PublishError::unavailable(text) }
}

/// MQTT's reason code for "packet too large".
const TOO_LARGE: u8 = 0x95;

/// True if the broker has found a message too large: by an acknowledgement that the client does not know and breaks off at, or by
/// ending the connection.
pub(crate) fn is_about_a_size(error: &ConnectionError) -> bool {
    match error {
        ConnectionError::MqttState(StateError::Deserialization(
            mqttbytes::Error::InvalidConnectReturnCode(code) | mqttbytes::Error::InvalidReason(code),
        )) => *code == TOO_LARGE,
        ConnectionError::MqttState(StateError::ServerDisconnect { reason_code, .. }) => {
            *reason_code == DisconnectReasonCode::PacketTooLarge
        }
        _ => false,
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
    let scope = if ack.reason == PubAckReason::NotAuthorized { Scope::Target } else { Scope::Broker };
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
            let explained = explain(&error, "mqtt://h:1883");
            assert_eq!(explained.kind(), kind, "{error:?}");
            assert!(explained.to_string().starts_with("mqtt://h:1883: "), "{explained}");
        }
        let unknown = |code| StateError::Deserialization(mqttbytes::Error::InvalidConnectReturnCode(code));
        assert!(is_about_a_size(&ConnectionError::MqttState(unknown(0x95))));
        assert!(!is_about_a_size(&ConnectionError::MqttState(unknown(0x96))));
        assert!(is_about_a_size(&left(DisconnectReasonCode::PacketTooLarge)));
        let text = explain(&left(DisconnectReasonCode::SessionTakenOver), "h").to_string();
        assert!(text.contains("client_id") && text.contains("said"), "{text}");
    }
}
