use std::time::Duration;

use tokio::time::timeout;

use super::messages::{LONG, all_arrived, confirmed_at_last, messages};
use super::{Link, PublisherHarness};
use crate::drop_after::drop_after;
use crate::run::Outcome;

/// Dropped at each of its awaits, before and after it was connected, and many times while nothing is answered: no room
/// that a dropped call has taken stays taken, and the receipts of later calls are their own.
pub(super) async fn publish_dropped_half_way_spoils_nothing<H: PublisherHarness>(broker: &H) -> Outcome {
    let link = broker.link().await?;
    let target = broker.target(&link).await?;
    let publisher = broker.publisher(&link, LONG)?;
    for waits in 0..12 {
        let fresh = broker.publisher(&link, LONG)?;
        drop(drop_after(waits, fresh.publish(messages(&target, 5))).await);
        let after = messages(&target, 5);
        confirmed_at_last(&*fresh, after.clone()).await?;
        fresh.close().await;
        drop(drop_after(waits, publisher.publish(messages(&target, 50))).await);
        confirmed_at_last(&*publisher, after).await?;
    }
    link.stall();
    for _ in 0..50 {
        let dropped = timeout(Duration::from_millis(10), publisher.publish(messages(&target, 200))).await;
        assert!(dropped.is_err(), "nobody has answered, and still: {dropped:?}");
    }
    link.pass();
    let after = messages(&target, 300);
    confirmed_at_last(&*publisher, after.clone()).await?;
    all_arrived(broker, &target, &after).await?;
    Ok(())
}
