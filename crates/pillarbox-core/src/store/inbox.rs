use std::time::Duration;

/// A consumer that has messages in the inbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InboxConsumer {
    /// Its name.
    pub name: String,
    /// The time since its oldest message that is still there was received, by the database's clock.
    pub oldest: Duration,
}

impl InboxConsumer {
    /// The highest number of messages of one consumer that [`Admin::count_inbox`](super::Admin::count_inbox) counts.
    pub const COUNTED_UP_TO: u64 = 1_000_000;
}
