use crate::error::BoxError;
use crate::event::{Codec, Decode, Encode};

/// The event is bytes already: the bytes that it lends as `AsRef<[u8]>` are the payload, and `TryFrom<Vec<u8>>` (or `From`) takes it
/// back. For formats that your own types know, such as Avro. Say which one it is with `content_type = "…"`.
#[derive(Debug)]
pub enum Raw {}

impl Codec for Raw {
    const CONTENT_TYPE: &'static str = "application/octet-stream";
}

#[diagnostic::do_not_recommend]
impl<T: AsRef<[u8]>> Encode<T> for Raw {
    fn encode(event: &T) -> Result<Vec<u8>, BoxError> {
        Ok(event.as_ref().to_vec())
    }
}

#[diagnostic::do_not_recommend]
impl<T: TryFrom<Vec<u8>, Error: Into<BoxError>>> Decode<T> for Raw {
    fn decode(payload: &[u8]) -> Result<T, BoxError> {
        T::try_from(payload.to_vec()).map_err(Into::into)
    }
}
