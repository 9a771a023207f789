use std::fmt;

use async_trait::async_trait;

use crate::error::StoreError;

/// Lets one process wake another through the database. A ring carries nothing, may be lost, and may be merged with
/// others: it is a hint to look at the table.
#[async_trait]
pub trait WakeUps: fmt::Debug + Send + Sync {
    /// Wakes whoever listens on this table, in any process.
    ///
    /// # Behavior
    /// - `a_ring_wakes_every_listener`
    async fn ring(&self) -> Result<(), StoreError>;

    /// Listens, on a connection of its own.
    async fn listen(&self) -> Result<Box<dyn Listener>, StoreError>;
}

/// An open ear. Dropping it closes it.
#[async_trait]
pub trait Listener: fmt::Debug + Send {
    /// Waits for the next ring; rings since the last call count as one.
    ///
    /// # Errors
    /// When the connection is lost; listen anew then, and look at the table, since rings may have been missed.
    async fn rung(&mut self) -> Result<(), StoreError>;
}
