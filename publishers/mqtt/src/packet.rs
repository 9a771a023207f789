use pillarbox_connect::max_body;
use pillarbox_core::publisher::{Message, PublishError, TargetSyntax, header};
use rumqttc::{PublishOptions, PublishProperties, QoS};

/// MQTT's limit for each text, in bytes.
const TEXT: usize = 65_535;

/// The levels of a topic that Mosquitto takes; over one with more it ends the connection.
const LEVELS: usize = 200;

/// The syntax that keeps a value within its level of a topic.
pub(crate) const TARGETS: TargetSyntax = TargetSyntax::Parts(&['/', '+', '#']);

/// The beginning of topics that a broker keeps for itself (MQTT 5, 4.7.2): what is published there may be a command to it, and reaches no
/// subscriber of `#`.
pub(crate) const RESERVED: char = '$';

/// Refuses a message that MQTT cannot carry at all. A broker cuts the connection of a client that tries, and the message would be
/// tried for ever.
pub(crate) fn refuse(message: &Message, max_body: usize, max_packet: Option<u32>) -> Option<PublishError> {
    if let Some(problem) = topic(&message.target) {
        return Some(PublishError::permanent(problem));
    }
    if let Some(refusal) = max_body::refuse(message, max_body) {
        return Some(refusal);
    }
    let problem = if let Some(max) = max_packet.filter(|max| size(message) > u64::from(*max)) {
        Some(format!("with its headers it has about {} bytes, and the broker takes {max} at most", size(message)))
    } else {
        texts(message).find_map(|(what, text)| Some(format!("{what} {}", unsuitable(text)?)))
    };
    problem.map(PublishError::permanent)
}

/// Finds the problem that keeps a text from being a topic to publish to.
pub(crate) fn topic(topic: &str) -> Option<String> {
    if topic.is_empty() {
        Some("the topic is empty; name one".to_owned())
    } else if topic.contains(['+', '#']) {
        Some(format!("the topic {topic:?} has a wildcard, `+` or `#`; name one topic"))
    } else if topic.split('/').count() > LEVELS {
        Some(format!("the topic has more than {LEVELS} levels, over which a broker ends the connection; shorten it"))
    } else {
        unsuitable(topic).map(|problem| format!("the topic {topic:?} {problem}"))
    }
}

fn texts(message: &Message) -> impl Iterator<Item = (String, &str)> {
    let headers = message.headers.iter().flat_map(|(name, value)| {
        [("the name of a header".to_owned(), &**name), (format!("the header {name:?}"), value.as_str())]
    });
    std::iter::once(("the content type".to_owned(), &*message.content_type)).chain(headers)
}

/// Finds the problem that keeps a text from being one of MQTT's. A broker need not take control characters, and Mosquitto does not.
pub(crate) fn unsuitable(text: &str) -> Option<&'static str> {
    let nothing = |c: char| matches!(u32::from(c) & 0xFFFF, 0xFFFE | 0xFFFF) || ('\u{FDD0}'..='\u{FDEF}').contains(&c);
    if text.len() > TEXT {
        Some("has more than 65535 bytes, MQTT's limit")
    } else if text.contains(char::is_control) {
        Some("has a control character, such as a line end, which MQTT does not carry")
    } else if text.contains(nothing) {
        Some("has a code point that Unicode keeps free, which MQTT does not carry")
    } else {
        None
    }
}

/// The bytes of the packet, or some more.
fn size(message: &Message) -> u64 {
    // Of what has a length of its own, and of all else: the packet's type, length and id, and the length of the properties.
    const EACH: usize = 5;
    const REST: usize = 24;
    let headers: usize = message.headers.iter().map(|(name, value)| name.len() + value.len() + EACH).sum();
    let bytes = message.target.len() + message.content_type.len() + headers + message.body.len() + 2 * EACH + REST;
    u64::try_from(bytes).unwrap_or(u64::MAX)
}

/// The properties beside the body, and the request for an acknowledgement.
pub(crate) fn options(message: &Message) -> PublishOptions {
    let sent = message.headers.iter().filter(|(name, _)| !header::imitates(name));
    PublishOptions::new(QoS::AtLeastOnce).properties(PublishProperties {
        content_type: Some(message.content_type.to_string()),
        user_properties: sent.map(|(name, value)| (name.to_string(), value.clone())).collect(),
        ..PublishProperties::default()
    })
}

#[cfg(test)]
mod tests {
    use pillarbox_core::event::EventId;

    use super::*;

    fn message(topic: &str) -> Message {
        Message::new(topic, EventId::new("e-1").expect("an id"), "abcd")
    }

    #[test]
    fn messages_that_mqtt_cannot_carry_are_refused() {
        let refused = |message: &Message| refuse(message, 4, Some(4000)).map(|error| error.to_string());
        for topic in ["shop/order", "/", "shop//order", "å/🦀"] {
            assert_eq!(refused(&message(topic)), None, "{topic}");
        }
        for (topic, problem) in [
            ("", "empty"),
            ("shop/#", "wildcard"),
            ("shop/+/a", "wildcard"),
            ("shop/\0", "control"),
            ("shop/\n", "control"),
            ("shop/\u{FFFE}", "Unicode"),
            (&"/".repeat(LEVELS), "more than 200 levels"),
        ] {
            assert!(refused(&message(topic)).is_some_and(|text| text.contains(problem)), "{topic:?}");
        }
        assert_eq!(refused(&message(&"/".repeat(LEVELS - 1))), None);
        let with = |name: &'static str, value: &str| {
            let mut message = message("shop");
            message.headers.push((name.into(), value.to_owned()));
            refused(&message)
        };
        assert_eq!(with("note", "a, b;c=\"d\" å 🦀"), None);
        assert!(with("note", "two\nlines").is_some_and(|text| text.contains("the header \"note\" has a control")));
        assert!(with("no\tte", "").is_some_and(|text| text.contains("the name of a header")));
        assert!(with("note", &"x".repeat(4000)).is_some_and(|text| text.contains("the broker takes 4000")));
        let mut large = message("shop");
        large.body = "abcde".into();
        assert!(refused(&large).is_some_and(|text| text.contains("`max_body`")));
    }

    #[test]
    fn headers_and_the_content_type_are_properties_of_the_message() {
        let mut sent = message("shop");
        sent.headers = vec![("event-id".into(), "e-1".to_owned()), ("event-type".into(), "order.placed".to_owned())];
        let shown = format!("{:?}", options(&sent));
        assert!(shown.contains("application/json") && shown.contains("order.placed"), "{shown}");
    }
}
