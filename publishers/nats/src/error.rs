use std::error::Error;
use std::time::Duration;

use async_nats::jetstream::ErrorCode as Code;
use async_nats::jetstream::context::{GetStreamByNameError, PublishErrorKind, RequestError, RequestErrorKind};
use async_nats::{ConnectError, ConnectErrorKind, ServerError, jetstream};
use pillarbox_connect::tls;
use pillarbox_core::publisher::{FailureScope, PublishError};

use crate::refusals::Refusal;
use crate::servers::{Login, Servers};

/// The time after which a message is tried again of which a stream knows no more than the id.
const IN_PROCESS: Duration = Duration::from_secs(3);

/// A failure as the client reports it, with the object that it is about.
#[derive(Debug)]
pub(crate) enum Failure<'a> {
    /// No connection was made.
    Connect(&'a ConnectError, &'a Servers),
    /// A message for this subject was not confirmed.
    Publish(&'a jetstream::context::PublishError, &'a str),
    /// The server refused a message for this subject, or all confirmations.
    Refused(Refusal, &'a str),
    /// A confirmation came for this subject that is no stream's.
    Stranger(&'a str),
    /// A stream has answered for this subject that it has seen the message, and has stored none.
    NotStored(&'a str),
    /// No stream takes this subject.
    NoStream(&'a str),
    /// It was not answered which stream takes a subject.
    Stream(&'a GetStreamByNameError),
}

/// Translates the failure into an error of the port. The client's texts hold no credentials, since it is given addresses without
/// them.
pub(crate) fn publish_error(failure: &Failure<'_>) -> PublishError {
    match failure {
        Failure::Connect(error, servers) => connecting(error, servers),
        Failure::Publish(error, subject) => publishing(error, subject),
        Failure::Refused(Refusal::Publish, subject) => PublishError::misconfigured(format!(
            "the server does not permit to publish to `{subject}`; give this user the permission"
        ))
        .limited_to(FailureScope::Target),
        Failure::Refused(Refusal::Confirmations, _) => PublishError::misconfigured(
            "the server does not permit to receive confirmations; let this user subscribe to `_INBOX.>`, or name a \
             prefix that it may subscribe to with `inbox_prefix`",
        ),
        Failure::Stranger(subject) => PublishError::misconfigured(format!(
            "what answers for the subject `{subject}` is no stream; keep other programs from replying on it"
        ))
        .limited_to(FailureScope::Target),
        Failure::NotStored(subject) => in_process(format!("the stream of `{subject}` has not stored it yet")),
        Failure::NoStream(subject) => {
            PublishError::misconfigured(format!("no stream takes the subject `{subject}`; {}", make_stream(subject)))
                .limited_to(FailureScope::Target)
        }
        Failure::Stream(error) => asking(error),
    }
}

/// The command that makes a stream for a subject. A subject may be made of an event's data, and people copy commands into a shell: one that
/// is more than plain names is in none.
fn make_stream(subject: &str) -> String {
    let is_plain = subject.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._>*-".contains(&byte));
    if is_plain {
        return format!("make one: nats stream add NAME --subjects '{subject}'");
    }
    "make one that takes it".to_owned()
}

fn connecting(error: &ConnectError, servers: &Servers) -> PublishError {
    let shown = &servers.shown;
    match error.kind() {
        ConnectErrorKind::AuthorizationViolation | ConnectErrorKind::Authentication => {
            PublishError::misconfigured(denied(shown, &servers.login))
        }
        ConnectErrorKind::ServerParse => PublishError::misconfigured(format!("{shown} is no server: {error}")),
        _ if sources(error).any(is_denial) => PublishError::misconfigured(denied(shown, &servers.login)),
        ConnectErrorKind::Tls => PublishError::misconfigured(format!("no TLS with {shown}: {error}")),
        _ if tls::failure(error).is_some() => PublishError::misconfigured(format!(
            "no TLS with {shown}: {error}; name the certificate authority of the servers with `ca_file`, and the servers as \
             their certificates do"
        )),
        _ => PublishError::unavailable(format!("no connection to {shown}: {error}")),
    }
}

fn denied(shown: &str, login: &Login) -> String {
    let what = match login {
        Login::Nobody => {
            "refuses to let anybody in without credentials; set `token`, `username` and `password`, \
             `credentials_file` or `nkey`"
        }
        Login::Token(_) => "refuses the token; set the right one",
        Login::Password(..) => "refuses the user or the password; set the right ones",
        Login::File(_) => "refuses the credentials in `credentials_file`; name others",
        Login::Nkey(_) => "refuses the key of the option `nkey`; set the right one",
    };
    format!("{shown} {what}")
}

/// The server's words for credentials that were good once.
fn is_denial(source: &(dyn Error + 'static)) -> bool {
    source.downcast_ref::<ServerError>().is_some_and(|error| match error {
        ServerError::AuthorizationViolation => true,
        ServerError::Other(text) => text.to_ascii_lowercase().contains("authentication"),
        ServerError::SlowConsumer(_) => false,
    })
}

fn publishing(error: &jetstream::context::PublishError, subject: &str) -> PublishError {
    match error.kind() {
        PublishErrorKind::StreamNotFound => publish_error(&Failure::NoStream(subject)),
        PublishErrorKind::MaxPayloadExceeded => PublishError::permanent(format!(
            "the message is too large for the server: {}",
            error.source().map(ToString::to_string).unwrap_or_default()
        )),
        _ => match sources(error).find_map(|source| source.downcast_ref::<jetstream::Error>()) {
            Some(answer) => answered(answer, Some(subject)),
            None if error.kind() == PublishErrorKind::Other
                && sources(error).any(|source| source.is::<serde_json::Error>()) =>
            {
                publish_error(&Failure::Stranger(subject))
            }
            None if matches!(error.kind(), PublishErrorKind::BrokenPipe | PublishErrorKind::Other) => {
                PublishError::unavailable("the connection was lost before the confirmation came")
            }
            None => PublishError::unavailable(format!("not confirmed: {error}")),
        },
    }
}

/// The error that JetStream itself has answered.
fn answered(error: &jetstream::Error, subject: Option<&str>) -> PublishError {
    let text = match subject {
        Some(subject) => format!("the stream of `{subject}` says: {error}"),
        None => format!("JetStream says: {error}"),
    };
    match error.error_code() {
        Code::JETSTREAM_NOT_ENABLED | Code::JETSTREAM_NOT_ENABLED_FOR_ACCOUNT => off(),
        Code::STREAM_NOT_MATCH => PublishError::misconfigured(format!(
            "{text}; another stream takes it than the option `expected_stream` says"
        ))
        .limited_to(FailureScope::Target),
        Code::STREAM_SEALED => PublishError::misconfigured(format!("{text}; let another stream take the subject"))
            .limited_to(FailureScope::Target),
        Code::STREAM_MESSAGE_EXCEEDS_MAXIMUM | Code::STREAM_HEADER_EXCEEDS_MAXIMUM => PublishError::permanent(text),
        // The account is full, or the servers are short of something.
        Code::ACCOUNT_RESOURCES_EXCEEDED | Code::INSUFFICIENT_RESOURCES | Code::CLUSTER_NOT_AVAILABLE => {
            PublishError::unavailable(text)
        }
        Code::STREAM_DUPLICATE_MESSAGE_CONFLICT => in_process(text),
        // The stream is full, offline, without a leader, or has too much to do: 503 is what the server says for "not now".
        _ if error.code() >= 500 || error.error_code() == Code::STREAM_TOO_MANY_REQUESTS => {
            let scope = if subject.is_some() { FailureScope::Target } else { FailureScope::Broker };
            PublishError::unavailable(text).limited_to(scope)
        }
        _ => PublishError::temporary(text),
    }
}

/// An earlier try of the message is being stored, or was lost with its leader: then the stream takes it again once it has forgotten the id.
fn in_process(text: String) -> PublishError {
    PublishError::unavailable(text).limited_to(FailureScope::Message).retry_after(IN_PROCESS)
}

fn off() -> PublishError {
    PublishError::misconfigured(
        "JetStream is not enabled for this user; start the server with `--jetstream`, or enable it for the account",
    )
}

fn asking(error: &GetStreamByNameError) -> PublishError {
    let unheard = |source: &&(dyn Error + 'static)| {
        source.downcast_ref::<RequestError>().is_some_and(|error| error.kind() == RequestErrorKind::NoResponders)
    };
    if let Some(answer) = sources(error).find_map(|source| source.downcast_ref::<jetstream::Error>()) {
        return answered(answer, None);
    }
    if sources(error).any(|source| unheard(&source)) {
        return off();
    }
    PublishError::unavailable(format!("JetStream does not answer: {error}"))
}

fn sources<'a>(error: &'a (dyn Error + 'static)) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    std::iter::successors(error.source(), |source| (*source).source())
}

#[cfg(test)]
mod tests {
    use std::io;

    use pillarbox_core::publisher::PublishErrorKind::{self as Kind, Misconfigured, Permanent, Temporary, Unavailable};

    use super::*;
    use crate::NatsOptions;

    fn servers() -> Servers {
        Servers::of(&NatsOptions::new("nats://relay:hunter2@localhost")).expect("servers")
    }

    fn answer(code: u16, error_code: u16) -> jetstream::Error {
        let text = format!("{{\"code\":{code},\"err_code\":{error_code},\"description\":\"what it says\"}}");
        serde_json::from_str(&text).expect("an error")
    }

    #[test]
    fn connection_errors_are_classified() {
        use ConnectErrorKind::{
            Authentication, AuthorizationViolation, Dns, Io, MaxReconnects, ServerParse, TimedOut, Tls,
        };
        let tls = || io::Error::new(io::ErrorKind::InvalidData, rustls::Error::DecryptError);
        let said = |text: &str| ServerError::Other(text.to_owned());
        let table: Vec<(ConnectError, Kind, &str)> = vec![
            (ConnectError::new(AuthorizationViolation), Misconfigured, "refuses the user or the password"),
            (ConnectError::new(Authentication), Misconfigured, "refuses the user or the password"),
            (ConnectError::with_source(Io, said("User Authentication Expired")), Misconfigured, "refuses"),
            (ConnectError::with_source(Io, said("maximum connections exceeded")), Unavailable, "maximum connections"),
            (ConnectError::with_source(Io, tls()), Misconfigured, "`ca_file`"),
            (ConnectError::with_source(Tls, "no certificate"), Misconfigured, "no certificate"),
            (ConnectError::new(ServerParse), Misconfigured, "no server"),
            (ConnectError::with_source(Io, io::Error::from(io::ErrorKind::ConnectionRefused)), Unavailable, "refused"),
            (ConnectError::with_source(Dns, "no such host"), Unavailable, "no such host"),
            (ConnectError::new(TimedOut), Unavailable, "timed out"),
            (ConnectError::new(MaxReconnects), Unavailable, "no connection"),
        ];
        for (error, kind, text) in table {
            let told = publish_error(&Failure::Connect(&error, &servers()));
            assert_eq!(told.kind(), kind, "{error:?}");
            assert!(told.to_string().contains(text) && told.to_string().contains("nats://localhost"), "{told}");
            assert!(!told.to_string().contains("hunter2"), "{told}");
        }
    }

    #[test]
    fn message_errors_are_classified() {
        use PublishErrorKind::{BrokenPipe, MaxAckPending, MaxPayloadExceeded, Other, StreamNotFound, TimedOut};
        use jetstream::context::PublishError as Error;
        let said = |code, error_code| Error::with_source(Other, answer(code, error_code));
        let no_json = serde_json::from_str::<u8>("+OK").expect_err("no JSON");
        let table = vec![
            (Error::new(StreamNotFound), Misconfigured, "nats stream add NAME --subjects 'orders'"),
            (Error::with_source(MaxPayloadExceeded, "limit of 5 exceeded by 7"), Permanent, "limit of 5 exceeded by 7"),
            (Error::with_source(Other, no_json), Misconfigured, "is no stream"),
            (Error::with_source(Other, "channel closed"), Unavailable, "connection was lost"),
            (Error::new(BrokenPipe), Unavailable, "connection was lost"),
            (Error::new(TimedOut), Unavailable, "timed out"),
            (Error::new(MaxAckPending), Unavailable, "not confirmed"),
            // Discarding new messages: "maximum messages exceeded", "maximum bytes exceeded".
            (said(503, 10077), Unavailable, "what it says"),
            (said(400, 10002), Unavailable, "what it says"),
            (said(503, 10023), Unavailable, "what it says"),
            (said(500, 10118), Unavailable, "what it says"),
            (said(409, 10158), Unavailable, "what it says"),
            (said(429, 10167), Unavailable, "what it says"),
            (said(503, 10076), Misconfigured, "not enabled"),
            (said(503, 10039), Misconfigured, "not enabled"),
            (said(400, 10060), Misconfigured, "`expected_stream`"),
            (said(400, 10109), Misconfigured, "what it says"),
            (said(400, 10054), Permanent, "what it says"),
            (said(400, 10097), Permanent, "what it says"),
            (said(400, 10071), Temporary, "what it says"),
        ];
        for (error, kind, text) in table {
            let told = publish_error(&Failure::Publish(&error, "orders"));
            assert_eq!(told.kind(), kind, "{error:?}");
            assert!(told.to_string().contains(text), "{told}");
        }
    }

    #[test]
    fn trouble_of_a_stream_is_no_trouble_of_others() {
        use jetstream::context::PublishError as Error;
        let streams = [(503, 10077), (500, 10118), (429, 10167), (503, 10009), (500, 10194)];
        let servers = [(400, 10002), (503, 10023), (503, 10008)];
        for (codes, scope) in [(&streams[..], FailureScope::Target), (&servers[..], FailureScope::Broker)] {
            for (code, error_code) in codes {
                let failure = Error::with_source(PublishErrorKind::Other, answer(*code, *error_code));
                let told = publish_error(&Failure::Publish(&failure, "orders"));
                assert_eq!((told.kind(), told.scope()), (Unavailable, scope), "{error_code}");
            }
        }
    }

    #[test]
    fn a_command_to_copy_holds_no_text_of_an_event_but_plain_names() {
        let told = |subject| publish_error(&Failure::NoStream(subject)).to_string();
        for subject in ["orders.placed", "a-b_c.D9", "orders.>", "*.x"] {
            assert!(
                told(subject).ends_with(&format!("nats stream add NAME --subjects '{subject}'")),
                "{}",
                told(subject)
            );
        }
        for subject in ["a';touch\u{a0}b;'", "a$(x)", "a`x`", "a\"b", "a\\b", "a/b", "\u{e5}"] {
            let told = told(subject);
            assert!(told.contains(subject) && told.ends_with("make one that takes it"), "{told}");
        }
    }

    #[test]
    fn a_message_that_is_in_process_waits_alone() {
        let conflict = jetstream::context::PublishError::with_source(PublishErrorKind::Other, answer(409, 10158));
        for failure in [Failure::Publish(&conflict, "orders"), Failure::NotStored("orders")] {
            let told = publish_error(&failure);
            assert_eq!(
                (told.kind(), told.scope(), told.delay()),
                (Unavailable, FailureScope::Message, Some(IN_PROCESS)),
                "{failure:?}"
            );
        }
    }

    #[test]
    fn stream_lookup_errors_are_classified() {
        use async_nats::jetstream::context::GetStreamByNameErrorKind::Request;
        let asked = |inner: RequestError| GetStreamByNameError::with_source(Request, inner);
        let table = [
            (asked(RequestError::new(RequestErrorKind::NoResponders)), Misconfigured, "not enabled"),
            (asked(RequestError::new(RequestErrorKind::TimedOut)), Unavailable, "does not answer"),
            (
                asked(RequestError::with_source(RequestErrorKind::Other, answer(503, 10039))),
                Misconfigured,
                "not enabled",
            ),
            (
                asked(RequestError::with_source(RequestErrorKind::Other, answer(503, 10008))),
                Unavailable,
                "what it says",
            ),
        ];
        for (error, kind, text) in table {
            let told = publish_error(&Failure::Stream(&error));
            assert_eq!(told.kind(), kind, "{error:?}");
            assert!(told.to_string().contains(text), "{told}");
        }
    }
}
