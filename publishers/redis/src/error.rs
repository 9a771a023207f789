//! Translates replies of Redis and errors of its client into receipts and errors of the port.

use pillarbox_core::publisher::{FailureScope, PublishError, PublishErrorKind, Receipt};
use redis::{ErrorKind, RedisError, Value};

/// The one place where the client's errors get their kind. `about` is the server or the stream.
pub(crate) fn publish_error(error: &RedisError, about: &str) -> PublishError {
    let said = match (error.code(), error.detail()) {
        (Some(code), Some(detail)) => format!("{code} {detail}"),
        (Some(code), None) => code.to_owned(),
        (None, _) => error.to_string(),
    };
    let scope = match error.code() {
        Some("WRONGTYPE" | "NOPERM") => FailureScope::Target,
        Some("ERR") if is_exhausted(error) => FailureScope::Target,
        _ => FailureScope::Broker,
    };
    PublishError::new(kind_of(error), format!("{about}: {said}{}", remedy(error))).limited_to(scope)
}

fn kind_of(error: &RedisError) -> PublishErrorKind {
    let detail = error.detail().unwrap_or_default();
    match (error.code(), error.kind()) {
        // Memory is full, it is starting, it became a replica, a script hangs, it cannot save, its replicas are gone.
        (
            Some(
                "OOM" | "LOADING" | "READONLY" | "BUSY" | "MISCONF" | "NOREPLICAS" | "MASTERDOWN" | "CLUSTERDOWN"
                | "TRYAGAIN" | "UNBLOCKED",
            ),
            _,
        ) => PublishErrorKind::Unavailable,
        (Some("ERR"), _) if detail.contains("max number of clients") => PublishErrorKind::Unavailable,
        (Some("ERR"), _) if detail.contains("too large") => PublishErrorKind::Permanent,
        (Some("ERR"), _) if ["DB index", "AUTH", "unknown command"].iter().any(|part| detail.contains(part)) => {
            PublishErrorKind::Misconfigured
        }
        (Some("ERR"), _) if is_exhausted(error) => PublishErrorKind::Misconfigured,
        (Some("WRONGTYPE" | "NOAUTH" | "WRONGPASS" | "NOPERM" | "DENIED" | "MOVED" | "ASK" | "CROSSSLOT"), _)
        | (_, ErrorKind::AuthenticationFailed | ErrorKind::InvalidClientConfig | ErrorKind::RESP3NotSupported) => {
            PublishErrorKind::Misconfigured
        }
        // A certificate that is not trusted: of TLS, the client wraps it as any error of input and output.
        (_, ErrorKind::Io | ErrorKind::Client) if untrusted(error) => PublishErrorKind::Misconfigured,
        (_, ErrorKind::Io | ErrorKind::Client | ErrorKind::Parse) => PublishErrorKind::Unavailable,
        _ => PublishErrorKind::Temporary,
    }
}

/// True if the stream has an entry with the last of all ids.
fn is_exhausted(error: &RedisError) -> bool {
    error.detail().is_some_and(|detail| detail.contains("exhausted the last possible ID"))
}

fn untrusted(error: &RedisError) -> bool {
    let text = error.to_string();
    text.contains("certificate") || text.contains("CorruptMessage")
}

fn remedy(error: &RedisError) -> &'static str {
    match error.code() {
        Some("WRONGTYPE") => "; the key holds something else than a stream: choose another name",
        Some("NOPERM") => "; the user needs `+xadd` on this stream",
        Some("ERR") if is_exhausted(error) => "; choose another stream, or delete this one",
        Some("ERR") if error.detail().is_some_and(|detail| detail.contains("unknown command")) => {
            "; it has to be Redis 5 or later, in which no command that is needed is renamed"
        }
        Some("MOVED" | "ASK" | "CROSSSLOT") => "; this is a cluster, which is not supported",
        _ => "",
    }
}

/// True if the reply is the error of a server, or of a login, that another connection may improve.
pub(crate) fn wants_another_connection(reply: &Value) -> bool {
    matches!(reply, Value::ServerError(error) if matches!(error.code(), "READONLY" | "NOAUTH" | "MASTERDOWN"))
}

/// Reads the receipt of a message from the reply to its entry.
pub(crate) fn receipt(reply: Option<Value>, target: &str) -> Receipt {
    match reply {
        Some(Value::BulkString(id)) => Ok(Some(format!("{target}/{}", String::from_utf8_lossy(&id)))),
        Some(Value::SimpleString(id)) => Ok(Some(format!("{target}/{id}"))),
        Some(Value::Nil) => Err(missing(target)),
        Some(Value::ServerError(error)) => Err(publish_error(&RedisError::from(error), target)),
        _ => Err(PublishError::unavailable(format!("{target}: the reply is none to an XADD"))),
    }
}

/// Fails if there is no reply, or if it is an error other than a missing permission.
pub(crate) fn answer(reply: Option<Value>, about: &str) -> Result<(), PublishError> {
    match reply {
        Some(Value::ServerError(error)) => {
            let error = RedisError::from(error);
            // Without the permission to be asked whether it is there, it is.
            if error.code() == Some("NOPERM") { Ok(()) } else { Err(publish_error(&error, about)) }
        }
        Some(_) => Ok(()),
        None => Err(PublishError::unavailable(format!("{about}: there was no reply"))),
    }
}

/// Reads the refusal of an entry with an impossible id: a success, where the refusal is that of the id.
pub(crate) fn rehearsal(reply: Option<Value>, target: &str) -> Result<(), PublishError> {
    match reply {
        Some(Value::ServerError(error))
            if error.code() == "ERR" && error.details().is_some_and(|it| it.contains("ID specified in XADD")) =>
        {
            Ok(())
        }
        reply => receipt(reply, target).map(|_| ()),
    }
}

/// Checks that the value of a key can be appended to.
pub(crate) fn kind(kind: &str, target: &str, creates: bool) -> Result<(), PublishError> {
    match kind {
        "stream" => Ok(()),
        "none" if creates => Ok(()),
        "none" => Err(missing(target)),
        other => Err(PublishError::misconfigured(format!(
            "{target}: the key holds a {other}, which is no stream: choose another name"
        ))
        .limited_to(FailureScope::Target)),
    }
}

fn missing(target: &str) -> PublishError {
    let text = format!("the stream {target} is missing; create it, or set `create_streams = true`");
    PublishError::misconfigured(text).limited_to(FailureScope::Target)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reply(text: &str) -> Option<Value> {
        Some(redis::parse_redis_value(format!("{text}\r\n").as_bytes()).expect("a reply"))
    }

    #[test]
    fn each_reply_has_its_meaning() {
        use PublishErrorKind::{Misconfigured, Permanent, Temporary, Unavailable};
        let table = [
            ("$3\r\n1-0", None),
            ("$-1", Some((Misconfigured, "create_streams = true"))),
            ("*0", Some((Unavailable, "none to an XADD"))),
            ("-OOM command not allowed when used memory > 'maxmemory'.", Some((Unavailable, "maxmemory"))),
            ("-READONLY You can't write against a read only replica.", Some((Unavailable, "read only"))),
            ("-LOADING Redis is loading the dataset in memory", Some((Unavailable, "loading"))),
            ("-MISCONF Redis is configured to save RDB snapshots", Some((Unavailable, "RDB"))),
            ("-NOREPLICAS Not enough good replicas to write.", Some((Unavailable, "replicas"))),
            ("-BUSY Redis is busy running a script.", Some((Unavailable, "script"))),
            ("-MASTERDOWN Link with MASTER is down", Some((Unavailable, "MASTER"))),
            ("-ERR max number of clients reached", Some((Unavailable, "clients"))),
            ("-WRONGTYPE Operation against a key holding the wrong kind", Some((Misconfigured, "something else"))),
            ("-NOAUTH Authentication required.", Some((Misconfigured, "required"))),
            ("-WRONGPASS invalid username-password pair", Some((Misconfigured, "invalid"))),
            ("-NOPERM User u has no permissions to run the 'xadd' command", Some((Misconfigured, "+xadd"))),
            ("-MOVED 3999 127.0.0.1:6381", Some((Misconfigured, "cluster"))),
            ("-ERR DB index is out of range", Some((Misconfigured, "DB index"))),
            ("-ERR Elements are too large to be stored", Some((Permanent, "too large"))),
            ("-ERR unknown command 'XADD', with args beginning with: 'orders'", Some((Misconfigured, "Redis 5"))),
            ("-ERR unknown command `XADD`, with args beginning with: `orders`", Some((Misconfigured, "Redis 5"))),
            (
                "-ERR The stream has exhausted the last possible ID, unable to add more items",
                Some((Misconfigured, "another stream")),
            ),
            ("-ERR something new", Some((Temporary, "something new"))),
            ("-NEWCODE something new", Some((Temporary, "something new"))),
        ];
        for (text, expected) in table {
            let receipt = receipt(reply(text), "orders");
            let kind = receipt.as_ref().err().map(PublishError::kind);
            assert_eq!(kind, expected.map(|(kind, _)| kind), "{text}");
            if let (Err(error), Some((_, part))) = (&receipt, expected) {
                assert!(error.to_string().contains("orders") && error.to_string().contains(part), "{error}");
            }
        }
        assert!(receipt(None, "orders").is_err(), "nothing is confirmed without a reply");
    }

    #[test]
    fn a_stream_that_takes_no_more_is_no_trouble_of_others() {
        let scope = |text| receipt(reply(text), "orders").expect_err("refused").scope();
        assert_eq!(
            scope("-ERR The stream has exhausted the last possible ID, unable to add more items"),
            FailureScope::Target
        );
        assert_eq!(scope("-ERR unknown command 'XADD'"), FailureScope::Broker);
    }

    #[test]
    fn each_error_of_the_client_has_its_kind() {
        use PublishErrorKind::{Misconfigured, Unavailable};
        let io = |kind| RedisError::from(std::io::Error::from(kind));
        let table = [
            (io(std::io::ErrorKind::ConnectionRefused), Unavailable),
            (io(std::io::ErrorKind::BrokenPipe), Unavailable),
            (io(std::io::ErrorKind::TimedOut), Unavailable),
            (RedisError::from(std::io::Error::other("invalid peer certificate: UnknownIssuer")), Misconfigured),
            (RedisError::from((ErrorKind::AuthenticationFailed, "Password authentication failed")), Misconfigured),
            (RedisError::from((ErrorKind::Parse, "nonsense")), Unavailable),
        ];
        for (error, kind) in table {
            assert_eq!(publish_error(&error, "redis://h").kind(), kind, "{error}");
        }
    }

    #[test]
    fn a_rehearsal_passes_where_only_its_id_is_refused() {
        let id = "-ERR The ID specified in XADD must be greater than 0-0";
        assert_eq!(rehearsal(reply(id), "orders"), Ok(()));
        let refused = rehearsal(reply("-NOPERM no permissions"), "orders").expect_err("refused");
        assert_eq!(refused.kind(), PublishErrorKind::Misconfigured);
    }

    #[test]
    fn only_a_stream_or_room_for_one_can_be_appended_to() {
        let text = |name, creates| kind(name, "orders", creates).map_err(|error| error.to_string());
        assert_eq!((text("stream", false), text("none", true)), (Ok(()), Ok(())));
        assert!(text("none", false).is_err_and(|text| text.contains("orders is missing")));
        assert!(text("list", true).is_err_and(|text| text.contains("holds a list")));
    }
}
