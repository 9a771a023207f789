use std::fmt;

use async_trait::async_trait;

use crate::error::StoreError;

/// Lets one process wake another through the database. A notification carries nothing, may be lost, and may be merged with
/// others: it is a hint to read the table.
#[async_trait]
pub trait WakeUps: fmt::Debug + Send + Sync {
    /// Wakes all listeners on this table, in any process.
    ///
    /// # Behavior
    /// - `a_notification_wakes_every_listener`
    async fn notify(&self) -> Result<(), StoreError>;

    /// Listens, on a connection of its own.
    async fn listen(&self) -> Result<Box<dyn Listener>, StoreError>;
}

/// A subscription to notifications. Dropping it ends it.
#[async_trait]
pub trait Listener: fmt::Debug + Send {
    /// Waits for the next notification; those since the last call count as one.
    ///
    /// # Errors
    /// When the connection is lost; listen anew then, and read the table, since notifications may have been missed.
    async fn notified(&mut self) -> Result<(), StoreError>;
}
