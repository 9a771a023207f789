//! Purging the inbox: settings that would forget everything, or never end, are refused.

use std::time::Duration;

use pillarbox_core::error::{BoxError, StoreErrorKind};
use pillarbox_core::inbox::{Inbox, purge};
use pillarbox_core::store::Admin as _;
use pillarbox_memory::MemoryStore;
use tokio::time::{Instant, timeout};

const DAY: Duration = Duration::from_secs(24 * 3600);
const LONG: Duration = Duration::from_secs(5);

/// An inbox that has received a message.
async fn inbox(store: &MemoryStore) -> Result<Inbox, BoxError> {
    let inbox = Inbox::new(store.clone(), "billing")?;
    let mut tx = store.begin();
    assert!(inbox.once(&mut tx, "m-1").await?.is_first());
    tx.commit();
    Ok(inbox)
}

#[tokio::test]
async fn a_purge_that_would_forget_everything_or_never_end_is_refused() -> Result<(), BoxError> {
    let store = MemoryStore::new();
    let inbox = inbox(&store).await?;
    let of_all = |older_than, batch| purge(&store, None, older_than, batch, |_| ());
    let of_one = |older_than, batch| purge(&store, Some("billing"), older_than, batch, |_| ());
    for (refused, field) in [
        (timeout(LONG, of_all(DAY, 0)).await?, "`batch` is zero"),
        (timeout(LONG, of_one(DAY, 0)).await?, "`batch` is zero"),
        (of_all(Duration::ZERO, 10).await, "`older_than` is zero"),
        (of_one(Duration::ZERO, 10).await, "`older_than` is zero"),
        (inbox.purge(Duration::ZERO).await, "`older_than` is zero"),
    ] {
        let refused = refused.err().ok_or(field)?;
        assert_eq!(refused.kind(), StoreErrorKind::Config, "{refused}");
        assert!(refused.to_string().contains(field) && refused.to_string().contains("; set "), "{refused}");
    }
    assert_eq!(store.count_inbox("billing").await?, 1, "nothing is forgotten");
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_purge_without_an_interval_asks_once_a_second() -> Result<(), BoxError> {
    let store = MemoryStore::new();
    let inbox = inbox(&store).await?;
    let began = Instant::now();
    // Its time stands still as long as something is ready to run: without a pause this would never end.
    let ended = timeout(10 * Duration::from_secs(1), inbox.purge_every(Duration::ZERO, DAY)).await;
    assert!(ended.is_err() && began.elapsed() == Duration::from_secs(10));
    Ok(())
}
