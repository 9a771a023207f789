//! Delivering from several sources at once, each of which starts, waits for its database and stops by itself.

mod reload;
mod source;
mod sources;

pub(crate) use sources::Sources;
