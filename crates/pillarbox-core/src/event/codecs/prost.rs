use prost::Message;

use crate::error::BoxError;
use crate::event::{Codec, Decode, Encode};

/// Protocol Buffers through prost.
///
/// Bytes say little of the message they are of: a message read as another one may well succeed, with its fields mixed up.
/// Give a changed message that is not compatible a new event name.
#[derive(Debug)]
pub enum Prost {}

impl Codec for Prost {
    const CONTENT_TYPE: &'static str = "application/x-protobuf";
}

#[diagnostic::do_not_recommend]
impl<T: Message> Encode<T> for Prost {
    fn encode(event: &T) -> Result<Vec<u8>, BoxError> {
        Ok(event.encode_to_vec())
    }
}

#[diagnostic::do_not_recommend]
impl<T: Message + Default> Decode<T> for Prost {
    fn decode(payload: &[u8]) -> Result<T, BoxError> {
        Ok(T::decode(payload)?)
    }
}
