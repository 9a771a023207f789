//! Settings, from their sources to a running outbox.

mod defaults;
mod documentation;
mod setup;
mod sources;
