//! The values of settings that are not the engine's.

mod choice;
mod url;

pub use choice::{RetryPolicyKind, Synchronous};
pub(crate) use url::DatabaseKind;
pub use url::DatabaseUrl;
