use std::time::Duration;

use super::codec::decode;
use super::{Decode, EnvelopeBuilder, Event, EventId, Headers, InvalidEvent, Payload, TypeName, partition_of};
use crate::clock::Timestamp;
use crate::error::BoxError;

/// The aggregate type of an event that belongs to no aggregate.
pub const GLOBAL_AGGREGATE: &str = "__GLOBAL__";

/// An event: checked and complete, ready to be written, or as the table has it; immutable.
///
/// Build one by name when there is no Rust type for it; [`Event`](super::Event) is the typed way.
///
/// ```
/// use pillarbox_core::event::Envelope;
/// let event = Envelope::builder("order.placed")
///     .aggregate("order", "order-123")
///     .tenant_id("acme")
///     .header("source", "checkout")
///     .payload_json(r#"{"total_cents": 1999}"#)
///     .build()?;
/// assert_eq!(event.key(), Some("order-123"));
/// # Ok::<(), pillarbox_core::event::InvalidEvent>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Envelope {
    pub(crate) id: EventId,
    pub(crate) event_type: Box<str>,
    pub(crate) aggregate_type: Box<str>,
    pub(crate) aggregate_id: Option<Box<str>>,
    pub(crate) tenant_id: Option<Box<str>>,
    pub(crate) key: Option<Box<str>>,
    pub(crate) unique_key: Option<Box<str>>,
    pub(crate) headers: Headers,
    pub(crate) payload: Payload,
    pub(crate) occurred_at: Timestamp,
    pub(crate) due: Due,
}

/// The earliest time of delivery.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Due {
    AtOnce,
    At(Timestamp),
    /// So long after the insert.
    After(Duration),
}

impl Envelope {
    /// Starts an event of the given type.
    pub fn builder(event_type: impl TypeName) -> EnvelopeBuilder {
        EnvelopeBuilder::new(event_type.type_name())
    }

    /// The shortest event: a type and a JSON payload.
    ///
    /// # Errors
    /// As [`EnvelopeBuilder::build`].
    pub fn json(event_type: impl TypeName, payload: impl Into<Box<str>>) -> Result<Self, InvalidEvent> {
        Self::builder(event_type).payload_json(payload).build()
    }

    /// A builder that has all that this event has, its id and its time too, for an event that differs in something: a writer hook
    /// changes one so.
    ///
    /// ```
    /// use pillarbox_core::event::Envelope;
    /// let event = Envelope::json("user.registered", r#"{"email": "ada@example.com"}"#)?;
    /// let redacted = event.clone().into_builder().payload_json(r#"{"email": null}"#).build()?;
    /// assert_eq!(redacted.id(), event.id());
    /// # Ok::<(), pillarbox_core::event::InvalidEvent>(())
    /// ```
    pub fn into_builder(self) -> EnvelopeBuilder {
        self.into()
    }

    /// The event's id, by which consumers deduplicate.
    #[must_use]
    pub fn id(&self) -> &EventId {
        &self.id
    }

    /// The event type, such as `order.placed`.
    #[must_use]
    pub fn event_type(&self) -> &str {
        &self.event_type
    }

    /// The kind of thing it happened to; [`GLOBAL_AGGREGATE`] unless given.
    #[must_use]
    pub fn aggregate_type(&self) -> &str {
        &self.aggregate_type
    }

    /// The id of the thing it happened to.
    #[must_use]
    pub fn aggregate_id(&self) -> Option<&str> {
        self.aggregate_id.as_deref()
    }

    /// The tenant it belongs to; carried, not interpreted.
    #[must_use]
    pub fn tenant_id(&self) -> Option<&str> {
        self.tenant_id.as_deref()
    }

    /// The ordering key: the explicit one, else the aggregate id. Events of equal keys keep their order where order is
    /// asked for.
    #[must_use]
    pub fn key(&self) -> Option<&str> {
        self.key.as_deref().or(self.aggregate_id.as_deref())
    }

    /// The key by which it is [written once](EnvelopeBuilder::unique_key) while it is pending.
    #[must_use]
    pub fn unique_key(&self) -> Option<&str> {
        self.unique_key.as_deref()
    }

    /// The partition of its key; events without a key are spread by their id.
    #[must_use]
    pub fn partition(&self) -> u8 {
        partition_of(self.key().unwrap_or(self.id.as_str()))
    }

    /// The string map that travels with it.
    #[must_use]
    pub fn headers(&self) -> &Headers {
        &self.headers
    }

    /// Adds the headers whose names it has not got yet: all of them, or none if it would become invalid.
    pub fn add_headers(&mut self, added: Headers) -> Result<(), InvalidEvent> {
        if added.is_empty() {
            return Ok(());
        }
        let mut headers = self.headers.clone();
        headers.extend(added.into_iter().filter(|(name, _)| self.headers.get(name).is_none()));
        headers.check()?;
        self.headers = headers;
        Ok(())
    }

    /// The memory that its payload and headers take, about, in bytes; by this memory is bounded.
    #[must_use]
    pub fn content_bytes(&self) -> usize {
        self.payload.as_bytes().len() + self.headers.memory()
    }

    /// The payload that it carries.
    #[must_use]
    pub fn payload(&self) -> &Payload {
        &self.payload
    }

    /// Reads the payload as a typed event, with the codec of its type: for hooks and conditions on what is written.
    ///
    /// # Errors
    /// When the payload is of another content type, or not such an event.
    pub fn decode<E: Event<Codec: Decode<E>>>(&self) -> Result<E, BoxError> {
        decode(&self.payload).map_err(BoxError::from)
    }

    /// The time at which it happened.
    #[must_use]
    pub fn occurred_at(&self) -> Timestamp {
        self.occurred_at
    }

    /// The time before which it is not delivered, if one was set that lies after [`occurred_at`](Self::occurred_at).
    #[must_use]
    pub fn available_at(&self) -> Option<Timestamp> {
        match self.due {
            Due::At(time) => Some(time),
            Due::AtOnce | Due::After(_) => None,
        }
    }

    /// The least delay between insert and delivery, if one was set.
    #[must_use]
    pub fn deliver_after(&self) -> Option<Duration> {
        match self.due {
            Due::After(delay) => Some(delay),
            Due::AtOnce | Due::At(_) => None,
        }
    }

    /// True if delivery waits for a time. A delayed event never takes the hot path.
    #[must_use]
    pub fn is_delayed(&self) -> bool {
        self.due != Due::AtOnce
    }
}
