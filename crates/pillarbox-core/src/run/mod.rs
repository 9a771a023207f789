//! Starting, running and stopping an outbox.

mod outbox;

pub use outbox::Outbox;
