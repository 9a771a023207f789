//! The events that a service writes, their identity and their limits.

mod builder;
mod codec;
pub mod codecs;
mod envelope;
mod headers;
mod id;
mod invalid;
mod key;
pub mod limits;
mod payload;
mod typed;

pub use builder::EnvelopeBuilder;
pub(crate) use codec::decode;
pub use codec::{Codec, Decode, Encode};
pub(crate) use envelope::Due;
pub use envelope::{Envelope, GLOBAL_AGGREGATE};
pub use headers::Headers;
pub use id::{EventId, Stamp};
pub use invalid::InvalidEvent;
pub use key::{PARTITIONS, partition_of};
pub use payload::Payload;
pub use typed::{Event, IntoEnvelope, TypeName};
