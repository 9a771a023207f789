//! The values of settings: how they are written.

mod choice;
mod duration;
mod url;

pub use choice::{FailingHead, FailingKey, Mode, Synchronous, Unroutable};
pub(crate) use duration::{is_duration, or_never, span};
pub(crate) use url::DatabaseKind;
pub use url::DatabaseUrl;
