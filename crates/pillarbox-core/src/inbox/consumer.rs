use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use super::{BlockingInbox, CONSUMER_BYTES, InboxError, MESSAGE_ID_BYTES, purge};
use crate::error::{ConfigError, StoreError};
use crate::store::Store;
use crate::write::Connection;

/// Messages that [`Inbox::purge`] deletes in one transaction.
const BATCH: usize = 1000;

/// The shortest time between two calls of [`Inbox::purge_every`]: without one it would ask the database all the time.
const SHORTEST_INTERVAL: Duration = Duration::from_secs(1);

/// The inbox of one consumer: tells the first receipt of a message from all later ones. Cheap to clone.
///
/// [`once`](Self::once) records the message's id in the caller's transaction, so it is there if and only if the writes beside it are.
/// Consumers have names: two of them receive the same message once each.
///
/// ```text
/// let inbox = Inbox::new(store, "billing")?;
///
/// let mut tx = pool.begin().await?;
/// if inbox.once(&mut *tx, message_id).await?.is_first() {
///     sqlx::query("INSERT INTO invoice …").execute(&mut *tx).await?;
/// }
/// tx.commit().await?;
/// message.ack().await?; // after the commit: a message that is not acknowledged comes again, and is passed over
/// ```
#[derive(Debug, Clone)]
pub struct Inbox {
    store: Arc<dyn Store>,
    consumer: Arc<str>,
}

/// Tells whether a message came for the first time. Returned by [`Inbox::once`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[must_use = "a message that was received before must not be handled again"]
pub enum Once {
    /// It came for the first time, and is recorded now: handle it in this transaction.
    First,
    /// This transaction, or one that has committed, recorded it before: leave it at that, and acknowledge the message.
    Again,
}

impl Once {
    /// True for [`Once::First`].
    #[must_use]
    pub fn is_first(self) -> bool {
        self == Self::First
    }
}

impl Inbox {
    /// The inbox of the consumer of this name, in the database of `store`. The name is 1 to 64 bytes long, and stays the same for as long as
    /// messages may come again: by another name they are new.
    ///
    /// The tables are those of an outbox, which [`Store::migrate`] makes; no outbox has to run on them.
    ///
    /// # Errors
    /// For a name that is empty, longer than 64 bytes, or holds a NUL.
    pub fn new(store: impl Store, consumer: impl Into<String>) -> Result<Self, ConfigError> {
        let consumer = consumer.into();
        if let Err((problem, remedy)) = check(&consumer, CONSUMER_BYTES) {
            return Err(ConfigError::new("consumer", problem, remedy));
        }
        Ok(Self { store: Arc::new(store), consumer: consumer.into() })
    }

    /// The name of the consumer.
    #[must_use]
    pub fn consumer(&self) -> &str {
        &self.consumer
    }

    /// Records that the consumer receives a message, in the caller's transaction, and tells whether it is the first time.
    ///
    /// `connection` is a transaction of any driver that an outbox can [write](Connection) with. The id is 1 to 255 bytes long, compared
    /// byte by byte, and the same each time that the message is delivered.
    ///
    /// - Rolled back, to a savepoint too, the message counts as never received.
    /// - While another transaction that recorded it is open, this one waits for its end. On SQLite, transactions that write take turns anyway.
    ///   On PostgreSQL at `REPEATABLE READ` or `SERIALIZABLE` it fails with a serialization error (40001) if the other one commits: roll back,
    ///   and take the message again.
    /// - A message that is received again after the inbox was [purged](Self::purge) of it comes for the first time.
    ///
    /// # Errors
    /// See [`InboxError`].
    pub async fn once<M, C: Connection<M>>(
        &self,
        connection: &mut C,
        message_id: &str,
    ) -> Result<Once, InboxError<C::Error>> {
        if let Err((problem, remedy)) = check(message_id, MESSAGE_ID_BYTES) {
            return Err(InboxError::InvalidId { problem, remedy });
        }
        let (inbox, connected) = (self.store.info().dialect, connection.dialect());
        if inbox != connected {
            return Err(InboxError::WrongDatabase { inbox, connection: connected });
        }
        if connection.in_transaction() == Some(false) {
            return Err(InboxError::NoTransaction);
        }
        let receive = self.store.receive(&self.consumer, message_id);
        let rows = connection.run(&receive).await.map_err(InboxError::Database)?;
        Ok(if rows == 1 { Once::First } else { Once::Again })
    }

    /// The same inbox for drivers that block their thread: diesel's own connections, and rusqlite.
    #[must_use]
    pub fn blocking(&self) -> BlockingInbox<'_> {
        BlockingInbox::new(self)
    }

    /// Deletes messages that this consumer received longer ago than `older_than`, 1,000 in one transaction, and returns their number.
    /// Between two transactions it waits for as long as the last one took.
    ///
    /// The processes that run an outbox on these tables do so by themselves, for all consumers, with messages older than
    /// `purge.inbox_after`: 30 days unless set otherwise. If none runs, call this now and then, or [`purge_every`](Self::purge_every).
    ///
    /// # Errors
    /// A [`Config`](crate::error::StoreErrorKind::Config) error if `older_than` is zero, which would forget messages that may come again. Otherwise
    /// the database's; messages deleted by then stay deleted.
    pub async fn purge(&self, older_than: Duration) -> Result<u64, StoreError> {
        purge(&*self.store, Some(&*self.consumer), older_than, BATCH, |_| ()).await
    }

    /// Calls [`purge`](Self::purge) for ever, `interval` apart, at least one second, and logs where it fails. For a service that runs no outbox:
    /// `tokio::spawn(async move { inbox.purge_every(hour, 30 * day).await })`. It may be dropped at any time, and run in many processes.
    pub async fn purge_every(&self, interval: Duration, older_than: Duration) -> Infallible {
        loop {
            match self.purge(older_than).await {
                Ok(0) => {}
                Ok(messages) => tracing::info!(messages, consumer = &*self.consumer, "purged the inbox"),
                Err(error) => tracing::warn!(%error, consumer = &*self.consumer, "the inbox cannot be purged"),
            }
            tokio::time::sleep(interval.max(SHORTEST_INTERVAL)).await;
        }
    }
}

/// Accepts a text if no database cuts, refuses or confuses it; else the problem and its remedy.
fn check(text: &str, most: usize) -> Result<(), (String, &'static str)> {
    if text.is_empty() {
        return Err(("is empty".to_owned(), "give it a value"));
    }
    if text.len() > most {
        let problem = format!("has {} bytes, over the limit of {most}", text.len());
        return Err((problem, "shorten it; a hash of it will do"));
    }
    if text.contains('\0') {
        return Err(("contains a NUL character (U+0000)".to_owned(), "remove it: databases refuse it"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::check;

    #[test]
    fn a_text_is_bounded_in_bytes_and_without_nul() {
        for good in ["a", " ", "é", &"x".repeat(10), &"é".repeat(5)] {
            assert_eq!(check(good, 10), Ok(()), "{good:?}");
        }
        for (bad, problem) in [
            ("", "is empty"),
            ("a\0", "contains a NUL character (U+0000)"),
            (&"é".repeat(6), "has 12 bytes, over the limit of 10"),
        ] {
            assert_eq!(check(bad, 10).map_err(|(problem, _)| problem), Err(problem.to_owned()), "{bad:?}");
        }
    }
}
