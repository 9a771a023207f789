use bytes::Bytes;

use super::{Event, InvalidEvent, Payload};
use crate::error::BoxError;

/// A format of payloads, which turns events into bytes and bytes into events.
///
/// An event type names its codec once, `#[event(codec = …)]`; without that it is [`Json`](super::codecs::Json). A
/// written payload stays in the table as it is and is delivered as it is; the codec works before and after that.
///
/// A codec is a type without a value. It implements [`Encode`] and [`Decode`] for the events it can take:
///
/// ```
/// use pillarbox_core::error::BoxError;
/// use pillarbox_core::event::{Codec, Decode, Encode};
///
/// /// One number as decimal digits.
/// struct Digits;
///
/// impl Codec for Digits {
///     const CONTENT_TYPE: &'static str = "text/plain";
/// }
///
/// impl<T: Copy + Into<u64>> Encode<T> for Digits {
///     fn encode(event: &T) -> Result<Vec<u8>, BoxError> {
///         let number: u64 = (*event).into();
///         Ok(number.to_string().into_bytes())
///     }
/// }
///
/// impl<T: From<u64>> Decode<T> for Digits {
///     fn decode(payload: &[u8]) -> Result<T, BoxError> {
///         Ok(std::str::from_utf8(payload)?.parse::<u64>()?.into())
///     }
/// }
/// ```
pub trait Codec {
    /// The media type of its payloads, at most 128 characters, such as `application/x-protobuf`. An event type can
    /// name a closer one, see [`Event::CONTENT_TYPE`].
    const CONTENT_TYPE: &'static str;
}

/// A [`Codec`] that can write `T`.
#[diagnostic::on_unimplemented(
    message = "the codec `{Self}` cannot write `{T}`",
    label = "not a payload of this codec",
    note = "JSON, the default, needs `#[derive(Serialize)]`; `codec = prost` needs `#[derive(prost::Message)]`; `codec = raw` needs `AsRef<[u8]>`"
)]
pub trait Encode<T>: Codec {
    /// The payload of an event.
    ///
    /// # Errors
    /// The error keeps the event from being written; the caller's transaction is not touched then.
    fn encode(event: &T) -> Result<Vec<u8>, BoxError>;
}

/// A [`Codec`] that can read `T`.
#[diagnostic::on_unimplemented(
    message = "the codec `{Self}` cannot read `{T}`",
    label = "not a payload of this codec",
    note = "JSON, the default, needs `#[derive(Deserialize)]`; `codec = prost` needs `#[derive(prost::Message)]`; `codec = raw` needs `From<Vec<u8>>` or `TryFrom<Vec<u8>>`"
)]
pub trait Decode<T>: Codec {
    /// The event of a payload.
    ///
    /// # Errors
    /// When the bytes are none of this format, or hold something else. Delivering them again would not change that, so the
    /// event goes DEAD.
    fn decode(payload: &[u8]) -> Result<T, BoxError>;
}

/// The payload of an event, by its codec.
pub(super) fn encode<E: Event>(event: &E) -> Result<Payload, InvalidEvent> {
    let failed = |error: BoxError| {
        let problem = format!("of `{}` cannot be written as {}: {error}", E::TYPE, E::CONTENT_TYPE);
        InvalidEvent::new("payload", problem, "give the event a value that its codec can write, or another codec")
    };
    let bytes = E::Codec::encode(event).map_err(failed)?;
    if E::CONTENT_TYPE != Payload::JSON {
        return Ok(Payload::Binary { content_type: E::CONTENT_TYPE.into(), bytes: Bytes::from(bytes) });
    }
    let text = String::from_utf8(bytes).map_err(|error| failed(error.into()))?;
    Ok(Payload::Json(text.into()))
}

/// The event of a payload, by its codec, if the payload is of its content type. Says what is wrong otherwise.
pub(crate) fn decode<E: Event<Codec: Decode<E>>>(payload: &Payload) -> Result<E, String> {
    let content_type = payload.content_type();
    if !same_media_type(content_type, E::CONTENT_TYPE) {
        return Err(format!(
            "the payload of `{}` is {content_type}, but is read as {}; let writers and handlers of this event name the same codec",
            E::TYPE,
            E::CONTENT_TYPE
        ));
    }
    E::Codec::decode(payload.as_bytes()).map_err(|error| format!("the payload is not a valid `{}`: {error}", E::TYPE))
}

/// True if two content types are the same but for case and parameters, which writers in other languages may add.
fn same_media_type(one: &str, other: &str) -> bool {
    fn essence(content_type: &str) -> &str {
        content_type.split(';').next().map_or("", str::trim)
    }
    one == other || essence(one).eq_ignore_ascii_case(essence(other))
}

#[cfg(test)]
mod tests {
    use super::same_media_type;

    #[test]
    fn parameters_and_case_are_not_the_media_type() {
        assert!(same_media_type("application/json", "Application/JSON; charset=utf-8"));
        assert!(same_media_type("application/x-protobuf ;messageType=a.B", "application/x-protobuf"));
        assert!(!same_media_type("application/json", "application/json5"));
        assert!(!same_media_type("", "application/json"));
    }
}
