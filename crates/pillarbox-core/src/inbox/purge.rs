use std::time::Duration;

use tokio::time::{Instant, sleep};

use crate::error::StoreError;
use crate::store::Upkeep;

/// Consumers that are looked up at once.
const PAGE: usize = 100;

/// Deletes what was received longer ago than `older_than`, by `consumer` or by all: `batch` messages at most in one transaction. Between
/// two transactions it waits for as long as the last one took. Calls `progress` after each with the number of messages deleted so far, and
/// returns it at the end.
///
/// # Errors
/// The database's; what was deleted by then stays deleted.
pub async fn purge<S: Upkeep + ?Sized>(
    store: &S,
    consumer: Option<&str>,
    older_than: Duration,
    batch: usize,
    mut progress: impl FnMut(u64) + Send,
) -> Result<u64, StoreError> {
    if let Some(consumer) = consumer {
        return of_consumer(store, consumer, older_than, batch, progress).await;
    }
    let (mut removed, mut after) = (0, None::<String>);
    loop {
        let consumers = store.inbox_consumers(after.as_deref(), PAGE).await?;
        for consumer in consumers.iter().filter(|consumer| consumer.oldest >= older_than) {
            let so_far = removed;
            let count = |of_consumer| progress(so_far + of_consumer);
            removed += of_consumer(store, &consumer.name, older_than, batch, count).await?;
        }
        if consumers.len() < PAGE {
            return Ok(removed);
        }
        after = consumers.into_iter().next_back().map(|last| last.name);
    }
}

/// The same for one consumer.
pub(super) async fn of_consumer<S: Upkeep + ?Sized>(
    store: &S,
    consumer: &str,
    older_than: Duration,
    batch: usize,
    mut progress: impl FnMut(u64) + Send,
) -> Result<u64, StoreError> {
    let mut removed = 0;
    loop {
        let began = Instant::now();
        let deleted = store.purge_inbox(consumer, older_than, batch).await?;
        removed += deleted;
        progress(removed);
        if deleted < batch as u64 {
            return Ok(removed);
        }
        sleep(began.elapsed()).await;
    }
}
