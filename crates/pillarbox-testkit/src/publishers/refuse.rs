use bytes::Bytes;
use pillarbox_core::publisher::{Message, PublishErrorKind};

use super::PublisherHarness;
use super::messages::{LONG, assert_once, confirmed, message, messages};
use crate::run::Outcome;

/// Messages that can never be taken, between good ones: each has the receipt that is its own, in its place.
pub(super) async fn publish_answers_for_each_message_of_a_mixed_batch<H: PublisherHarness>(broker: &H) -> Outcome {
    let link = broker.link().await?;
    let publisher = broker.publisher(&link, LONG)?;
    let target = broker.target(&link).await?;
    let good = messages(&target, 4);
    let mut bad = vec![message(&broker.invalid_target())];
    bad.extend(broker.oversize().map(|size| {
        let mut message = message(&target);
        message.body = Bytes::from(vec![b'x'; size]);
        message
    }));
    // The bad ones last and first too, where an error of one is most easily taken for one of all.
    let batch: Vec<&Message> = bad.iter().chain(&good[..2]).chain(&bad).chain(&good[2..]).chain(&bad).collect();
    let receipts = publisher.publish(batch.iter().map(|message| (*message).clone()).collect()).await;
    assert_eq!(receipts.len(), batch.len(), "there is one receipt for each message");
    for (place, (receipt, message)) in receipts.iter().zip(&batch).enumerate() {
        let kind = receipt.as_ref().err().map(|error| error.kind());
        let expected = bad.contains(message).then_some(PublishErrorKind::Permanent);
        assert_eq!(kind, expected, "message {place}, {message:?}: {receipt:?}");
    }
    let last = message(&target);
    confirmed(&*publisher, vec![last.clone()]).await?;
    let expected: Vec<Message> = good.into_iter().chain([last]).collect();
    assert_once(&broker.arrived(&target, expected.len()).await?, &expected);
    Ok(())
}

/// It is a matter of configuration, named, and no other message suffers.
pub(super) async fn publish_to_a_missing_target_is_refused_for_that_message_alone<H: PublisherHarness>(
    broker: &H,
) -> Outcome {
    let link = broker.link().await?;
    let publisher = broker.publisher(&link, LONG)?;
    let (target, missing) = (broker.target(&link).await?, broker.missing_target(&link));
    let mut good = messages(&target, 3);
    let batch = vec![good[0].clone(), message(&missing), good[1].clone(), message(&missing), good[2].clone()];
    let receipts = publisher.publish(batch).await;
    let kinds: Vec<_> = receipts.iter().map(|receipt| receipt.as_ref().err().map(|error| error.kind())).collect();
    let refused = Some(PublishErrorKind::Misconfigured);
    assert_eq!(kinds, [None, refused, None, refused, None], "{receipts:?}");
    let text = receipts.into_iter().find_map(Result::err).map(|error| error.to_string()).unwrap_or_default();
    assert!(text.contains(&missing), "the target is not named: {text}");
    good.push(message(&target));
    confirmed(&*publisher, good[3..].to_vec()).await?;
    assert_once(&broker.arrived(&target, good.len()).await?, &good);
    Ok(())
}
