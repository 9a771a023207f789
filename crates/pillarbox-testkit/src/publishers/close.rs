use super::PublisherHarness;
use super::messages::{LONG, assert_once, assert_unavailable, confirmed, message, messages};
use crate::run::Outcome;

/// Closed twice, and closed without ever having been connected; what is published then is unavailable.
pub(super) async fn close_twice_is_fine<H: PublisherHarness>(broker: &H) -> Outcome {
    let link = broker.link().await?;
    let target = broker.target(&link).await?;
    let (used, unused) = (broker.publisher(&link, LONG)?, broker.publisher(&link, LONG)?);
    let before = messages(&target, 3);
    confirmed(&*used, before.clone()).await?;
    for publisher in [&used, &unused] {
        publisher.close().await;
        publisher.close().await;
        assert_unavailable(&publisher.publish(vec![message(&target)]).await);
    }
    assert_once(&broker.arrived(&target, before.len()).await?, &before);
    Ok(())
}
