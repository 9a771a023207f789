//! The configuration file, read.

mod console;
mod error;
mod file_setting;
mod fingerprint;
mod publisher;
mod read;
mod relay_file;
mod route;
mod server;
mod source;

pub use console::{ConsoleError, ConsoleSettings};
pub use error::FileError;
pub(crate) use fingerprint::FileFingerprint;
pub(crate) use publisher::PublisherSection;
pub use publisher::publisher_at;
pub use relay_file::RelayFile;
pub(crate) use route::RouteSection;
pub use server::{OnUnavailable, ServerSettings};
pub(crate) use source::Source;
