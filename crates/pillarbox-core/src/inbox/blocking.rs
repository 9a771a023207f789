use super::{Inbox, InboxError, Once};
use crate::write::{Connection, Synchronous, now};

/// The inbox of a consumer, for drivers that block their thread. Returned by [`Inbox::blocking`].
#[derive(Debug, Clone, Copy)]
pub struct BlockingInbox<'a>(&'a Inbox);

impl<'a> BlockingInbox<'a> {
    pub(super) fn new(inbox: &'a Inbox) -> Self {
        Self(inbox)
    }

    /// Records that the consumer receives a message, as [`Inbox::once`] does.
    ///
    /// # Errors
    /// See [`InboxError`].
    pub fn once<M, C: Connection<M> + Synchronous<M>>(
        &self,
        connection: &mut C,
        message_id: &str,
    ) -> Result<Once, InboxError<C::Error>> {
        now(self.0.once(connection, message_id))
    }
}
