use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::BoxError;
use crate::event::{Codec, Decode, Encode, Payload};

/// JSON through serde, the codec of an event that names none. The table keeps it as text.
#[derive(Debug)]
pub enum Json {}

impl Codec for Json {
    const CONTENT_TYPE: &'static str = Payload::JSON;
}

#[diagnostic::do_not_recommend]
impl<T: Serialize> Encode<T> for Json {
    fn encode(event: &T) -> Result<Vec<u8>, BoxError> {
        Ok(serde_json::to_vec(event)?)
    }
}

#[diagnostic::do_not_recommend]
impl<T: DeserializeOwned> Decode<T> for Json {
    fn decode(payload: &[u8]) -> Result<T, BoxError> {
        Ok(serde_json::from_slice(payload)?)
    }
}
