//! What operators do, in code; `pillarbox dead` does the same from a shell.

use pillarbox::Outbox;
use pillarbox::maintain::{DeadEvent, DeadFilter};

use crate::BoxError;

/// The receipts that were given up.
fn receipts() -> DeadFilter {
    DeadFilter::new().event_type("order.placed").handler("receipts")
}

/// Lists them, the first hundred.
///
/// # Errors
/// The database's.
pub async fn failed(outbox: &Outbox) -> Result<Vec<DeadEvent>, BoxError> {
    Ok(outbox.store().dead(&receipts(), 0, 100).await?)
}

/// Delivers them again, and returns how many there were.
///
/// # Errors
/// The database's.
pub async fn replay_failed(outbox: &Outbox) -> Result<u64, BoxError> {
    Ok(outbox.dead_events().replay_all(&receipts(), |_so_far| {}).await?)
}
