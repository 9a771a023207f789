use std::collections::HashSet;

use futures_util::future::try_join_all;
use pillarbox_core::error::BoxError;
use pillarbox_core::row::Position;

use super::PublisherHarness;
use super::messages::{LONG, assert_once, confirmed, message, messages};
use crate::run::Outcome;

/// No message, one, and hundreds for two targets: each arrives where it was sent, once.
pub(super) async fn publish_confirms_each_message<H: PublisherHarness>(broker: &H) -> Outcome {
    let link = broker.link().await?;
    let publisher = broker.publisher(&link, LONG)?;
    let (first, second) = (broker.target(&link).await?, broker.target(&link).await?);
    assert!(publisher.publish(Vec::new()).await.is_empty());
    let (ours, theirs) = (messages(&first, 300), messages(&second, 299));
    confirmed(&*publisher, ours[..1].to_vec()).await?;
    let mixed = ours[1..].iter().zip(&theirs).flat_map(|(one, other)| [one.clone(), other.clone()]).collect();
    confirmed(&*publisher, mixed).await?;
    assert_once(&broker.arrived(&first, ours.len()).await?, &ours);
    assert_once(&broker.arrived(&second, theirs.len()).await?, &theirs);
    Ok(())
}

/// Each message of a call has a position of its own, in a form that a row can keep.
pub(super) async fn publish_tells_each_message_its_position<H: PublisherHarness>(broker: &H) -> Outcome {
    let link = broker.link().await?;
    let publisher = broker.publisher(&link, LONG)?;
    let (first, second) = (broker.target(&link).await?, broker.target(&link).await?);
    let mut positions = HashSet::new();
    for mixed in [messages(&first, 30), [messages(&first, 15), messages(&second, 15)].concat()] {
        for receipt in publisher.publish(mixed).await {
            let position = receipt?.ok_or("the receipt tells no position")?;
            assert_eq!(Position::new(&*position)?.as_str(), position);
            assert!(positions.insert(position.clone()), "{position} was told before");
        }
    }
    assert_eq!(positions.len(), 60);
    Ok(())
}

/// A relay that was killed publishes again what it had published: that is confirmed, and arrives again unless the broker
/// knows better.
pub(super) async fn publish_the_same_message_again_is_confirmed_again<H: PublisherHarness>(broker: &H) -> Outcome {
    let link = broker.link().await?;
    let publisher = broker.publisher(&link, LONG)?;
    let target = broker.target(&link).await?;
    let (twice, last) = (message(&target), message(&target));
    confirmed(&*publisher, vec![twice.clone()]).await?;
    confirmed(&*publisher, vec![twice.clone()]).await?;
    confirmed(&*publisher, vec![last.clone()]).await?;
    let copies = if H::CAPABILITIES.deduplicates { 1 } else { 2 };
    let arrived = broker.arrived(&target, copies + 1).await?;
    let count = |body: &[u8]| arrived.iter().filter(|message| message.body == body).count();
    assert_eq!((count(&twice.body), count(&last.body), arrived.len()), (copies, 1, copies + 1));
    Ok(())
}

/// Sixteen calls at a time, on one publisher: nobody gets another's receipt, and nothing is sent twice.
pub(super) async fn publish_concurrently_confirms_each_message<H: PublisherHarness>(broker: &H) -> Outcome {
    let link = broker.link().await?;
    let publisher = broker.publisher(&link, LONG)?;
    let target = broker.target(&link).await?;
    let all = messages(&target, 16 * 5 * 20);
    let callers = all.chunks(5 * 20).map(|own| async {
        for batch in own.chunks(20) {
            confirmed(&*publisher, batch.to_vec()).await?;
        }
        Ok::<_, BoxError>(())
    });
    try_join_all(callers).await?;
    assert_once(&broker.arrived(&target, all.len()).await?, &all);
    Ok(())
}
