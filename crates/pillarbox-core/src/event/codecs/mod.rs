//! The codecs that come with Pillarbox. Others are a few lines of your own, see [`Codec`](super::Codec).

mod json;
#[cfg(feature = "prost")]
mod prost;
mod raw;

pub use json::Json;
#[cfg(feature = "prost")]
pub use prost::Prost;
pub use raw::Raw;
