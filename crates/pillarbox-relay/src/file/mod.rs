//! The configuration file, read.

mod console;
mod error;
mod given;
mod on_disk;
mod publisher;
mod read;
mod route;
mod server;

pub use console::{ConsoleError, ConsoleSettings};
pub use error::FileError;
pub(crate) use on_disk::OnDisk;
pub(crate) use publisher::PublisherSection;
pub use publisher::publisher_at;
pub use read::RelayFile;
pub(crate) use read::Source;
pub(crate) use route::RouteSection;
pub use server::{OnUnavailable, ServerSettings};
