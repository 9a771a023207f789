use std::borrow::Cow;
use std::sync::Arc;

use async_nats::Subject;
use async_nats::header::{HeaderMap, HeaderName, HeaderValue};
use async_nats::jetstream::message::PublishMessage;
use pillarbox_core::publisher::{Message, PublishError, TargetSyntax, header};

use crate::publisher::KIND;

const CONTENT_TYPE: &str = "content-type";
const MESSAGE_ID: &str = "Nats-Msg-Id";
const EXPECTED_STREAM: &str = "Nats-Expected-Stream";
/// The syntax that keeps a value within its token of a subject.
pub(crate) const TARGETS: TargetSyntax = TargetSyntax::Parts(&['.', '*', '>', ' ', '\t', '\r', '\n']);
/// The server ends a connection that sends a line of more than 4096 bytes, on which the subject is not alone.
const LONGEST_SUBJECT: usize = 1024;

/// Finds the problem with a subject to publish to; `None` if there is none.
pub(crate) fn complaint(subject: &str) -> Option<&'static str> {
    if subject.is_empty() {
        return Some("is empty");
    }
    if subject.len() > LONGEST_SUBJECT {
        return Some("is longer than 1024 bytes");
    }
    if subject.contains(|c: char| c.is_whitespace() || c.is_control()) {
        return Some("has white space or control characters in it");
    }
    if subject.starts_with('$') {
        return Some("begins with `$`, as the server's own do");
    }
    subject.split('.').find_map(|token| match token {
        "" => Some("has an empty token: a dot at an end, or two together"),
        "*" | ">" => Some("has a wildcard in it"),
        _ => None,
    })
}

/// Encodes a message, or says why it can never be sent.
pub(crate) fn encode(message: Message, expected_stream: Option<&str>) -> Result<PublishMessage, PublishError> {
    if let Some(problem) = complaint(&message.target) {
        // Shortened, since it may be as long as an event.
        let shown: String = message.target.chars().take(100).collect();
        let shown = shown.escape_debug();
        return Err(PublishError::permanent(format!("`{shown}` is no subject to publish to: it {problem}")));
    }
    let mut headers = HeaderMap::new();
    for (name, value) in message.headers {
        if !header::imitates(&name) && !header::is_command(KIND, &name) {
            insert(&mut headers, name, value)?;
        }
    }
    insert(&mut headers, Cow::Borrowed(CONTENT_TYPE), message.content_type.into_owned())?;
    // A stream looks at the id alone: without the subject, what goes to two subjects of one stream would be a duplicate.
    let id = [message.id.as_str(), ":", &message.target].concat();
    insert(&mut headers, Cow::Borrowed(MESSAGE_ID), id)?;
    if let Some(stream) = expected_stream {
        insert(&mut headers, Cow::Borrowed(EXPECTED_STREAM), stream.to_owned())?;
    }
    Ok(PublishMessage::build().headers(headers).payload(message.body))
}

fn insert(headers: &mut HeaderMap, name: Cow<'static, str>, value: String) -> Result<(), PublishError> {
    if name.is_empty() || name.contains(|c: char| !c.is_ascii_graphic() || c == ':') {
        let problem = "has a name that NATS cannot carry: visible ASCII without a colon";
        return Err(PublishError::permanent(format!("the header `{}` {problem}", name.escape_debug())));
    }
    if value.contains(['\r', '\n']) {
        let problem = "has a line break, which NATS cannot carry";
        return Err(PublishError::permanent(format!("the header `{}` {problem}", name.escape_debug())));
    }
    let name = match name {
        // The names that every event has are not copied.
        Cow::Borrowed(name) => HeaderName::from_static(name),
        Cow::Owned(name) => HeaderName::try_from(name).map_err(|error| PublishError::permanent(error.to_string()))?,
    };
    headers.insert(name, HeaderValue::from(value));
    Ok(())
}

/// The subject of the message before it, which mostly is that of the message as well and then is not copied.
#[derive(Debug, Default)]
pub(crate) struct LastSubject(Option<(Arc<str>, Subject)>);

impl LastSubject {
    pub(crate) fn of(&mut self, target: &Arc<str>) -> Subject {
        if let Some((last, subject)) = &self.0
            && **last == **target
        {
            return subject.clone();
        }
        let subject = Subject::from(&**target);
        self.0 = Some((Arc::clone(target), subject.clone()));
        subject
    }
}

#[cfg(test)]
mod tests {
    use pillarbox_core::event::EventId;

    use super::*;

    fn message(target: &str) -> Message {
        Message::new(target, EventId::new("event-1").expect("an id"), "{}")
    }

    #[test]
    fn subjects() {
        for good in ["orders", "orders.placed", "orders.$x", "a-b_c/d.e:f.\u{e5}", "orders.*x", &"x".repeat(1024)] {
            assert_eq!(complaint(good), None, "{good}");
        }
        for bad in [
            "",
            ".",
            "a.",
            ".a",
            "a..b",
            "a b",
            "a\tb",
            "a\r\nPUB b 0",
            "a\0",
            "*",
            "a.*.b",
            "a.>",
            ">",
            "$JS.API.INFO",
            &"x".repeat(1025),
        ] {
            let error = encode(message(bad), None).map(drop).expect_err(bad);
            assert_eq!(error.kind(), pillarbox_core::publisher::PublishErrorKind::Permanent);
            assert!(!error.to_string().contains(['\r', '\n', '\0']), "{error}");
        }
    }

    fn encoded(names: &[(&'static str, &str)]) -> Result<HeaderMap, PublishError> {
        let mut message = message("orders");
        message.headers = names.iter().map(|(name, value)| ((*name).into(), (*value).to_owned())).collect();
        message.content_type = "text/plain".into();
        Ok(encode(message, Some("ORDERS"))?.outbound_message("orders").headers.unwrap_or_default())
    }

    #[test]
    fn an_event_gives_the_server_no_orders() {
        let sent = encoded(&[
            ("Nats-Rollup", "all"),
            ("NATS-MSG-ID", "x"),
            ("nats-expected-stream", "y"),
            ("Content-Type", "z"),
            ("natsuki", "kept"),
        ])
        .expect("encodes");
        let mut sent: Vec<(String, String)> = sent
            .iter()
            .flat_map(|(name, values)| values.iter().map(|value| (name.to_string(), value.to_string())))
            .collect();
        sent.sort();
        let expected = [
            ("Nats-Expected-Stream", "ORDERS"),
            ("Nats-Msg-Id", "event-1:orders"),
            ("content-type", "text/plain"),
            ("natsuki", "kept"),
        ];
        assert_eq!(sent, expected.map(|(name, value)| (name.to_owned(), value.to_owned())));
    }

    #[test]
    fn a_header_that_nats_cannot_carry_is_named() {
        for (name, value) in [("a:b", "x"), ("a b", "x"), ("\u{e5}", "x"), ("n", "x\ny"), ("n", "x\ry")] {
            let error = encoded(&[(name, value)]).expect_err(name);
            assert!(error.to_string().contains(&format!("the header `{name}`")), "{error}");
        }
        let id = EventId::new("two\nlines").expect("an id");
        let error = encode(Message::new("orders", id, "{}"), None).map(drop).expect_err("a line break");
        assert!(error.to_string().contains("`Nats-Msg-Id` has a line break"), "{error}");
        assert!(encoded(&[("n", " \u{1f980}, x: y ")]).is_ok());
    }
}
