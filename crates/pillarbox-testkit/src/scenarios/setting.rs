use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use pillarbox_core::error::BoxError;
use pillarbox_core::event::Envelope;
use pillarbox_core::handle::Delivery;
use pillarbox_core::ownership::NodeId;
use pillarbox_core::retry::ExponentialBackoff;
use pillarbox_core::store::Store;
use pillarbox_core::write::{Finish, Written};
use pillarbox_engine::run::{Outbox, SingleNode};
use tokio::time::{Instant, sleep};

use crate::events::{HOUR, event};
use crate::run::{Db, Outcome};
use crate::{Harness, Recorder};

/// The time that a promise of some milliseconds may take on a machine that is busy with other tests. Everything else that could
/// bring the event about is an hour away.
pub(super) const SOON: Duration = Duration::from_secs(5);

/// An outbox that never polls the table unless it has a reason to.
pub(super) fn unpolled<H: Harness>(db: &Db<H>, recorder: &Recorder) -> SingleNode {
    Outbox::single_node(db.store()).poll_interval(HOUR, HOUR).handle_all(recorder.clone())
}

/// Has one event delivered, so that the outbox is known to be at work, and returns it.
pub(super) async fn first_delivered<H: Harness>(
    db: &Db<H>,
    outbox: &Outbox,
    recorder: &Recorder,
) -> Result<Envelope, BoxError> {
    let first = event()?;
    write(db, outbox, std::slice::from_ref(&first)).await?;
    recorder.wait_for_calls(1).await;
    settled(&*db.store()).await?;
    Ok(first)
}

/// An outbox that polls the table all the time, and retries at once.
pub(super) fn eager(store: Arc<dyn Store>, recorder: &Recorder) -> Result<SingleNode, BoxError> {
    let backoff = ExponentialBackoff::new(Duration::from_millis(1), Duration::from_millis(10))?;
    let polling = Outbox::single_node(store).poll_interval(Duration::from_millis(1), Duration::from_millis(20));
    Ok(polling.retry_policy(backoff).handle_all(recorder.clone()))
}

/// A handler that fails when it is told to stop, and does not end before.
pub(super) fn stuck_until_told() -> Recorder {
    Recorder::around(async |delivery: Delivery| -> Result<(), &str> {
        delivery.stop_requested().await;
        Err("told to stop")
    })
}

/// Writes events in a transaction of the user's own and commits it; nobody tells the outbox.
pub(super) async fn write<H: Harness>(db: &Db<H>, outbox: &Outbox, events: &[Envelope]) -> Result<Written, BoxError> {
    let mut transaction = db.begin().await?;
    let written = outbox.write_all(&mut transaction, events.iter().cloned()).await?;
    transaction.commit().await?;
    Ok(written)
}

/// Writes events in a transaction of the outbox, which reports its commit.
pub(super) async fn write_guarded<H: Harness>(db: &Db<H>, outbox: &Outbox, events: &[Envelope]) -> Outcome {
    let mut transaction = outbox.begin(db.source()).await?;
    outbox.write_all(&mut transaction, events.iter().cloned()).await?;
    transaction.commit().await?;
    Ok(())
}

/// Waits until something is so of which nobody tells, so that it has to be asked.
pub(super) async fn until(is_so: impl AsyncFn() -> Result<bool, BoxError>) -> Outcome {
    while !is_so().await? {
        sleep(Duration::from_millis(2)).await;
    }
    Ok(())
}

/// Waits until no row is pending any more.
pub(super) async fn settled(store: &dyn Store) -> Outcome {
    until(async || Ok(store.counts().await?.pending() == 0)).await
}

/// Waits until no row is pending any more, and shuts down.
pub(super) async fn drained<H: Harness>(db: &Db<H>, outbox: &Outbox) -> Outcome {
    settled(&*db.store()).await?;
    outbox.shutdown().await;
    Ok(())
}

/// Writes events as [`write`] does, waits until no row is pending any more, and shuts down.
pub(super) async fn deliver<H: Harness>(db: &Db<H>, outbox: &Outbox, events: &[Envelope]) -> Outcome {
    write(db, outbox, events).await?;
    drained(db, outbox).await
}

/// Waits until nothing is pending, shuts down, and asserts that each event was delivered by exactly one call and that
/// every invariant holds.
pub(super) async fn delivered_once<H: Harness>(
    db: &Db<H>,
    outbox: &Outbox,
    recorder: &Recorder,
    events: &[Envelope],
) -> Outcome {
    drained(db, outbox).await?;
    let observed = db.observed(events, recorder.calls()).await?;
    observed.check()?;
    for event in events {
        let calls = recorder.calls_of(event.id()).len();
        let status = observed.rows.get(event.id()).map(|row| row.status);
        assert_eq!((calls, status), (1, Some(1)), "calls and status of event {}", event.id());
    }
    Ok(())
}

/// The nodes that have called the handler.
pub(super) fn nodes_of(recorder: &Recorder) -> BTreeSet<NodeId> {
    recorder.calls().into_iter().map(|call| call.node).collect()
}

/// Asserts that `since` was just now.
pub(super) fn assert_soon(since: Instant) {
    assert!(since.elapsed() < SOON, "it took {:?}", since.elapsed());
}
