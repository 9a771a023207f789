use std::time::Duration;

use bytes::Bytes;
use serde::Serialize;

use super::codec::encode;
use super::envelope::Due;
use super::{Envelope, Event, EventId, GLOBAL_AGGREGATE, Headers, InvalidEvent, Payload, Stamp, TypeName, limits};
use crate::clock::Timestamp;

/// Builds an [`Envelope`]. Nothing is checked before [`build`](Self::build), which reports the first field that is wrong.
#[derive(Debug, Clone)]
#[must_use = "a builder does nothing until build() is called"]
pub struct EnvelopeBuilder {
    id: Option<String>,
    event_type: String,
    aggregate_type: Option<String>,
    pub(super) aggregate_id: Option<String>,
    pub(super) tenant_id: Option<String>,
    pub(super) key: Option<String>,
    unique_key: Option<String>,
    headers: Headers,
    payload: Option<Result<Payload, InvalidEvent>>,
    occurred_at: Option<Timestamp>,
    available_at: Option<Timestamp>,
    deliver_after: Option<Duration>,
}

impl From<Envelope> for EnvelopeBuilder {
    fn from(event: Envelope) -> Self {
        let Envelope {
            id,
            event_type,
            aggregate_type,
            aggregate_id,
            tenant_id,
            key,
            unique_key,
            headers,
            payload,
            occurred_at,
            due,
        } = event;
        let (available_at, deliver_after) = match due {
            Due::AtOnce => (None, None),
            Due::At(time) => (Some(time), None),
            Due::After(delay) => (None, Some(delay)),
        };
        Self {
            id: Some(id.as_str().to_owned()),
            event_type: event_type.into(),
            aggregate_type: Some(aggregate_type.into()),
            aggregate_id: aggregate_id.map(Into::into),
            tenant_id: tenant_id.map(Into::into),
            key: key.map(Into::into),
            unique_key: unique_key.map(Into::into),
            headers,
            payload: Some(Ok(payload)),
            occurred_at: Some(occurred_at),
            available_at,
            deliver_after,
        }
    }
}

impl EnvelopeBuilder {
    pub(super) fn new(event_type: &str) -> Self {
        Self {
            id: None,
            event_type: event_type.to_owned(),
            aggregate_type: None,
            aggregate_id: None,
            tenant_id: None,
            key: None,
            unique_key: None,
            headers: Headers::new(),
            payload: None,
            occurred_at: None,
            available_at: None,
            deliver_after: None,
        }
    }

    /// An id of your own, at most 36 characters. Default: a new monotonic ULID.
    pub fn id(mut self, id: impl Into<String>) -> Self {
        self.id = Some(id.into());
        self
    }

    /// The kind of thing the event happened to, and which one.
    pub fn aggregate(self, aggregate_type: impl TypeName, aggregate_id: impl Into<String>) -> Self {
        self.aggregate_type(aggregate_type).aggregate_id(aggregate_id)
    }

    /// The kind of thing the event happened to. Default: [`GLOBAL_AGGREGATE`].
    pub fn aggregate_type(mut self, aggregate_type: impl TypeName) -> Self {
        self.aggregate_type = Some(aggregate_type.type_name().to_owned());
        self
    }

    /// The id of the thing the event happened to; also its key unless [`key`](Self::key) says otherwise.
    pub fn aggregate_id(mut self, aggregate_id: impl Into<String>) -> Self {
        self.aggregate_id = Some(aggregate_id.into());
        self
    }

    /// The tenant the event belongs to.
    pub fn tenant_id(mut self, tenant_id: impl Into<String>) -> Self {
        self.tenant_id = Some(tenant_id.into());
        self
    }

    /// The ordering key, at most 255 characters. Default: the aggregate id.
    pub fn key(mut self, key: impl Into<String>) -> Self {
        self.key = Some(key.into());
        self
    }

    /// A key of your own, at most 255 characters: while an event with this key is pending for the same handler, this one is not written.
    /// [`Written::skipped`](crate::write::Written::skipped) then says so. It compares byte by byte, whatever the event type; choose a
    /// prefix. Default: none, so that the event is always written.
    pub fn unique_key(mut self, key: impl Into<String>) -> Self {
        self.unique_key = Some(key.into());
        self
    }

    /// Adds one header, replacing one of the same name.
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.insert(name, value);
        self
    }

    /// Adds headers, replacing those of the same names.
    pub fn headers<N: Into<String>, V: Into<String>>(mut self, headers: impl IntoIterator<Item = (N, V)>) -> Self {
        self.headers.extend(headers);
        self
    }

    /// JSON text as the payload; it is delivered exactly as written here.
    pub fn payload_json(mut self, json: impl Into<Box<str>>) -> Self {
        self.payload = Some(Ok(Payload::Json(json.into())));
        self
    }

    /// A value, serialised to JSON, as the payload.
    pub fn payload<T: Serialize + ?Sized>(mut self, value: &T) -> Self {
        self.payload = Some(match serde_json::to_string(value) {
            Ok(json) => Ok(Payload::Json(json.into())),
            Err(error) => {
                let problem = format!("cannot be serialised to JSON: {error}");
                Err(InvalidEvent::new("payload", problem, "make its type serialisable, or pass text or bytes"))
            }
        });
        self
    }

    /// A typed event, written by its codec, as the payload.
    pub(super) fn payload_of<E: Event>(mut self, event: &E) -> Self {
        self.payload = Some(encode(event));
        self
    }

    /// Bytes of another format as the payload, with their media type.
    pub fn payload_bytes(mut self, content_type: impl Into<Box<str>>, bytes: impl Into<Bytes>) -> Self {
        self.payload = Some(Ok(Payload::Binary { content_type: content_type.into(), bytes: bytes.into() }));
        self
    }

    /// The time at which the event happened. Default: now.
    pub fn occurred_at(mut self, time: impl Into<Timestamp>) -> Self {
        self.occurred_at = Some(time.into());
        self
    }

    /// The earliest time it may be delivered, compared with the database's clock. A time that is over means at once. Beside an
    /// [`occurred_at`](Self::occurred_at) of your own it is not before that. Excludes [`deliver_after`](Self::deliver_after).
    pub fn available_at(mut self, time: impl Into<Timestamp>) -> Self {
        self.available_at = Some(time.into());
        self
    }

    /// The least delay between insert and delivery, by the database's clock; above zero, at most 1,000 years.
    /// Excludes [`available_at`](Self::available_at).
    pub fn deliver_after(mut self, delay: Duration) -> Self {
        self.deliver_after = Some(delay);
        self
    }

    /// Checks everything and completes the event with the system's clock.
    ///
    /// # Errors
    /// The first field that is missing, too long, malformed or contradictory.
    pub fn build(self) -> Result<Envelope, InvalidEvent> {
        self.build_with(Stamp::system())
    }

    /// As [`build`](Self::build), with the id and the time given by `stamp`.
    ///
    /// # Errors
    /// As [`build`](Self::build).
    pub fn build_with(self, stamp: &Stamp) -> Result<Envelope, InvalidEvent> {
        limits::check_text("event_type", &self.event_type, limits::EVENT_TYPE)?;
        let aggregate_type = self.aggregate_type.unwrap_or_else(|| GLOBAL_AGGREGATE.to_owned());
        limits::check_text("aggregate_type", &aggregate_type, limits::AGGREGATE_TYPE)?;
        // Before the aggregate id, which a derived event takes from its key: the error names what the caller has given.
        let key = checked("key", self.key, limits::KEY)?;
        let is_key = key.is_some() && key.as_deref() == self.aggregate_id.as_deref();
        let aggregate_id = checked("aggregate_id", self.aggregate_id, limits::AGGREGATE_ID)
            .map_err(|error| if is_key { of_key_and_aggregate(&error) } else { error })?;
        let tenant_id = checked("tenant_id", self.tenant_id, limits::TENANT_ID)?;
        let unique_key = checked("unique_key", self.unique_key, limits::UNIQUE_KEY)?;
        self.headers.check()?;
        let payload = self.payload.unwrap_or_else(|| {
            Err(InvalidEvent::new("payload", "is missing", "set it with payload, payload_json or payload_bytes"))
        })?;
        payload.check()?;
        let id = match self.id {
            Some(id) => EventId::new(id)?,
            None => stamp.next_id(),
        };
        let (occurred_at, is_given) = self.occurred_at.map_or_else(|| (stamp.now(), false), |time| (time, true));
        let due = due(occurred_at, is_given, self.available_at, self.deliver_after)?;
        Ok(Envelope {
            id,
            event_type: self.event_type.into(),
            aggregate_type: aggregate_type.into(),
            aggregate_id,
            tenant_id,
            key,
            unique_key,
            headers: self.headers,
            payload,
            occurred_at,
            due,
        })
    }
}

/// The error of an aggregate id that is the key as well, under the name of the key.
fn of_key_and_aggregate(error: &InvalidEvent) -> InvalidEvent {
    let problem = format!("is the aggregate id too, which {}", error.problem());
    InvalidEvent::new("key", problem, "shorten it, or give the event an aggregate id of its own")
}

fn checked(field: &'static str, value: Option<String>, max: usize) -> Result<Option<Box<str>>, InvalidEvent> {
    if let Some(text) = &value {
        limits::check_text(field, text, max)?;
    }
    Ok(value.map(Into::into))
}

/// The last moment every supported database can store: the end of the year 9999.
const LAST: Timestamp = Timestamp::from_micros(253_402_300_799_999_999);
/// The first one: the start of the year 1.
const FIRST: Timestamp = Timestamp::from_micros(-62_135_596_800_000_000);

/// The longest delay: far below what a database can add to its time.
const LONGEST_DELAY: Duration = Duration::from_secs(1000 * 365 * 24 * 3600);

/// The due time. One that lies before `occurred_at` is a mistake if that `is_given`; before the present time it means at once.
fn due(
    occurred_at: Timestamp,
    is_given: bool,
    available_at: Option<Timestamp>,
    deliver_after: Option<Duration>,
) -> Result<Due, InvalidEvent> {
    let in_range = |field, time: Timestamp| {
        if (FIRST..=LAST).contains(&time) {
            return Ok(time);
        }
        Err(InvalidEvent::new(field, "lies outside the years 1 to 9999", "choose a time a database can store"))
    };
    in_range("occurred_at", occurred_at)?;
    match (available_at, deliver_after) {
        (Some(_), Some(_)) => Err(InvalidEvent::new(
            "available_at",
            "and `deliver_after` are both set",
            "set one of them: an absolute time or a delay",
        )),
        (None, Some(delay)) if delay.as_micros() == 0 => {
            Err(InvalidEvent::new("deliver_after", "is zero", "leave it out to deliver at once"))
        }
        (None, Some(delay)) if delay > LONGEST_DELAY => {
            Err(InvalidEvent::new("deliver_after", "is longer than 1,000 years", "choose a shorter delay"))
        }
        (None, Some(delay)) => Ok(Due::After(delay)),
        (Some(time), None) if is_given && time < occurred_at => Err(InvalidEvent::new(
            "available_at",
            "lies before `occurred_at`",
            "set a later time, or leave it out to deliver at once",
        )),
        (Some(time), None) => {
            in_range("available_at", time).map(|time| if time > occurred_at { Due::At(time) } else { Due::AtOnce })
        }
        (None, None) => Ok(Due::AtOnce),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_builder_made_of_an_event_builds_it_again() {
        let all = || {
            let builder =
                Envelope::builder("order.placed").aggregate("order", "o-1").tenant_id("acme").key("k").unique_key("u");
            builder.header("a", "b").payload_json("{}")
        };
        let time = Timestamp::from_micros(1_000_000_000_000_000);
        let events = [
            all(),
            all().occurred_at(time).available_at(Timestamp::from_micros(1_000_000_005_000_000)),
            all().deliver_after(Duration::from_secs(5)),
            Envelope::builder("tick").payload_bytes("text/plain", b"x".to_vec()),
        ];
        for event in events.map(|builder| builder.build().expect("valid")) {
            assert_eq!(event.clone().into_builder().build().expect("valid"), event);
        }
    }
}
