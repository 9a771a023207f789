use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::Harness;
use crate::run::{Db, Outcome};

/// Every process that listens hears a notification, the one that notifies included, whether it was waiting at that moment or looks
/// later; and hears the next one too.
pub(super) async fn a_notification_wakes_every_listener<H: Harness>(db: &Db<H>) -> Outcome {
    let stores = [db.store(), db.connect().await?, db.connect().await?];
    let mut listeners = Vec::new();
    for store in &stores {
        listeners.push(store.wake_ups().ok_or("the store declares that it can wake others")?.listen().await?);
    }
    for (round, notifying) in stores.iter().enumerate() {
        // Nobody has notified yet, or all notifications have been heard, so those who wait now do wait.
        let mut waiting = JoinSet::new();
        for mut listener in listeners.drain(1..) {
            waiting.spawn(async move { listener.notified().await.map(|()| listener) });
        }
        let early = timeout(Duration::from_millis(50), waiting.join_next()).await;
        assert!(early.is_err(), "round {round}: somebody was woken by nobody");
        notifying.wake_ups().ok_or("the store declares that it can wake others")?.notify().await?;
        // A notification that nobody hears makes the suite run out of patience here.
        for woken in waiting.join_all().await {
            listeners.push(woken?);
        }
        if let Some(first) = listeners.first_mut() {
            first.notified().await?;
        }
    }
    Ok(())
}
