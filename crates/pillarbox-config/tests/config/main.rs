//! Settings, from their sources to a running outbox.

mod defaults;
mod documentation;
mod handlers;
mod setup;
mod sources;
