//! A message in the form that both services take.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use pillarbox_core::publisher::{Message, PublishError};
use sha2::{Digest as _, Sha256};

use crate::attributes;

/// Characters of a group or of an id that deduplicates.
const LONGEST_ID: usize = 128;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Entry {
    /// The place of the message in its call.
    pub(crate) index: usize,
    pub(crate) body: String,
    pub(crate) attributes: Vec<(String, String)>,
    /// For FIFO only: what is kept in order, and what is taken once.
    pub(crate) fifo: Option<Fifo>,
    pub(crate) bytes: usize,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fifo {
    pub(crate) group: String,
    pub(crate) id: String,
}

impl Entry {
    /// # Errors
    /// When the message has more than `largest` bytes with its attributes.
    pub(crate) fn of(index: usize, message: &Message, largest: usize) -> Result<Self, PublishError> {
        let text = std::str::from_utf8(&message.body).ok().filter(|text| attributes::is_text(text));
        let body = match text {
            Some(text) => text.to_owned(),
            // No body may be empty, and a line end is nothing in Base64.
            None if message.body.is_empty() => "\n".to_owned(),
            None => STANDARD.encode(&message.body),
        };
        let attributes = attributes::of(message, text.is_none());
        let beside: usize = attributes.iter().map(|(name, value)| name.len() + "String".len() + value.len()).sum();
        let bytes = body.len() + beside;
        if bytes > largest {
            return Err(PublishError::permanent(format!(
                "the event has {bytes} bytes with its attributes{}, over the {largest} of `max_message`; make it smaller, or raise \
                 `max_message` if the service takes more",
                if text.is_none() { " and in Base64" } else { "" }
            )));
        }
        let fifo = message.target.ends_with(".fifo").then(|| {
            let id = safe(message.id.as_str());
            // Without a key it waits for nobody.
            Fifo { group: message.key.as_deref().map_or_else(|| id.clone(), safe), id }
        });
        Ok(Self { index, body, attributes, fifo, bytes })
    }
}

/// A text as it is, where the services take it as a group or an id; else its hash.
fn safe(text: &str) -> String {
    if (1..=LONGEST_ID).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic()) {
        return text.to_owned();
    }
    let hash = Sha256::digest(text.as_bytes());
    let hex: String = hash.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("sha256-{hex}")
}

#[cfg(test)]
mod tests {
    use pillarbox_core::event::EventId;

    use super::*;

    const LARGEST: usize = 256 * 1024;

    fn entry(target: &str, key: Option<&str>, body: &[u8]) -> Result<Entry, PublishError> {
        let mut message = Message::new(target, EventId::new("id-1").expect("an id"), body.to_vec());
        message.key = key.map(Into::into);
        Entry::of(0, &message, LARGEST)
    }

    #[test]
    fn bodies_that_are_no_text_are_base64_and_say_so() {
        for (body, sent, encoded) in [
            (&b"{\"a\": 1}\r\n"[..], "{\"a\": 1}\r\n", false),
            ("ü🦀".as_bytes(), "ü🦀", false),
            (b"\xff\x00", "/wA=", true),
            (b"\x01", "AQ==", true),
            (b"", "\n", true),
        ] {
            let entry = entry("q", None, body).expect("fits");
            let says = entry.attributes.contains(&("content-encoding".to_owned(), "base64".to_owned()));
            assert_eq!((&*entry.body, says), (sent, encoded));
        }
    }

    #[test]
    fn messages_that_are_too_large_are_never_taken() {
        assert!(entry("q", None, &vec![b'x'; LARGEST - 100]).is_ok());
        let error = entry("q", None, &vec![b'x'; LARGEST]).expect_err("too large").to_string();
        assert!(error.contains("over the 262144 of `max_message`") && error.contains("raise `max_message`"), "{error}");
        assert!(entry("q", None, &vec![0; 200_000]).expect_err("too large").to_string().contains("in Base64"));
        let message = Message::new("q", EventId::new("id-1").expect("an id"), vec![b'x'; LARGEST]);
        assert!(Entry::of(0, &message, 2 * LARGEST).is_ok());
    }

    #[test]
    fn fifo_has_a_group_and_an_id() {
        let fifo = |target, key| entry(target, key, b"x").expect("fits").fifo.map(|fifo| (fifo.group, fifo.id));
        assert_eq!(fifo("q", Some("k")), None);
        assert_eq!(fifo("q.fifo", Some("k")), Some(("k".to_owned(), "id-1".to_owned())));
        assert_eq!(fifo("q.fifo", None), Some(("id-1".to_owned(), "id-1".to_owned())));
        let long = fifo("q.fifo", Some("a b")).map(|(group, _)| group).expect("a group");
        assert_eq!((long.len(), &long[..15]), (71, "sha256-c8687a08"));
    }
}
