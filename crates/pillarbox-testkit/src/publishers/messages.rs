use std::collections::HashMap;
use std::fmt::Debug;
use std::time::Duration;

use pillarbox_core::error::BoxError;
use pillarbox_core::event::Stamp;
use pillarbox_core::publisher::{Message, PublishError, Publisher, header};
use tokio::time::sleep;

use super::{Arrived, PublisherHarness};

/// A message of a few bytes to a target, with an id of its own and the header `event-id`.
#[must_use]
pub fn message(target: &str) -> Message {
    let id = Stamp::system().next_id();
    let mut message = Message::new(target, id.clone(), format!("{{\"id\": \"{id}\"}}"));
    message.headers.push((header::ID.into(), id.to_string()));
    message
}

/// So many of them.
#[must_use]
pub fn messages(target: &str, count: usize) -> Vec<Message> {
    std::iter::repeat_with(|| message(target)).take(count).collect()
}

/// The same message with a key.
pub(super) fn keyed(target: &str, key: &str) -> Message {
    let mut message = message(target);
    message.key = Some(key.into());
    message.headers.push((header::KEY.into(), key.to_owned()));
    message
}

/// For publishers that are expected to succeed: nothing takes so long, even on a machine that is busy with other tests.
pub(super) const LONG: Duration = Duration::from_secs(20);

/// The time that a publisher whose broker comes back may need until it publishes again.
const COME_BACK: Duration = Duration::from_secs(15);

/// Publishes and expects that each message is confirmed.
pub(super) async fn confirmed(publisher: &dyn Publisher, messages: Vec<Message>) -> Result<(), BoxError> {
    let sent = messages.len();
    let receipts = publisher.publish(messages).await;
    assert_eq!(receipts.len(), sent, "there is one receipt for each message");
    receipts.into_iter().try_for_each(|receipt| receipt.map(|_position| ()))?;
    Ok(())
}

/// Publishes until each message was confirmed, as the relay does: what was not confirmed is published again. Whatever fails
/// has to be unavailable.
pub(super) async fn confirmed_at_last(publisher: &dyn Publisher, messages: Vec<Message>) -> Result<(), BoxError> {
    let mut left = messages;
    let began = tokio::time::Instant::now();
    loop {
        let receipts = publisher.publish(left.clone()).await;
        assert_eq!(receipts.len(), left.len(), "there is one receipt for each message");
        let outcome = left.into_iter().zip(&receipts).filter(|(_, receipt)| receipt.is_err());
        left = outcome.map(|(message, _)| message).collect();
        assert_unavailable(receipts.iter().filter(|receipt| receipt.is_err()));
        if left.is_empty() {
            return Ok(());
        }
        if began.elapsed() > COME_BACK {
            let error = receipts.into_iter().find_map(Result::err);
            return Err(format!("it does not publish again {COME_BACK:?} after the way was free: {error:?}").into());
        }
        // The relay waits between attempts, too.
        sleep(Duration::from_millis(50)).await;
    }
}

/// Asserts that each receipt blames nobody but the broker that is not there.
pub(super) fn assert_unavailable<'a, T: Debug + 'a>(receipts: impl IntoIterator<Item = &'a Result<T, PublishError>>) {
    use pillarbox_core::publisher::PublishErrorKind::Unavailable;
    for receipt in receipts {
        assert!(matches!(receipt, Err(error) if error.kind() == Unavailable), "expected unavailable, not {receipt:?}");
    }
}

/// Asserts that each of these messages arrived exactly once, and nothing else.
pub(super) fn assert_once(arrived: &[Arrived], messages: &[Message]) {
    let counts = count(arrived);
    let wrong: Vec<_> = messages
        .iter()
        .map(|message| (message.id.as_str(), times(&counts, message)))
        .filter(|(_, n)| *n != 1)
        .collect();
    assert!(wrong.is_empty(), "arrived not once but: {wrong:?}");
    assert_eq!(arrived.len(), messages.len(), "something else has arrived");
}

/// Waits until each of these messages has arrived, beside whatever else arrives.
pub(super) async fn all_arrived<H: PublisherHarness>(
    broker: &H,
    target: &str,
    messages: &[Message],
) -> Result<(), BoxError> {
    let mut least = messages.len();
    loop {
        let arrived = broker.arrived(target, least).await?;
        let counts = count(&arrived);
        let lost: Vec<_> =
            messages.iter().filter(|message| times(&counts, message) == 0).map(|message| &message.id).collect();
        if lost.is_empty() {
            return Ok(());
        }
        // Some that were not expected came before; the harness waits for one more than those, and then no longer.
        assert!(arrived.len() >= least, "confirmed and lost: {lost:?}");
        least = arrived.len() + 1;
    }
}

/// The number of times that each body arrived: it is the one field that every broker carries.
fn count(arrived: &[Arrived]) -> HashMap<&[u8], usize> {
    let mut counts = HashMap::new();
    for message in arrived {
        *counts.entry(&*message.body).or_default() += 1;
    }
    counts
}

fn times(counts: &HashMap<&[u8], usize>, message: &Message) -> usize {
    counts.get(&*message.body).copied().unwrap_or(0)
}
