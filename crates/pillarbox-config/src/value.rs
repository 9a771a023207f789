//! The values of settings: how they are written.

mod bytes;
mod choice;
mod duration;
mod url;

pub use bytes::ByteSize;
pub use choice::{FailingHead, FailingKey, Mode, RetryPolicyKind, Synchronous, Unroutable};
pub(crate) use duration::{if_given, is_duration, or_never, span};
pub(crate) use url::DatabaseKind;
pub use url::DatabaseUrl;
