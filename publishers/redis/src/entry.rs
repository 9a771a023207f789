use pillarbox_connect::{batches, max_body};
use pillarbox_core::publisher::{Message, PublishError, header};
use redis::{Cmd, Pipeline};

use crate::RedisOptions;

/// The number of entries that one pipeline has at most: enough to hide the way there and back.
const MAX_ENTRIES: usize = 1_000;
/// The number of bytes that one pipeline has at most, but for a single larger message.
pub(crate) const MAX_BYTES: usize = 4 * 1024 * 1024;

/// The messages that go into one pipeline each.
pub(crate) fn pipelines(messages: &[Message]) -> impl Iterator<Item = &[Message]> {
    batches(messages, MAX_ENTRIES, MAX_BYTES, size)
}

fn size(message: &Message) -> usize {
    let headers: usize = message.headers.iter().map(|(name, value)| name.len() + value.len() + 32).sum();
    message.target.len() + message.body.len() + headers + 128
}

/// The error of a message that cannot be sent at all; `None` if it can.
pub(crate) fn refuse(message: &Message, options: &RedisOptions) -> Option<PublishError> {
    if message.target.is_empty() {
        return Some(PublishError::permanent("the target is empty; name a stream"));
    }
    max_body::refuse(message, options.max_body)
}

/// Adds the command that appends a message. The fields stand in a fixed order: Redis stores their names once where they are
/// the same as those of the entry before.
pub(crate) fn append(pipeline: &mut Pipeline, message: &Message, options: &RedisOptions) {
    let mut command = head(&message.target, options);
    command.arg("*").arg("id").arg(message.id.as_str());
    if let Some(key) = &message.key {
        command.arg("key").arg(&**key);
    }
    command.arg("content-type").arg(&*message.content_type).arg("body").arg(&message.body[..]);
    for (name, value) in message.headers.iter().filter(|(name, _)| !header::imitates(name)) {
        command.arg(["h:", name].concat()).arg(value);
    }
    pipeline.add_command(command);
}

/// A command that is refused or fails as appending would, and otherwise for its id, which no entry can have: nothing is
/// added.
pub(crate) fn rehearse(target: &str, options: &RedisOptions) -> Cmd {
    let mut command = head(target, options);
    command.arg("0-0").arg("body").arg("");
    command
}

fn head(target: &str, options: &RedisOptions) -> Cmd {
    let mut command = redis::cmd("XADD");
    command.arg(target);
    if !options.create_streams {
        command.arg("NOMKSTREAM");
    }
    if let Some(length) = options.max_length {
        command.arg("MAXLEN").arg("~").arg(length);
    }
    command
}

#[cfg(test)]
mod tests {
    use pillarbox_core::event::EventId;

    use super::*;

    fn message() -> Message {
        let mut message = Message::new("orders", EventId::new("e-1").expect("an id"), vec![0, b'\r', b'\n', 255]);
        message.headers = vec![("event-id".into(), "e-1".to_owned()), ("body".into(), "not the body".to_owned())];
        message
    }

    fn words(message: &Message, options: &RedisOptions) -> Vec<Vec<u8>> {
        let mut pipeline = Pipeline::new();
        append(&mut pipeline, message, options);
        let command = pipeline.cmd_iter().next().expect("a command");
        let word = |argument: redis::Arg<&[u8]>| match argument {
            redis::Arg::Simple(bytes) => bytes.to_vec(),
            _ => b"?".to_vec(),
        };
        command.args_iter().map(word).collect()
    }

    #[test]
    fn an_entry_has_its_fields_and_a_header_is_never_taken_for_one() {
        let mut options = RedisOptions::new("redis://localhost");
        let expected: [&[u8]; 13] = [
            b"XADD",
            b"orders",
            b"*",
            b"id",
            b"e-1",
            b"content-type",
            b"application/json",
            b"body",
            b"\0\r\n\xff",
            b"h:event-id",
            b"e-1",
            b"h:body",
            b"not the body",
        ];
        assert_eq!(words(&message(), &options), expected);
        (options.create_streams, options.max_length) = (false, Some(7));
        let mut keyed = message();
        keyed.key = Some("k".into());
        let head: Vec<_> = words(&keyed, &options).into_iter().take(10).collect();
        assert_eq!(head, ["XADD", "orders", "NOMKSTREAM", "MAXLEN", "~", "7", "*", "id", "e-1", "key"].map(Vec::from));
    }

    #[test]
    fn pipelines_are_of_a_thousand_entries_and_of_four_mebibytes() {
        let messages = vec![message(); 2_500];
        assert_eq!(pipelines(&messages).map(<[_]>::len).collect::<Vec<_>>(), [1_000, 1_000, 500]);
        let mut large = message();
        large.body = vec![0; MAX_BYTES].into();
        assert_eq!(pipelines(&[message(), large, message()]).map(<[_]>::len).collect::<Vec<_>>(), [1, 1, 1]);
    }

    #[test]
    fn messages_that_cannot_be_sent_are_refused_by_themselves() {
        let mut options = RedisOptions::new("redis://localhost");
        options.max_body = 3;
        let refused = |target: &str, body: &'static str| {
            let message = Message::new(target, EventId::new("e-1").expect("an id"), body);
            refuse(&message, &options).map(|error| error.to_string())
        };
        assert!(refused("orders", "abcd").is_some_and(|text| text.contains("4 bytes") && text.contains("max_body")));
        assert_eq!(refused("orders", "abc"), None);
        assert!(refused("", "").is_some_and(|text| text.contains("target is empty")));
    }
}
