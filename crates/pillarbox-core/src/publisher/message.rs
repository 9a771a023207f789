use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use bytes::Bytes;

use crate::event::EventId;

/// A message that is sent to a broker for one event.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Message {
    /// The destination: a subject, an exchange and routing key, a topic, a stream, a URL. The publisher defines its meaning.
    pub target: Arc<str>,
    /// The event's id: the same however often it is sent. Brokers that deduplicate are given it.
    pub id: EventId,
    /// Messages with the same key stay in order, where the broker keeps any; brokers with partitions choose one by it.
    pub key: Option<Box<str>>,
    /// The event's tenant, for publishers that have credentials for each. It is not sent because it stands here.
    pub tenant: Option<Box<str>>,
    /// Names and values that travel beside the body, those of [`header`](super::header) among them. Each name stands once.
    pub headers: Vec<(Cow<'static, str>, String)>,
    /// The media type of the body.
    pub content_type: Cow<'static, str>,
    /// The body, byte for byte.
    pub body: Bytes,
}

impl Message {
    /// A message of JSON without key and headers.
    pub fn new(target: impl Into<Arc<str>>, id: EventId, body: impl Into<Bytes>) -> Self {
        Self {
            target: target.into(),
            id,
            key: None,
            tenant: None,
            headers: Vec::new(),
            content_type: Cow::Borrowed(crate::event::Payload::JSON),
            body: body.into(),
        }
    }

    /// The value of a header.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(other, _)| other == name).map(|(_, value)| value.as_str())
    }
}

// A body may hold personal data, and `Debug` output ends up in logs.
impl fmt::Debug for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Message")
            .field("target", &self.target)
            .field("id", &self.id)
            .field("content_type", &self.content_type)
            .field("bytes", &self.body.len())
            .finish_non_exhaustive()
    }
}
