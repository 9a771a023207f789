use lapin::BasicProperties;
use lapin::types::{AMQPValue, FieldTable, LongString, ShortString};
use pillarbox_connect::max_body;
use pillarbox_core::publisher::{Message, PublishError, header};

use crate::KIND;
use crate::route::SHORT;

/// The delivery mode of a message that survives the broker's restart, in a durable queue.
const PERSISTENT: u8 = 2;

/// The error of a message that cannot be sent to any target; `None` if it can.
pub(crate) fn refuse(message: &Message, max_body: usize) -> Option<PublishError> {
    if let Some(refusal) = max_body::refuse(message, max_body) {
        return Some(refusal);
    }
    if message.content_type.len() > SHORT {
        return Some(PublishError::permanent("the content type has more than 255 bytes, AMQP's limit"));
    }
    let long = message.headers.iter().any(|(name, _)| name.len() > SHORT);
    long.then(|| PublishError::permanent("a header has a name of more than 255 bytes, AMQP's limit"))
}

/// The error of a message whose headers do not fit into one frame of the broker's, as the protocol has them: it would close the connection,
/// with all that is under way on it.
pub(crate) fn refuse_headers(message: &Message, frame_max: usize) -> Option<PublishError> {
    // The frame's own bytes, and the numbers, flags and length that stand before the properties.
    let fixed = 8 + 14 + 4 + 1;
    let short = |text: &str| text.len() + 1;
    let texts =
        short(message.id.as_str()) + short(&message.content_type) + message.header(header::TYPE).map_or(0, short);
    let headers: usize = sent(message).map(|(name, value)| short(name) + 5 + value.len()).sum();
    let bytes = fixed + texts + headers;
    (bytes > frame_max).then(|| {
        PublishError::permanent(format!(
            "the headers take {bytes} bytes, over the {frame_max} of a frame of the broker's (`frame_max`); move the data into the payload"
        ))
    })
}

/// The headers that are sent as headers.
fn sent(message: &Message) -> impl Iterator<Item = (&str, &str)> {
    let headers = message.headers.iter().map(|(name, value)| (&**name, value.as_str()));
    headers.filter(|(name, _)| !header::imitates(name) && !header::is_command(KIND, name))
}

/// The properties beside the body. A header that does not fit into a property of AMQP stays a header.
pub(crate) fn properties(message: &Message) -> BasicProperties {
    let mut properties = BasicProperties::default().with_delivery_mode(PERSISTENT);
    if let Ok(id) = ShortString::try_new(message.id.as_str()) {
        properties = properties.with_message_id(id);
    }
    if let Ok(content_type) = ShortString::try_new(&*message.content_type) {
        properties = properties.with_content_type(content_type);
    }
    if let Some(Ok(name)) = message.header(header::TYPE).map(ShortString::try_new) {
        properties = properties.with_type(name);
    }
    let mut headers = FieldTable::default();
    for (name, value) in sent(message) {
        if let Ok(name) = ShortString::try_new(name) {
            headers.insert(name, AMQPValue::LongString(LongString::from(value)));
        }
    }
    properties.with_headers(headers)
}

#[cfg(test)]
mod tests {
    use pillarbox_core::event::EventId;

    use super::*;

    fn message() -> Message {
        let mut message = Message::new("shop", EventId::new("e-1").expect("an id"), "abcd");
        message.headers = vec![(header::TYPE.into(), "order.placed".to_owned()), ("emoji".into(), "✓\0".to_owned())];
        message
    }

    #[test]
    fn a_message_is_persistent_and_carries_what_identifies_it() {
        let properties = properties(&message());
        assert_eq!(properties.delivery_mode(), &Some(2));
        assert_eq!(properties.message_id().as_ref().map(ShortString::as_str), Some("e-1"));
        assert_eq!(properties.kind().as_ref().map(ShortString::as_str), Some("order.placed"));
        assert_eq!(properties.content_type().as_ref().map(ShortString::as_str), Some("application/json"));
        let headers = properties.headers().as_ref().expect("headers").inner();
        assert_eq!(headers.get("emoji"), Some(&AMQPValue::LongString("✓\0".into())));
    }

    #[test]
    fn values_that_do_not_fit_are_refused_or_stay_headers() {
        let long = "x".repeat(256);
        let refused = |message: &Message, max: usize| refuse(message, max).map(|error| error.to_string());
        assert_eq!(refused(&message(), 4), None);
        assert!(refused(&message(), 3).is_some_and(|text| text.contains("4 bytes")));
        let mut named = message();
        named.headers.push((long.clone().into(), String::new()));
        assert!(refused(&named, 4).is_some_and(|text| text.contains("header")));
        let mut typed = message();
        (typed.headers[0].1, typed.content_type) = (long.clone(), long.into());
        assert!(refused(&typed, 4).is_some_and(|text| text.contains("content type")));
        assert_eq!(properties(&typed).kind(), &None);
    }
}
