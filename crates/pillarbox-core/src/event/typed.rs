use std::borrow::Cow;

use super::{Codec, Encode, Envelope, EnvelopeBuilder, GLOBAL_AGGREGATE, Headers, InvalidEvent, Stamp};

/// A Rust type that is written as an event. Derive it:
///
/// ```text
/// #[derive(Serialize, Deserialize, Event)]
/// #[event(name = "order.placed", aggregate = "order", key = order_id)]
/// struct OrderPlaced { order_id: String, total_cents: i64 }
/// ```
///
/// Names are explicit and stable: they are never taken from the Rust path, so that renaming or moving the type leaves
/// the events already in the table deliverable.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an event",
    label = "not an event",
    note = "derive it: #[derive(Serialize, Deserialize, Event)] and #[event(name = \"…\")] on the type",
    note = "or build an `Envelope` by hand for names known only at run time"
)]
pub trait Event: Sized {
    /// The codec that writes and reads its payload: [`Json`](super::codecs::Json) unless derived otherwise.
    type Codec: Encode<Self>;

    /// The event type, at most 128 characters, such as `order.placed`.
    const TYPE: &'static str;

    /// The aggregate type, at most 64 characters.
    const AGGREGATE: &'static str = GLOBAL_AGGREGATE;

    /// The media type of its payload, at most 128 characters; that of its codec unless a closer one is named.
    const CONTENT_TYPE: &'static str = <Self::Codec as Codec>::CONTENT_TYPE;

    /// The id of the aggregate it happened to.
    fn aggregate_id(&self) -> Option<Cow<'_, str>> {
        None
    }

    /// The ordering key, where it is not the aggregate id.
    fn key(&self) -> Option<Cow<'_, str>> {
        None
    }

    /// The tenant it belongs to.
    fn tenant_id(&self) -> Option<Cow<'_, str>> {
        None
    }

    /// Headers taken from its fields.
    fn headers(&self) -> Headers {
        Headers::new()
    }

    /// A builder holding everything this event says of itself, for the rest: a delay, an id, more headers.
    fn to_builder(&self) -> EnvelopeBuilder {
        let mut builder =
            Envelope::builder(Self::TYPE).aggregate_type(Self::AGGREGATE).headers(self.headers()).payload_of(self);
        builder.aggregate_id = self.aggregate_id().map(Cow::into_owned);
        builder.key = self.key().map(Cow::into_owned);
        builder.tenant_id = self.tenant_id().map(Cow::into_owned);
        builder
    }
}

/// An event that `write` accepts: a reference to a typed event, an [`Envelope`], or its builder.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be written as an event",
    label = "expected a reference to a type that derives `Event`, or an `Envelope`",
    note = "pass `&event` for a type with #[derive(Event)], or `Envelope::builder(…)…build()?`"
)]
pub trait IntoEnvelope {
    /// Completes the event, taking its id and time from `stamp` where they are not set.
    ///
    /// # Errors
    /// As [`EnvelopeBuilder::build`].
    fn into_envelope(self, stamp: &Stamp) -> Result<Envelope, InvalidEvent>;
}

impl<E: Event> IntoEnvelope for &E {
    fn into_envelope(self, stamp: &Stamp) -> Result<Envelope, InvalidEvent> {
        self.to_builder().build_with(stamp)
    }
}

impl IntoEnvelope for Envelope {
    fn into_envelope(self, _: &Stamp) -> Result<Envelope, InvalidEvent> {
        Ok(self)
    }
}

impl IntoEnvelope for EnvelopeBuilder {
    fn into_envelope(self, stamp: &Stamp) -> Result<Envelope, InvalidEvent> {
        self.build_with(stamp)
    }
}

/// A stable name of an event type or an aggregate type: a string, or an enum of yours.
///
/// ```
/// use pillarbox_core::event::{Envelope, TypeName};
///
/// enum UserEvent { Created, Deleted }
///
/// impl TypeName for UserEvent {
///     fn type_name(&self) -> &str {
///         match self {
///             Self::Created => "user.created",
///             Self::Deleted => "user.deleted",
///         }
///     }
/// }
///
/// let event = Envelope::json(UserEvent::Created, "{}")?;
/// assert_eq!(event.event_type(), "user.created");
/// # Ok::<(), pillarbox_core::event::InvalidEvent>(())
/// ```
pub trait TypeName {
    /// The name, the same in every release of your service.
    fn type_name(&self) -> &str;
}

impl TypeName for str {
    fn type_name(&self) -> &str {
        self
    }
}

impl TypeName for String {
    fn type_name(&self) -> &str {
        self
    }
}

impl<T: TypeName + ?Sized> TypeName for &T {
    fn type_name(&self) -> &str {
        (**self).type_name()
    }
}
