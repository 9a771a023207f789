use std::time::Duration;

use futures_util::future::try_join_all;
use pillarbox_core::error::BoxError;
use pillarbox_core::publisher::{Message, Publisher};
use tokio::time::{Instant, sleep};

use super::messages::{LONG, all_arrived, assert_unavailable, confirmed, confirmed_at_last, message, messages};
use super::{Link, PublisherHarness};
use crate::run::Outcome;

/// The limit of a publisher whose broker is not expected to answer.
const LIMIT: Duration = Duration::from_secs(4);
/// Longer than clients that connect again by themselves pause between two attempts.
const GRACE: Duration = Duration::from_secs(6);

/// Cut while nothing is under way, and while much is: what was not confirmed is unavailable, and publishing it again succeeds.
pub(super) async fn publish_goes_on_after_the_connection_was_cut<H: PublisherHarness>(broker: &H) -> Outcome {
    let link = broker.link().await?;
    let publisher = broker.publisher(&link, LIMIT)?;
    let target = broker.target(&link).await?;
    let mut all = messages(&target, 20);
    confirmed_at_last(&*publisher, all.clone()).await?;
    for _ in 0..3 {
        link.cut();
        let batch = messages(&target, 20);
        confirmed_at_last(&*publisher, batch.clone()).await?;
        all.extend(batch);
    }
    let busy = messages(&target, 4 * 500);
    let (publisher, link) = (&publisher, &link);
    let callers = busy.chunks(500).enumerate().map(|(caller, own)| async move {
        for (number, batch) in own.chunks(25).enumerate() {
            // Each caller cuts while the others have messages under way.
            if number % 4 == caller {
                link.cut();
            }
            confirmed_at_last(&**publisher, batch.to_vec()).await?;
        }
        Ok::<_, BoxError>(())
    });
    try_join_all(callers).await?;
    all.extend(busy);
    all_arrived(broker, &target, &all).await?;
    Ok(())
}

/// For a publisher that was connected and for one that never was. What was refused so is not sent later behind the
/// caller's back: by then the caller has published it again.
pub(super) async fn publish_while_the_broker_is_away_is_unavailable<H: PublisherHarness>(broker: &H) -> Outcome {
    let link = broker.link().await?;
    let (connected, fresh) = (broker.publisher(&link, LIMIT)?, broker.publisher(&link, LIMIT)?);
    let target = broker.target(&link).await?;
    let mut expected = messages(&target, 2);
    confirmed_at_last(&*connected, expected.clone()).await?;
    link.refuse().await;
    let mut refused = Vec::new();
    for publisher in [&connected, &connected, &fresh, &fresh] {
        let batch = messages(&target, 10);
        unavailable_in_time(&**publisher, batch.clone()).await;
        refused.extend(batch);
    }
    link.pass();
    for publisher in [&connected, &fresh] {
        let after = message(&target);
        confirmed_at_last(&**publisher, vec![after.clone()]).await?;
        expected.push(after);
    }
    // What was kept back is sent once its client has connected again by itself, for which clients wait some seconds between
    // attempts. Nothing tells that it will not happen, so it is given the time.
    sleep(GRACE).await;
    let last = message(&target);
    confirmed(&*connected, vec![last.clone()]).await?;
    expected.push(last);
    all_arrived(broker, &target, &expected).await?;
    let arrived = broker.arrived(&target, expected.len()).await?;
    let late = refused.iter().filter(|message| arrived.iter().any(|one| one.body == message.body)).count();
    assert_eq!(late, 0, "messages that were refused while the broker was away were sent later");
    Ok(())
}

/// A broker that hangs answers neither messages nor a greeting, and nothing of TCP tells of it. More is published than the
/// buffers on the way can hold.
pub(super) async fn publish_waits_for_a_silent_broker_no_longer_than_its_limit<H: PublisherHarness>(
    broker: &H,
) -> Outcome {
    let link = broker.link().await?;
    let (connected, fresh) = (broker.publisher(&link, LIMIT)?, broker.publisher(&link, LIMIT)?);
    let target = broker.target(&link).await?;
    confirmed_at_last(&*connected, messages(&target, 2)).await?;
    link.stall();
    for publisher in [&connected, &fresh] {
        unavailable_in_time(&**publisher, messages(&target, 10)).await;
    }
    let large = messages(&target, 100).into_iter().map(|mut message| {
        message.body = vec![b'x'; 200_000].into();
        message
    });
    unavailable_in_time(&*connected, large.collect()).await;
    link.cut();
    for publisher in [&connected, &fresh] {
        let after = messages(&target, 3);
        confirmed_at_last(&**publisher, after.clone()).await?;
        all_arrived(broker, &target, &after).await?;
    }
    let generous = broker.publisher(&link, LONG)?;
    confirmed(&*generous, messages(&target, 3)).await
}

async fn unavailable_in_time(publisher: &dyn Publisher, messages: Vec<Message>) {
    let sent = messages.len();
    let began = Instant::now();
    let receipts = publisher.publish(messages).await;
    let took = began.elapsed();
    assert_eq!(receipts.len(), sent, "there is one receipt for each message");
    assert_unavailable(&receipts);
    // Some slack for a machine that is busy with other tests; less than waiting twice would take.
    assert!(took < 2 * LIMIT, "it took {took:?} with a limit of {LIMIT:?}");
}
