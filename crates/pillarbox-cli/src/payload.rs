use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use pillarbox::event::Payload;
use serde::Serialize;

/// A payload in JSON: text as it is written, bytes as base64. Beside it stands its [`content_type`].
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(crate) enum PayloadJson<'a> {
    /// JSON text, or null if no payload was set.
    Text { payload: Option<&'a str> },
    /// Bytes of another format.
    Bytes { payload_base64: String },
}

impl<'a> From<Option<&'a Payload>> for PayloadJson<'a> {
    fn from(payload: Option<&'a Payload>) -> Self {
        match payload.map(|payload| (payload, payload.as_json())) {
            None => Self::Text { payload: None },
            Some((_, Some(text))) => Self::Text { payload: Some(text) },
            Some((bytes, None)) => Self::Bytes { payload_base64: base64(bytes) },
        }
    }
}

/// The content type of a payload's bytes; `None` if it is unknown, and for JSON, for which the table has none.
pub(crate) fn content_type(payload: &Payload) -> Option<&str> {
    match payload.as_json() {
        Some(_) => None,
        None => Some(payload.content_type()).filter(|content_type| !content_type.is_empty()),
    }
}

/// The bytes of a payload as text.
pub(crate) fn base64(payload: &Payload) -> String {
    STANDARD.encode(payload.as_bytes())
}
