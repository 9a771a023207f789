//! Message attributes, which travel beside the body: at most ten.

use std::collections::BTreeMap;

use pillarbox_core::publisher::{Message, header};

/// The kind whose reserved header names count for both services: SNS reserves the same ones as SQS.
const KIND: &str = "sqs";
/// SQS takes no more, and SNS hands no more on to a queue.
const MOST: usize = 10;
/// The attribute that holds, as an object of JSON, the headers that no attribute of their own could be given.
pub(crate) const REST: &str = "event-headers";
/// The attribute of the body's media type.
pub(crate) const CONTENT_TYPE: &str = "content-type";
/// The attribute that says that the body is Base64.
pub(crate) const ENCODING: &str = "content-encoding";

/// Headers that consumers filter and route by come first, the rest in the order of the message.
const FIRST: [&str; 8] = [
    header::ID,
    header::TYPE,
    header::KEY,
    "traceparent",
    header::TENANT_ID,
    header::AGGREGATE_TYPE,
    header::AGGREGATE_ID,
    header::TIME,
];

/// The attributes of a message. Each header is in one of its own or in [`REST`]: none is lost.
pub(crate) fn of(message: &Message, base64: bool) -> Vec<(String, String)> {
    let mut own = Vec::with_capacity(MOST);
    if carries(CONTENT_TYPE, &message.content_type) {
        own.push((CONTENT_TYPE.to_owned(), message.content_type.clone().into_owned()));
    }
    if base64 {
        own.push((ENCODING.to_owned(), "base64".to_owned()));
    }
    let sent = message.headers.iter().filter(|(name, _)| !header::imitates(name));
    let mut headers: Vec<_> = sent.map(|(name, value)| (&**name, value.as_str())).collect();
    headers.sort_by_key(|(name, _)| FIRST.iter().position(|first| first == name).unwrap_or(FIRST.len()));
    let (mut fitting, mut rest): (Vec<_>, Vec<_>) =
        headers.into_iter().partition(|(name, value)| !header::is_command(KIND, name) && carries(name, value));
    if own.len() + fitting.len() + usize::from(!rest.is_empty()) > MOST {
        // One place is that of the rest.
        rest.extend(fitting.split_off((MOST - 1).saturating_sub(own.len())));
    }
    own.extend(fitting.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())));
    if !rest.is_empty() {
        let rest: BTreeMap<_, _> = rest.into_iter().collect();
        // A map of texts always serialises.
        own.push((REST.to_owned(), serde_json::to_string(&rest).unwrap_or_default()));
    }
    own
}

/// True if an attribute may have this name and this value.
fn carries(name: &str, value: &str) -> bool {
    (1..=256).contains(&name.len())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte))
        && !name.starts_with('.')
        && !name.ends_with('.')
        && !name.contains("..")
        && is_text(value)
}

/// True if the services take this text unchanged: it is not empty, and XML could hold each of its characters.
pub(crate) fn is_text(text: &str) -> bool {
    let fits = |c: char| matches!(c, '\t' | '\n' | '\r' | ' '..='\u{d7ff}' | '\u{e000}'..='\u{fffd}' | '\u{10000}'..);
    !text.is_empty() && text.chars().all(fits)
}

#[cfg(test)]
mod tests {
    use pillarbox_core::event::EventId;

    use super::*;

    fn message(headers: &[(&str, &str)]) -> Message {
        let mut message = Message::new("x", EventId::new("1").expect("an id"), "{}");
        message.headers =
            headers.iter().map(|(name, value)| ((*name).to_owned().into(), (*value).to_owned())).collect();
        message
    }

    fn names(attributes: &[(String, String)]) -> Vec<&str> {
        attributes.iter().map(|(name, _)| name.as_str()).collect()
    }

    #[test]
    fn few_headers_are_attributes_of_their_own() {
        let found = of(&message(&[("b", "2"), ("event-type", "t"), ("event-id", "1")]), false);
        assert_eq!(names(&found), ["content-type", "event-id", "event-type", "b"]);
    }

    #[test]
    fn many_headers_lose_none() {
        let many: Vec<_> = (0..20).map(|n| (format!("h{n:02}"), n.to_string())).collect();
        let mut headers: Vec<_> = many.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        headers.push(("event-id", "1"));
        let found = of(&message(&headers), true);
        assert_eq!(found.len(), MOST);
        assert_eq!(&names(&found)[..4], ["content-type", "content-encoding", "event-id", "h00"]);
        let rest: BTreeMap<String, String> = serde_json::from_str(&found[9].1).expect("JSON");
        assert_eq!((found[9].0.as_str(), rest.len() + found.len() - 3), (REST, 21));
        // Ten fit without any rest.
        assert!(!names(&of(&message(&headers[..9]), false)).contains(&REST));
        assert!(names(&of(&message(&headers[..10]), false)).contains(&REST));
    }

    #[test]
    fn headers_that_cannot_be_attributes_are_in_the_rest() {
        let odd = [
            ("", "1"),
            ("a b", "1"),
            ("ü", "1"),
            (".a", "1"),
            ("a..b", "1"),
            ("AWS.x", "1"),
            ("empty", ""),
            ("control", "\u{1}"),
            ("event-headers", "{}"),
            ("content-type", "other"),
            ("Content-Encoding", "base64"),
            ("Event-ID", "forged"),
            ("fine", "é\n"),
        ];
        let found = of(&message(&odd), false);
        assert_eq!(names(&found), ["content-type", "fine", REST]);
        let rest: BTreeMap<String, String> = serde_json::from_str(&found[2].1).expect("JSON");
        assert_eq!((rest.len(), &*rest["control"]), (11, "\u{1}"));
    }
}
