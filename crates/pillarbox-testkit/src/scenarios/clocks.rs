use std::sync::Arc;
use std::time::Duration;

use pillarbox_core::error::BoxError;
use pillarbox_core::ownership::{NodeId, NodeMode};
use pillarbox_core::store::Store;
use pillarbox_engine::run::{Outbox, Role};
use tokio::time::{Instant, sleep, timeout};

use super::setting::{SOON, delivered_once, drained, first_delivered, settled, stuck_until_told, until, write};
use crate::events::{HOUR, event, keyed};
use crate::recorder::gated;
use crate::run::{Db, Outcome};
use crate::{Fault, FaultyStore, Harness, Operation, Recorder};

/// Long enough for a machine that is busy with other tests.
const LEASE: Duration = Duration::from_secs(1);
const HOUR_BACK: i64 = 3600;

/// The same, with time enough between the moment at which a node stops and the one at which others may take over.
const LONGER_LEASE: Duration = Duration::from_secs(3);
/// Longer than any lease here.
const FORWARD: Duration = Duration::from_secs(4);

async fn start(
    mode: NodeMode,
    lease: Duration,
    store: Arc<dyn Store>,
    recorder: &Recorder,
) -> Result<Outbox, BoxError> {
    let often = (Duration::from_millis(20), Duration::from_millis(20));
    let outbox = Outbox::builder(mode).store(store).poll_interval(often.0, often.1).lease(lease);
    Ok(outbox.handle_all(recorder.clone()).start().await?)
}

/// Starts a node through a database that can be cut off, and has it handle an event until it is told to stop.
async fn start_stuck<H: Harness>(
    db: &Db<H>,
    mode: NodeMode,
    lease: Duration,
) -> Result<(FaultyStore<Arc<dyn Store>>, Outbox, Recorder), BoxError> {
    let (cut_off, stuck) = (FaultyStore::new(db.store()), stuck_until_told());
    let node = start(mode, lease, Arc::new(cut_off.clone()), &stuck).await?;
    db.write(vec![keyed("a")?]).await?;
    stuck.wait_for_calls(1).await;
    Ok((cut_off, node, stuck))
}

/// Waits until `recorder` has the event that `stuck` had, which ended before, and stops the nodes. Returns the time of the takeover.
async fn handed_over<H: Harness>(
    db: &Db<H>,
    nodes: [Outbox; 2],
    stuck: &Recorder,
    recorder: &Recorder,
) -> Result<Instant, BoxError> {
    let taken_over = timeout(Duration::from_secs(30), recorder.wait_for_calls(1)).await;
    assert!(taken_over.is_ok(), "nobody takes over");
    settled(&*db.store()).await?;
    let told = stuck.calls()[0].ended.map(|(at, _)| at).ok_or("it has ended")?;
    let began = recorder.calls()[0].began;
    assert!(told < began, "the first node stops before the second one begins");
    for node in nodes {
        node.shutdown().await;
    }
    assert_eq!((stuck.calls().len(), recorder.calls().len()), (1, 1));
    Ok(began)
}

/// A node is cut off, and the clock is set back so that its lease seems to run for another hour. Others see that it is not renewed.
pub(super) async fn is_taken_over<H: Harness>(db: &Db<H>, mode: NodeMode) -> Outcome {
    let (cut_off, first, stuck) = start_stuck(db, mode, LEASE).await?;
    cut_off.set_all(Fault::Unreachable);
    db.set_clock_back(HOUR_BACK).await?;
    let recorder = Recorder::new();
    let second = start(mode, LEASE, db.connect().await?, &recorder).await?;
    handed_over(db, [first, second], &stuck, &recorder).await?;
    Ok(())
}

/// An owner that renews keeps everything, for several leases after the clock was set back.
pub(super) async fn a_living_owner_is_not_evicted_when_the_clock_is_set_back<H: Harness>(db: &Db<H>) -> Outcome {
    let counted = FaultyStore::new(db.store());
    let recorder = Recorder::new();
    // No poll of the table comes between the renewals: one that meets the first of them finds a lease that ends sooner than before.
    let unpolled = |store: Arc<dyn Store>| Outbox::single_node(store).poll_interval(HOUR, HOUR).lease(LEASE);
    let first = unpolled(Arc::new(counted.clone())).handle_all(recorder.clone()).start().await?;
    let second = unpolled(db.connect().await?).handle_all(recorder.clone()).start().await?;
    // The look with which a node begins is over when it has found something.
    let mut written = vec![first_delivered(db, &first, &recorder).await?];
    let (owner, standby) = (first.role(), second.role());
    assert!(matches!((&owner, &standby), (Role::Active { .. }, Role::Standby { .. })), "{owner:?} and {standby:?}");
    let before = counted.calls(Operation::Renew);
    db.set_clock_back(HOUR_BACK).await?;
    // Three to a lease.
    until(async || Ok(counted.calls(Operation::Renew) >= before + 7)).await?;
    assert_eq!((first.role(), second.role()), (owner, standby));
    written.push(event()?);
    let receipt = write(db, &first, &written[1..]).await?;
    first.notify_committed(receipt);
    recorder.wait_for_calls(2).await;
    second.shutdown().await;
    delivered_once(db, &first, &recorder, &written).await
}

/// Two nodes deliver or stand by while the clock is set forward, with handlers running. Nobody takes anything over, and each event is
/// delivered once.
pub(super) async fn nobody_takes_over<H: Harness>(db: &Db<H>, mode: NodeMode) -> Outcome {
    let counted = FaultyStore::new(db.store());
    let (recorder, gate) = gated();
    let first = start(mode, LONGER_LEASE, Arc::new(counted.clone()), &recorder).await?;
    let other = db.connect().await?;
    let second = start(mode, LONGER_LEASE, Arc::clone(&other), &recorder).await?;
    let written: Vec<_> = (0..40).map(|key| keyed(&key.to_string())).collect::<Result<_, _>>()?;
    db.write(written.clone()).await?;
    recorder.wait_for_calls(8).await;
    // Both look at the nodes several times in a lease.
    sleep(LONGER_LEASE / 2).await;
    let roles = (first.role(), second.role());
    let before = counted.calls(Operation::Renew);
    db.set_clock_forward(FORWARD).await?;
    // Before any of them can have renewed.
    other.reclaim(&NodeId::from_stored("looks-1"), false).await?;
    until(async || Ok(counted.calls(Operation::Renew) >= before + 4)).await?;
    assert_eq!((first.role(), second.role()), roles, "nobody lost its lease");
    gate.close();
    drained(db, &second).await?;
    delivered_once(db, &first, &recorder, &written).await
}

/// A node is cut off, and the clock is set forward. Others take over when the lease would have ended, and not before the node has
/// stopped by its own clock.
pub(super) async fn is_taken_over_in_time<H: Harness>(db: &Db<H>, mode: NodeMode) -> Outcome {
    let (cut_off, first, stuck) = start_stuck(db, mode, LONGER_LEASE).await?;
    let recorder = Recorder::new();
    let second = start(mode, LONGER_LEASE, db.connect().await?, &recorder).await?;
    sleep(LONGER_LEASE / 2).await;
    cut_off.set_all(Fault::Unreachable);
    let cut = Instant::now();
    db.set_clock_forward(FORWARD).await?;
    let began = handed_over(db, [first, second], &stuck, &recorder).await?;
    assert!(began - cut < LONGER_LEASE * 4 / 3 + SOON, "it took {:?}", began - cut);
    Ok(())
}
