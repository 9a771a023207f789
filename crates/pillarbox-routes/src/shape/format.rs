use std::borrow::Cow;
use std::sync::Arc;

use bytes::Bytes;
use pillarbox_core::event::Payload;
use pillarbox_core::handle::Delivery;
use pillarbox_core::publisher::{Message, header};
use serde::Deserialize;

use super::{HeaderRules, cloud_events};

/// The format of a message: its body, and the headers that describe the event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Format {
    /// The payload, byte for byte, with the headers of [`header`](pillarbox_core::publisher::header).
    #[default]
    Raw,
    /// [CloudEvents 1.0](https://github.com/cloudevents/spec/blob/v1.0.2/cloudevents/spec.md), binary mode: the payload, byte for
    /// byte, with the attributes as headers, named as the binding of the broker's protocol wants them.
    CloudeventsBinary,
    /// CloudEvents 1.0, structured mode: one JSON object of attributes and `data`.
    CloudeventsStructured,
}

/// The parts of a message that are known before its body and its headers.
pub(crate) struct Outline<'a> {
    pub(crate) target: Arc<str>,
    pub(crate) key: Option<Arc<str>>,
    /// The kind of broker, which decides how CloudEvents are bound.
    pub(crate) kind: &'static str,
    /// The `source` of CloudEvents.
    pub(crate) source: &'a str,
}

impl Format {
    /// True if a header of this name comes from the event, in messages to a broker of that kind.
    pub(crate) fn gives(self, kind: &str, name: &str) -> bool {
        header::is_of_the_outbox(name) || (self == Self::CloudeventsBinary && cloud_events::is_attribute(kind, name))
    }

    /// Makes the message of an event.
    pub(crate) fn shape(self, event: &Delivery, outline: Outline<'_>, rules: &HeaderRules) -> Result<Message, String> {
        let key = outline.key.as_deref();
        let payload = event.payload();
        let (headers, content_type, body) = match self {
            Self::Raw => (rules.raw(event, key)?, own_type(payload), own_bytes(payload)),
            Self::CloudeventsBinary => {
                let content_type = own_type(payload);
                cloud_events::refuse_structured(&content_type)?;
                (cloud_events::binary(event, key, &outline, rules)?, content_type, own_bytes(payload))
            }
            Self::CloudeventsStructured => {
                let body = cloud_events::structured(event, key, outline.source)?;
                let mut headers = Vec::new();
                rules.add_others(&mut headers, event, |name| cloud_events::is_reserved(outline.kind, name))?;
                (headers, Cow::Borrowed(cloud_events::STRUCTURED), body)
            }
        };
        let mut message = Message::new(Arc::clone(&outline.target), event.id().clone(), body);
        message.key = outline.key.map(|key| Box::from(&*key));
        message.headers = headers;
        message.content_type = content_type;
        Ok(message)
    }
}

fn own_type(payload: &Payload) -> Cow<'static, str> {
    match payload {
        Payload::Json(_) => Cow::Borrowed(Payload::JSON),
        other => Cow::Owned(other.content_type().to_owned()),
    }
}

fn own_bytes(payload: &Payload) -> Bytes {
    match payload {
        Payload::Binary { bytes, .. } => bytes.clone(),
        other => Bytes::copy_from_slice(other.as_bytes()),
    }
}
