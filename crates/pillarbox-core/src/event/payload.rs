use std::fmt;

use bytes::Bytes;
use serde::de::{DeserializeOwned, Error as _, IgnoredAny};

use super::{InvalidEvent, limits};

/// The payload of an event. It comes back byte for byte as it was written.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Payload {
    /// JSON text, kept verbatim: spacing, key order and duplicate keys included.
    Json(Box<str>),
    /// Bytes of any other format.
    Binary {
        /// Their media type, such as `application/x-protobuf`.
        content_type: Box<str>,
        /// The bytes.
        bytes: Bytes,
    },
}

impl Payload {
    /// The content type of JSON.
    pub const JSON: &'static str = "application/json";

    /// The JSON text, if the payload is JSON.
    #[must_use]
    pub fn as_json(&self) -> Option<&str> {
        match self {
            Self::Json(text) => Some(text),
            Self::Binary { .. } => None,
        }
    }

    /// The payload as bytes, whatever its format.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        match self {
            Self::Json(text) => text.as_bytes(),
            Self::Binary { bytes, .. } => bytes,
        }
    }

    /// `application/json` for JSON, else what the writer said.
    #[must_use]
    pub fn content_type(&self) -> &str {
        match self {
            Self::Json(_) => Self::JSON,
            Self::Binary { content_type, .. } => content_type,
        }
    }

    /// Reads a JSON payload as a value.
    ///
    /// # Errors
    /// When the payload is not JSON, or is JSON of another shape.
    pub fn parse<T: DeserializeOwned>(&self) -> Result<T, serde_json::Error> {
        match self {
            Self::Json(text) => serde_json::from_str(text),
            Self::Binary { content_type, .. } => {
                Err(serde_json::Error::custom(format_args!("the payload is {content_type}, not JSON")))
            }
        }
    }

    /// Checks size, content type and that JSON is JSON of a depth that every database accepts, and `serde_json`.
    pub(crate) fn check(&self) -> Result<(), InvalidEvent> {
        let bytes = self.as_bytes().len();
        if bytes > limits::PAYLOAD_BYTES {
            let problem = format!("has {bytes} bytes, over the limit of {}", limits::PAYLOAD_BYTES);
            return Err(InvalidEvent::new("payload", problem, "store the data elsewhere and send a reference to it"));
        }
        match self {
            Self::Json(text) => check_json(text),
            Self::Binary { content_type, .. } => limits::check_text("content_type", content_type, limits::CONTENT_TYPE),
        }
    }
}

// A payload may hold personal data, and `Debug` output ends up in logs.
impl fmt::Debug for Payload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Payload({}, {} bytes)", self.content_type(), self.as_bytes().len())
    }
}

/// Accepts valid JSON of at most [`limits::JSON_DEPTH`] levels: a database parses the text recursively too, and its
/// refusal would spoil the caller's transaction.
fn check_json(text: &str) -> Result<(), InvalidEvent> {
    let problem = match serde_json::from_str::<IgnoredAny>(text) {
        Err(error) => format!("is not valid JSON: {error}"),
        Ok(IgnoredAny) if is_too_deep(text) => {
            format!("nests deeper than {} levels", limits::JSON_DEPTH)
        }
        Ok(IgnoredAny) => return Ok(()),
    };
    Err(InvalidEvent::new("payload", problem, "pass other JSON text, or use payload_bytes for other formats"))
}

/// True if valid JSON nests deeper than databases and handlers accept. Most JSON has too few brackets for that.
fn is_too_deep(json: &str) -> bool {
    let brackets = json.bytes().filter(|byte| matches!(byte, b'[' | b'{')).count();
    brackets > limits::JSON_DEPTH && depth(json) > limits::JSON_DEPTH
}

/// The depth to which valid JSON nests.
fn depth(json: &str) -> usize {
    let (mut depth, mut deepest, mut in_string, mut escaped) = (0_usize, 0, false, false);
    for byte in json.bytes() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            b'[' | b'{' if !in_string => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            b']' | b'}' if !in_string => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    deepest
}

#[cfg(test)]
mod tests {
    use super::*;

    fn json(text: &str) -> Result<(), InvalidEvent> {
        Payload::Json(text.into()).check()
    }

    #[test]
    fn json_is_accepted_as_written() {
        for text in [
            r#"{"b":1,  "a":2,"a":3}"#,
            "null",
            "\"\\u0000 \\ud800\"",
            "[1e400]",
            " 7 ",
            "-0",
            "12345678901234567890123",
        ] {
            assert_eq!(json(text), Ok(()), "{text}");
        }
    }

    #[test]
    fn payloads_that_a_database_would_refuse_are_refused_first() {
        for text in ["", "{", "{\"a\":1}x", "{'a':1}", "\"\u{1}\"", "nul"] {
            assert_eq!(json(text).map_err(|error| error.field()), Err("payload"), "{text}");
        }
        let deep = |levels| "[".repeat(levels) + &"]".repeat(levels);
        assert_eq!(json(&deep(limits::JSON_DEPTH)), Ok(()));
        assert!(serde_json::from_str::<serde_json::Value>(&deep(limits::JSON_DEPTH)).is_ok(), "a handler can read it");
        assert_eq!(json(&format!("\"\\\"{}\"", "[".repeat(200))), Ok(()), "brackets inside a string");
        assert!(json(&deep(limits::JSON_DEPTH + 1)).is_err());
        assert!(json(&deep(100_000)).is_err(), "depth must not cost stack");
    }

    #[test]
    fn the_size_limit_is_inclusive_and_counts_bytes() {
        let text = |bytes: usize| format!("\"{}\"", "é".repeat((bytes - 2) / 2));
        assert_eq!(json(&text(limits::PAYLOAD_BYTES)), Ok(()));
        assert!(json(&format!("{} ", text(limits::PAYLOAD_BYTES))).is_err());
    }
}
