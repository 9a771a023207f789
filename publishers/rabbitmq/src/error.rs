//! Translates the errors of RabbitMQ and its client into those of the port.

use lapin::ErrorKind;
use lapin::protocol::{AMQPErrorKind, AMQPHardError, AMQPSoftError};
use pillarbox_connect::tls;
use pillarbox_core::publisher::{FailureScope, PublishError, PublishErrorKind};

use crate::route::Route;

/// The one place where the client's errors get their kind. `about` is the broker.
pub(crate) fn publish_error(error: &lapin::Error, about: &str) -> PublishError {
    let said = match error.kind() {
        ErrorKind::ProtocolError(error) => error.get_message().to_string(),
        ErrorKind::IOError(error) => error.to_string(),
        _ => error.to_string(),
    };
    PublishError::new(kind_of(error.kind()), format!("{about}: {said}"))
}

fn kind_of(error: &ErrorKind) -> PublishErrorKind {
    match error {
        ErrorKind::ProtocolError(error) => match error.kind() {
            AMQPErrorKind::Soft(
                AMQPSoftError::ACCESSREFUSED | AMQPSoftError::NOTFOUND | AMQPSoftError::RESOURCELOCKED,
            )
            // A virtual host that is missing or not allowed.
            | AMQPErrorKind::Hard(AMQPHardError::NOTALLOWED | AMQPHardError::INVALIDPATH) => {
                PublishErrorKind::Misconfigured
            }
            AMQPErrorKind::Soft(_) => PublishErrorKind::Temporary,
            // It is shutting down, or short of something.
            AMQPErrorKind::Hard(_) => PublishErrorKind::Unavailable,
        },
        ErrorKind::AuthProviderError(_) | ErrorKind::InvalidProtocolVersion(_) => PublishErrorKind::Misconfigured,
        // Nothing that waiting would mend.
        ErrorKind::IOError(error) if tls::failure(&**error).is_some() => PublishErrorKind::Misconfigured,
        _ => PublishErrorKind::Unavailable,
    }
}

/// The exchange or the queue is not there.
pub(crate) fn missing(target: &str, route: Route<'_>) -> PublishError {
    let (what, name) = if route.is_a_queue() { ("queue", route.key) } else { ("exchange", route.exchange) };
    let text = format!("{target}: the {what} {name:?} is missing; declare it, or change the target");
    PublishError::misconfigured(text).limited_to(FailureScope::Target)
}

/// The message came back.
pub(crate) fn unroutable(target: &str, route: Route<'_>) -> PublishError {
    if route.is_a_queue() {
        return missing(target, route);
    }
    let Route { exchange, key } = route;
    PublishError::misconfigured(format!(
        "{target}: no queue is bound to the exchange {exchange:?} for the routing key {key:?}; bind one"
    ))
    .limited_to(FailureScope::Target)
}

#[cfg(test)]
mod tests {
    use lapin::protocol::AMQPError;

    use super::*;

    #[test]
    fn each_error_of_the_client_has_its_kind() {
        use PublishErrorKind::{Misconfigured, Temporary, Unavailable};
        let soft = |error: AMQPSoftError| ErrorKind::ProtocolError(AMQPError::new(error.into(), "said".into()));
        let hard = |error: AMQPHardError| ErrorKind::ProtocolError(AMQPError::new(error.into(), "said".into()));
        let io = |error: std::io::Error| ErrorKind::IOError(error.into());
        let expired = rustls::Error::InvalidCertificate(rustls::CertificateError::Expired);
        let table = [
            (soft(AMQPSoftError::ACCESSREFUSED), Misconfigured),
            (soft(AMQPSoftError::NOTFOUND), Misconfigured),
            (soft(AMQPSoftError::PRECONDITIONFAILED), Temporary),
            (hard(AMQPHardError::NOTALLOWED), Misconfigured),
            (hard(AMQPHardError::CONNECTIONFORCED), Unavailable),
            (hard(AMQPHardError::INTERNALERROR), Unavailable),
            (io(std::io::ErrorKind::ConnectionRefused.into()), Unavailable),
            (io(std::io::Error::new(std::io::ErrorKind::InvalidData, expired)), Misconfigured),
            (ErrorKind::MissingHeartbeatError, Unavailable),
            (ErrorKind::ChannelsLimitReached, Unavailable),
        ];
        for (error, kind) in table {
            let told = publish_error(&error.clone().into(), "amqp://h:5672");
            assert_eq!(told.kind(), kind, "{error:?}");
            assert!(told.to_string().starts_with("amqp://h:5672: "), "{told}");
        }
    }

    #[test]
    fn a_missing_target_is_named_with_what_is_missing() {
        let text = |target: &str| {
            let route = Route::parse(target, None).expect("a target");
            (missing(target, route).to_string(), unroutable(target, route).to_string())
        };
        let (missing, unroutable) = text("shop/placed");
        assert!(missing.contains("exchange \"shop\"") && unroutable.contains("routing key \"placed\""));
        let (missing, unroutable) = text("/orders");
        assert!(missing.contains("queue \"orders\"") && missing == unroutable);
    }
}
