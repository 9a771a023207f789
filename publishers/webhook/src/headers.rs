//! The headers of a request, which travel beside the body.

use std::fmt::Write as _;

use pillarbox_core::publisher::{Message, PublishError, header};
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};

use crate::KIND;
use crate::sign::SigningKeys;

/// The header with the signatures.
pub(crate) const SIGNATURE: &str = "webhook-signature";

/// The prefix of an event header if HTTP or this publisher has a use of its own for its name.
const ASIDE: &str = "event-header-";

/// Room for the headers that are no event's: those of this publisher and of the client.
const OWN: usize = 16;

/// The headers of a request, but for authorization. `seconds` since 1970.
///
/// # Errors
/// A value that no header can carry, or too many headers.
pub(crate) fn of(message: &Message, keys: &SigningKeys, seconds: i64) -> Result<HeaderMap, PublishError> {
    // A map of headers has a limit, some 24,000 of them, and panics beyond. An event may hold more, if their names are short.
    let too_many = |_| PublishError::permanent("the event has more headers than a request can have");
    let mut headers = HeaderMap::try_with_capacity(message.headers.len() + OWN).map_err(too_many)?;
    for (name, value) in message.headers.iter().filter(|(name, _)| !header::imitates(name)) {
        headers.append(header_name(name)?, header_value(name, value)?);
    }
    headers.insert(CONTENT_TYPE, content_type(&message.content_type)?);
    let id = id(message.id.as_str());
    if !keys.is_empty() {
        let signatures = keys.sign(&id, seconds, &message.body);
        headers.insert(HeaderName::from_static(SIGNATURE), own_value(&signatures)?);
    }
    headers.insert(HeaderName::from_static("webhook-id"), own_value(&id)?);
    headers.insert(HeaderName::from_static("webhook-timestamp"), HeaderValue::from(seconds));
    Ok(headers)
}

fn header_name(name: &str) -> Result<HeaderName, PublishError> {
    let safe = safe_name(name);
    HeaderName::from_bytes(safe.as_bytes())
        .map_err(|_| PublishError::permanent(format!("the event's header {name:?} has a name that HTTP cannot carry")))
}

/// The name in small letters, what is no letter of a name written in percent, and out of the way of what HTTP needs.
fn safe_name(name: &str) -> String {
    let mut safe = String::with_capacity(name.len());
    for byte in name.bytes() {
        if byte.is_ascii_alphanumeric() || b"!#$&'*+-.^_`|~".contains(&byte) {
            safe.push(byte as char);
        } else {
            percent(&mut safe, byte);
        }
    }
    safe.make_ascii_lowercase();
    if header::is_command(KIND, &safe) { format!("{ASIDE}{safe}") } else { safe }
}

fn header_value(name: &str, value: &str) -> Result<HeaderValue, PublishError> {
    let is_attribute = header::attribute(KIND, name).is_some();
    HeaderValue::from_str(&if is_attribute { attribute_value(value) } else { safe_value(value) })
        .map_err(|_| PublishError::permanent(format!("the header {name:?} has a value that HTTP cannot carry")))
}

/// A value that is safe already.
fn own_value(value: &str) -> Result<HeaderValue, PublishError> {
    HeaderValue::from_str(value).map_err(|_| PublishError::permanent("the event's id is one that HTTP cannot carry"))
}

/// The value, with percent for what a header cannot carry, or not unchanged: bytes beyond ASCII, control characters, spaces
/// at the ends, and percent itself. Decoding percent gives the value back.
fn safe_value(value: &str) -> String {
    let inner = value.len() - value.trim_start_matches(' ').len()..value.trim_end_matches(' ').len();
    let mut safe = String::with_capacity(value.len());
    for (index, byte) in value.bytes().enumerate() {
        if byte.is_ascii_graphic() && byte != b'%' || byte == b' ' && inner.contains(&index) {
            safe.push(byte as char);
        } else {
            percent(&mut safe, byte);
        }
    }
    safe
}

/// The value of an attribute of CloudEvents: its binding for HTTP 1.0.2 (3.1.3.2) wants spaces and double quotes in percent too.
fn attribute_value(value: &str) -> String {
    safe_value(value).replace(' ', "%20").replace('"', "%22")
}

/// As a header value; the full stop too, since that is what ends the id in what is signed.
fn id(id: &str) -> String {
    safe_value(id).replace('.', "%2E")
}

fn percent(text: &mut String, byte: u8) {
    // Writing to text does not fail.
    let _ = write!(text, "%{byte:02X}");
}

/// A media type is read by the receiver's framework, which decodes no percent: it travels as it is or not at all.
fn content_type(value: &str) -> Result<HeaderValue, PublishError> {
    HeaderValue::from_str(value)
        .map_err(|_| PublishError::permanent(format!("the content type {value:?} is one that HTTP cannot carry")))
}

#[cfg(test)]
mod tests {
    use pillarbox_core::event::EventId;
    use pillarbox_core::publisher::PublishErrorKind;

    use super::*;

    #[test]
    fn names_are_made_safe() {
        for (name, safe) in [
            ("traceparent", "traceparent"),
            ("Event-Type", "event-type"),
            ("a b", "a%20b"),
            ("a:b\r\nc", "a%3ab%0d%0ac"),
            ("ü%", "%c3%bc%25"),
            ("Host", "event-header-host"),
            ("authorization", "event-header-authorization"),
            ("Content-Length", "event-header-content-length"),
            ("webhook-signature", "event-header-webhook-signature"),
            ("event-header-host", "event-header-event-header-host"),
            ("X-HTTP-Method-Override", "event-header-x-http-method-override"),
            ("x_real_ip", "event-header-x_real_ip"),
            ("event_id", "event-header-event_id"),
            ("event_header_host", "event-header-event_header_host"),
            ("order_id", "order_id"),
        ] {
            assert_eq!(safe_name(name), safe);
            assert_eq!(header_name(name).expect("a name").as_str(), safe);
        }
    }

    #[test]
    fn values_come_back_by_decoding_percent() {
        for (value, safe) in [
            ("plain text", "plain text"),
            (
                "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
                "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            ),
            ("100%", "100%25"),
            (" a  b ", "%20a  b%20"),
            ("  ", "%20%20"),
            ("a\r\nb\tc", "a%0D%0Ab%09c"),
            ("Zürich 🏔", "Z%C3%BCrich %F0%9F%8F%94"),
            ("", ""),
        ] {
            assert_eq!(safe_value(value), safe);
            let back = percent_encoding::percent_decode_str(safe).decode_utf8().expect("text");
            assert_eq!(back, value);
        }
    }

    /// The example of the specification, and what the Python library of CloudEvents 2.2.0 makes of the same values.
    #[test]
    fn attributes_of_cloud_events_are_encoded_as_their_binding_says() {
        let mut message = Message::new("x", EventId::new("1").expect("an id"), "{}");
        message.headers = vec![
            ("ce-source".into(), "Euro \u{20AC} \u{1F600}".to_owned()),
            ("Ce-Subject".into(), "say \"100%\"\t".to_owned()),
            ("ce-type".into(), "/my/context?a=b&c=[d]#~!'()*".to_owned()),
            ("note".into(), "say \"hello\"".to_owned()),
        ];
        let headers = of(&message, &SigningKeys::parse(&[]).expect("none"), 7).expect("headers");
        for (name, value) in [
            ("ce-source", "Euro%20%E2%82%AC%20%F0%9F%98%80"),
            ("ce-subject", "say%20%22100%25%22%09"),
            ("ce-type", "/my/context?a=b&c=[d]#~!'()*"),
            ("note", "say \"hello\""),
        ] {
            assert_eq!(headers.get(name).and_then(|value| value.to_str().ok()), Some(value), "{name}");
        }
    }

    #[test]
    fn a_request_says_what_it_is() {
        let mut message = Message::new("x", EventId::new("a.b ü").expect("an id"), "{}");
        message.headers = vec![("Twice".into(), "1".into()), ("twice".into(), "2".into())];
        let headers = of(&message, &SigningKeys::parse(&[]).expect("none"), 7).expect("headers");
        let value = |name: &str| headers.get_all(name).iter().filter_map(|v| v.to_str().ok()).collect::<Vec<_>>();
        assert_eq!(value("webhook-id"), ["a%2Eb %C3%BC"]);
        assert_eq!(value("webhook-timestamp"), ["7"]);
        assert_eq!(value("content-type"), ["application/json"]);
        assert_eq!(value("twice"), ["1", "2"]);
        assert!(value("webhook-signature").is_empty());
        message.content_type = "a\nb".into();
        assert!(
            of(&message, &SigningKeys::parse(&[]).expect("none"), 7)
                .is_err_and(|e| e.to_string().contains("content type"))
        );
    }

    #[test]
    fn more_headers_than_a_request_can_have_are_refused_for_good() {
        let with = |count: usize| {
            let mut message = Message::new("x", EventId::new("1").expect("an id"), "");
            message.headers = (0..count).map(|number| (number.to_string().into(), String::new())).collect();
            let headers = of(&message, &SigningKeys::default(), 0);
            headers.map(|headers| headers.len()).map_err(|error| (error.kind(), error.to_string()))
        };
        assert_eq!(with(24_000), Ok(24_003));
        for count in [24_570, 30_000, 40_000] {
            let (kind, error) = with(count).expect_err("too many");
            assert!(kind == PublishErrorKind::Permanent && error.contains("more headers"), "{count}: {error}");
        }
    }
}
