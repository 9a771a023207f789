use std::time::Duration;

use pillarbox_core::error::BoxError;
use pillarbox_core::handle::Delivery;
use pillarbox_core::ownership::NodeMode;
use pillarbox_core::retry::FixedBackoff;
use pillarbox_core::store::Admin as _;
use pillarbox_engine::run::{Config, Outbox, OutboxBuilder, Role, TypePause};
use tokio::time::Instant;

use super::setting::SOON;
use crate::events::{HOUR, delayed, event, events, holders, keyed, keyed_each, rows};
use crate::recorder::gated;
use crate::run::{Db, Outcome};
use crate::{Harness, Recorder};

/// A deadline that no test comes to.
const AMPLE: Duration = Duration::from_secs(100);
/// A deadline that a test waits for.
const SHORT: Duration = Duration::from_millis(400);

/// An outbox of a process that starts, delivers and ends; it polls the table at its start and as drains do.
fn node<H: Harness>(db: &Db<H>, mode: NodeMode, recorder: &Recorder) -> OutboxBuilder {
    let often = (Duration::from_millis(1), Duration::from_millis(20));
    let builder = Outbox::builder(mode).store(db.store()).config(Config::default());
    builder.poll_interval(often.0, often.1).handle_all(recorder.clone())
}

/// Asserts that a node that has stopped holds nothing: no lease, no partition, no row.
async fn holds_nothing<H: Harness>(db: &Db<H>, outbox: &Outbox) -> Outcome {
    assert_eq!(outbox.role(), Role::Stopped);
    let nodes = db.store().nodes().await?;
    assert!(nodes.is_empty(), "still registered: {nodes:?}");
    assert_eq!(db.store().partitions().await?.unowned, 256, "unowned partitions");
    Ok(())
}

/// It returns long before the deadline, after every event was delivered by one call.
pub(super) async fn ends_when_nothing_due_is_left<H: Harness>(db: &Db<H>, mode: NodeMode) -> Outcome {
    let recorder = Recorder::new();
    let all = events(50)?;
    db.write(all.clone()).await?;
    let outbox = node(db, mode, &recorder).start().await?;
    let began = Instant::now();
    let left = outbox.drain(AMPLE).await?;
    assert!(began.elapsed() < AMPLE / 2, "it took {:?}", began.elapsed());
    assert!(left.is_complete(), "{left}");
    assert_eq!((left.due, left.blocked, left.delayed, left.dead, left.other_nodes), (0, 0, 0, 0, 0));
    assert_eq!((recorder.calls().len(), db.store().counts().await?.done), (50, 50));
    db.observed(&all, recorder.calls()).await?.check()?;
    holds_nothing(db, &outbox).await
}

/// Events that are due later, or failed and wait for another attempt, are counted and left. In the order of the table a failed event is
/// tried again in its place, so that it stays due.
pub(super) async fn leaves_delayed_rows<H: Harness>(db: &Db<H>, mode: NodeMode) -> Outcome {
    let recorder = Recorder::around(async |delivery: Delivery| {
        let fails = delivery.key() == Some("failing");
        if fails { Err("it fails") } else { Ok(()) }
    });
    let mut events = vec![delayed()?, event()?, delayed()?];
    let fails = usize::from(mode != NodeMode::Ordered);
    events.extend(keyed_each(&["failing"][..fails])?);
    db.write(events).await?;
    let outbox = node(db, mode, &recorder).retry_policy(FixedBackoff::new(HOUR)?).start().await?;
    let left = outbox.drain(AMPLE).await?;
    assert!(left.is_complete(), "{left}");
    assert_eq!((left.blocked, left.delayed, left.dead), (0, 2 + fails as u64, 0), "{left}");
    assert_eq!(recorder.calls().len(), 1 + fails);
    holds_nothing(db, &outbox).await
}

/// A handler that never ends is dropped; its event, and those behind it, are free for the next node.
pub(super) async fn ends_at_the_deadline_and_counts_the_rest<H: Harness>(db: &Db<H>, mode: NodeMode) -> Outcome {
    let (recorder, _gate) = gated();
    let mut all = events(3)?;
    all.push(delayed()?);
    db.write(all.clone()).await?;
    let outbox = node(db, mode, &recorder).start().await?;
    recorder.wait_for_calls(1).await;
    let began = Instant::now();
    let left = outbox.drain(SHORT).await?;
    assert!(began.elapsed() < SHORT + SOON, "it took {:?}", began.elapsed());
    assert!(!left.is_complete(), "{left}");
    assert_eq!((left.due, left.blocked, left.delayed, left.dead, left.other_nodes), (3, 0, 1, 0, 0));
    assert_eq!(holders(db, &all).await?, [const { None::<String> }; 4], "holders");
    assert!(rows(db, &all).await?.iter().all(|row| row.attempts == 0), "a drain counts no attempt");
    holds_nothing(db, &outbox).await
}

/// The next node delivers what was left at once, though the lease of the drained one would go on for an hour.
pub(super) async fn leaves_no_lease<H: Harness>(db: &Db<H>, mode: NodeMode) -> Outcome {
    let ((stuck, _gate), recorder) = (gated(), Recorder::new());
    db.write(events(3)?).await?;
    let outbox = node(db, mode, &stuck).lease(HOUR).start().await?;
    stuck.wait_for_calls(1).await;
    let left = outbox.drain(SHORT).await?;
    assert_eq!(left.due, 3, "{left}");
    holds_nothing(db, &outbox).await?;
    let next = node(db, mode, &recorder).start().await?;
    let left = next.drain(AMPLE).await?;
    assert!(left.is_complete(), "{left}");
    assert_eq!((recorder.calls().len(), db.store().counts().await?.done), (3, 3));
    holds_nothing(db, &next).await
}

/// Writers that write faster than the handler delivers do not keep it alive.
pub(super) async fn ends_at_the_deadline_under_a_stream<H: Harness>(db: &Db<H>, mode: NodeMode) -> Outcome {
    let (recorder, gate) = gated();
    db.write(events(2)?).await?;
    let outbox = node(db, mode, &recorder).start().await?;
    // However slow the database is, one is delivered.
    gate.add_permits(1);
    recorder.wait_for_ends(1).await;
    let stream = async {
        for delivered in 2.. {
            // Written before the one under way may end, so that there is always something due.
            db.write(vec![event()?]).await?;
            gate.add_permits(1);
            recorder.wait_for_ends(delivered).await;
        }
        Ok::<(), BoxError>(())
    };
    let began = Instant::now();
    let left = tokio::select! {
        left = outbox.drain(SHORT) => left?,
        ended = stream => return Err(format!("the stream ended first: {ended:?}").into()),
    };
    assert!(began.elapsed() < SHORT + SOON, "it took {:?}", began.elapsed());
    assert!(!left.is_complete() && db.store().counts().await?.done > 0, "{left}");
    holds_nothing(db, &outbox).await
}

/// Events that wait behind a failing one of their key are as little due as that one.
pub(super) async fn drain_does_not_wait_behind_a_failing_event<H: Harness>(db: &Db<H>) -> Outcome {
    let recorder = Recorder::around(async |delivery: Delivery| {
        let fails = delivery.key() == Some("failing");
        if fails { Err("it fails") } else { Ok(()) }
    });
    let keys = ["failing", "failing", "well", "failing"];
    db.write(keys.iter().map(|key| keyed(key)).collect::<Result<_, _>>()?).await?;
    let outbox = node(db, NodeMode::Partitioned, &recorder).retry_policy(FixedBackoff::new(HOUR)?).start().await?;
    let left = outbox.drain(AMPLE).await?;
    assert!(left.is_complete(), "{left}");
    assert_eq!((left.blocked, left.delayed, left.dead, recorder.calls().len()), (2, 1, 0, 2), "{left}");
    holds_nothing(db, &outbox).await
}

/// An event that no handler takes is put off, and is not due then.
pub(super) async fn drain_leaves_what_no_handler_takes<H: Harness>(db: &Db<H>) -> Outcome {
    let recorder = Recorder::new();
    db.write(vec![event()?, keyed("unknown")?]).await?;
    let builder = Outbox::single_node(db.store()).handle_type("test.event", recorder.clone());
    let outbox = builder.start().await?;
    let left = outbox.drain(AMPLE).await?;
    assert!(left.is_complete(), "{left}");
    assert_eq!((left.delayed, left.dead, recorder.calls().len()), (1, 0, 1), "{left}");
    holds_nothing(db, &outbox).await
}

/// Events whose type is paused here are due, though this node reads none of them.
pub(super) async fn drain_counts_the_events_of_a_paused_type<H: Harness>(db: &Db<H>) -> Outcome {
    let (recorder, pause) = (Recorder::new(), TypePause::new());
    pause.pause("test.event", Instant::now() + HOUR);
    db.write(vec![event()?, keyed("another type")?]).await?;
    let outbox = node(db, NodeMode::SingleNode, &recorder).type_pause(pause).start().await?;
    recorder.wait_for_ends(1).await;
    let left = outbox.drain(SHORT).await?;
    assert_eq!((left.due, recorder.calls().len()), (1, 1), "{left}");
    holds_nothing(db, &outbox).await
}

/// A node whose memory is empty waits for what another one delivers, and says at the deadline that there is another.
pub(super) async fn waits_for_what_another_node_delivers<H: Harness>(db: &Db<H>, mode: NodeMode) -> Outcome {
    let ((busy, gate), idle) = (gated(), Recorder::new());
    let owner = node(db, mode, &busy).start().await?;
    db.write(vec![event()?]).await?;
    busy.wait_for_calls(1).await;
    let start = async || Ok::<_, BoxError>(node(db, mode, &idle).store(db.connect().await?).start().await?);
    let left = start().await?.drain(SHORT).await?;
    assert_eq!((left.due, left.other_nodes), (1, 1), "{left}");
    let other = start().await?;
    let (left, ()) = tokio::join!(other.drain(AMPLE), async { gate.close() });
    let left = left?;
    assert!(left.is_complete() && left.other_nodes == 1, "{left}");
    assert_eq!((busy.calls().len(), idle.calls().len()), (1, 0));
    owner.shutdown().await;
    holds_nothing(db, &other).await
}
