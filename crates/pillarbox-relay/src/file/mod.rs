//! The configuration file, read.

mod console;
mod error;
mod given;
mod on_disk;
mod publisher;
mod read;
mod relay_file;
mod route;
mod server;
mod source;

pub use console::{ConsoleError, ConsoleSettings};
pub use error::FileError;
pub(crate) use on_disk::OnDisk;
pub(crate) use publisher::PublisherSection;
pub use publisher::publisher_at;
pub use relay_file::RelayFile;
pub(crate) use route::RouteSection;
pub use server::{OnUnavailable, ServerSettings};
pub(crate) use source::Source;
