use std::time::Duration;

use tokio::time::{Instant, sleep};

use crate::error::{ConfigError, StoreError, StoreErrorKind};
use crate::store::{Admin, operation};

/// Consumers that are looked up at once.
const PAGE: usize = 100;

/// Deletes messages that `consumer`, or any, received longer ago than `older_than`: `batch` of them at most in one transaction. Between
/// two transactions it waits for as long as the last one took. Calls `progress` after each with the number of messages deleted so far, and
/// returns it at the end.
///
/// # Errors
/// A [`Config`](StoreErrorKind::Config) error if `older_than` is zero, which would forget messages that may come again, or `batch` is zero, which
/// would never end. Otherwise the database's; messages deleted by then stay deleted.
pub async fn purge<S: Admin + ?Sized>(
    store: &S,
    consumer: Option<&str>,
    older_than: Duration,
    batch: usize,
    mut progress: impl FnMut(u64) + Send,
) -> Result<u64, StoreError> {
    check(older_than, batch)?;
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

/// Refuses what would forget all messages, or never end.
fn check(older_than: Duration, batch: usize) -> Result<(), StoreError> {
    let refused = if older_than.is_zero() {
        let remedy = "set how long messages may come again, such as 30 days";
        ConfigError::new("older_than", "is zero, so messages would be forgotten that may come again", remedy)
    } else if batch == 0 {
        ConfigError::new("batch", "is zero, so nothing would ever be deleted", "set at least 1, such as 1000")
    } else {
        return Ok(());
    };
    Err(StoreError::new(StoreErrorKind::Config, operation::PURGE_INBOX, refused.to_string()))
}

/// The same for one consumer.
async fn of_consumer<S: Admin + ?Sized>(
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
