use std::sync::Arc;
use std::time::Duration;

use pillarbox_core::event::Envelope;
use pillarbox_core::handle::Delivery;
use pillarbox_core::ownership::NodeMode;
use pillarbox_core::store::Store;
use pillarbox_engine::run::{Config, Outbox, Role};
use tokio::time::Instant;

use super::setting::{assert_soon, delivered_once, drained, eager, settled, stuck_until_told, until, write};
use crate::events::{columns, event, events};
use crate::invariants;
use crate::nodes;
use crate::recorder::gated;
use crate::run::{Db, Outcome};
use crate::{Fault, FaultyStore, Harness, Operation, Recorder};

fn active(role: &Role) -> bool {
    matches!(role, Role::Active { .. })
}

/// A clean stop hands over long before the lease would have ended.
pub(super) async fn a_standby_takes_over_when_the_owner_leaves<H: Harness>(db: &Db<H>) -> Outcome {
    let recorder = Recorder::new();
    let first = eager(db.store(), &recorder)?.start().await?;
    let second = eager(db.connect().await?, &recorder)?.start().await?;
    assert!(active(&first.role()) && matches!(second.role(), Role::Standby { .. }), "{:?}", second.role());

    let mut all = events(2)?;
    write(db, &second, &all[..1]).await?;
    write(db, &first, &all[1..]).await?;
    recorder.wait_for_calls(2).await;
    let (Role::Active { node: one }, Role::Standby { owner }) = (first.role(), second.role()) else {
        return Err("the roles have changed".into());
    };
    assert_eq!(owner, one, "the stand-by knows who delivers");
    assert!(recorder.calls().iter().all(|call| call.node == one), "the stand-by delivers nothing");

    first.shutdown().await;
    let left = Instant::now();
    assert!(second.wait_for_role(active).await);
    assert_soon(left);
    all.push(event()?);
    // The first one can still write; what it writes is delivered by the second.
    write(db, &first, &all[2..]).await?;
    recorder.wait_for_calls(3).await;
    assert_ne!(recorder.calls()[2].node, one);
    delivered_once(db, &second, &recorder, &all).await
}

/// A node that can no longer renew stops by itself and tells its handler; another takes over when the lease has ended,
/// and what the first one then wants to record changes nothing.
pub(super) async fn a_node_is_cut_off<H: Harness>(db: &Db<H>, mode: NodeMode) -> Outcome {
    let cut_off = FaultyStore::new(db.store());
    let (slow, recorder) = (stuck_until_told(), Recorder::new());
    let mut config = Config::default();
    if mode == NodeMode::SingleNode {
        config.ownership.standby_interval = Duration::from_millis(20);
    }
    let often = (Duration::from_millis(1), Duration::from_millis(20));
    let node = |store: Arc<dyn Store>, recorder: &Recorder| {
        let outbox = Outbox::builder(mode).store(store).config(config.clone());
        outbox.poll_interval(often.0, often.1).handle_all(recorder.clone())
    };
    let first = node(Arc::new(cut_off.clone()), &slow).lease(Duration::from_millis(600)).start().await?;
    let written = event()?;
    db.write(vec![written.clone()]).await?;
    slow.wait_for_calls(1).await;
    let other = db.connect().await?;
    let second = node(Arc::clone(&other), &recorder).start().await?;
    assert_eq!(active(&second.role()), mode == NodeMode::MultiNode, "{:?}", second.role());
    // Settling goes on to reach the database, as it may when a process was merely paused: the fence has to hold.
    for operation in [Operation::Renew, Operation::Join, Operation::Leave, Operation::Fetch, Operation::Acquire] {
        cut_off.set(operation, Fault::Unreachable);
    }
    slow.wait_for_ends(1).await;
    recorder.wait_for_ends(1).await;
    let told = slow.calls()[0].ended.map(|(at, _)| at).ok_or("it has ended")?;
    assert!(told < recorder.calls()[0].began, "the first node stops before the second one begins");

    settled(&*other).await?;
    let before = db.observed(std::slice::from_ref(&written), Vec::new()).await?;
    first.shutdown().await;
    let after = db.observed(std::slice::from_ref(&written), Vec::new()).await?;
    invariants::i6_a_settle_by_a_non_owner_changes_nothing(&before, &after)?;
    let row = after.rows.get(written.id()).ok_or("the row is gone")?;
    assert_eq!((row.status, row.attempts, row.last_error.as_deref()), (1, 0, None), "the second node's verdict stands");
    assert_eq!((slow.calls().len(), recorder.calls().len()), (1, 1));
    second.shutdown().await;
    Ok(())
}

/// Once it can reach the database again it joins under a new id and delivers. Errors that come without any waiting must
/// not keep it from noticing that its lease has ended.
pub(super) async fn a_node_that_was_cut_off_comes_back_as_another<H: Harness>(db: &Db<H>) -> Outcome {
    let store = FaultyStore::new(db.store());
    let recorder = Recorder::new();
    let outbox = eager(Arc::new(store.clone()), &recorder)?.lease(Duration::from_millis(400)).start().await?;
    let Role::Active { node: before } = outbox.role() else { return Err("it should deliver".into()) };
    store.set_all(Fault::Refused);
    assert!(outbox.wait_for_role(|role| *role == Role::Joining).await);
    let missed = events(3)?;
    db.write(missed.clone()).await?;
    store.set_all(Fault::None);
    assert!(outbox.wait_for_role(active).await);
    let Role::Active { node: after } = outbox.role() else { return Err("it should deliver again".into()) };
    assert_ne!(before, after);
    recorder.wait_for_calls(3).await;
    // On a busy machine so short a lease may be lost once more.
    assert!(recorder.calls().iter().all(|call| call.node != before));
    delivered_once(db, &outbox, &recorder, &missed).await
}

/// Written here while another node delivers, reported as committed when this one does: the other has delivered it.
pub(super) async fn a_receipt_from_before_another_owner_is_not_delivered_again<H: Harness>(db: &Db<H>) -> Outcome {
    let recorder = Recorder::new();
    let first = eager(db.store(), &recorder)?.start().await?;
    let second = eager(db.connect().await?, &recorder)?.start().await?;
    let all = events(3)?;
    let written = write(db, &second, &all[..1]).await?;
    recorder.wait_for_calls(1).await;
    first.shutdown().await;
    // One event more, and the second node is known to be at work.
    write(db, &second, &all[1..2]).await?;
    recorder.wait_for_calls(2).await;
    second.notify_committed(written);
    // What is reported next is queued behind it.
    let next = write(db, &second, &all[2..]).await?;
    second.notify_committed(next);
    recorder.wait_for_calls(3).await;
    delivered_once(db, &second, &recorder, &all).await
}

/// Everything queued is handled and recorded before it returns, the table is free at once, and again is a no-op.
pub(super) async fn shutdown_finishes_what_is_queued_and_frees_the_table<H: Harness>(db: &Db<H>) -> Outcome {
    let (recorder, gate) = gated();
    let outbox = eager(db.store(), &recorder)?.workers(2).start().await?;
    let queued = events(50)?;
    outbox.notify_committed(write(db, &outbox, &queued).await?);
    recorder.wait_for_calls(2).await;
    until(async || Ok(outbox.stats().in_memory >= queued.len())).await?;
    let (shutdown, again) = (outbox.shutdown(), outbox.shutdown());
    let open = async {
        // It is under way when the handlers begin to end.
        tokio::task::yield_now().await;
        gate.close();
    };
    futures_util::future::join3(shutdown, again, open).await;
    assert_eq!(outbox.role(), Role::Stopped);
    let counts = db.store().counts().await?;
    assert_eq!((counts.done, counts.pending()), (50, 0), "it returns when everything is recorded");
    nodes::owner(&*db.store()).await?;
    outbox.shutdown().await;
    delivered_once(db, &outbox, &recorder, &queued).await
}

/// A handler that never ends cannot hold it up: past the drain timeout its event is left, uncounted, to the next owner.
pub(super) async fn shutdown_leaves_what_does_not_end_to_the_next_owner<H: Harness>(db: &Db<H>) -> Outcome {
    let stuck = Recorder::around(async |delivery: Delivery| {
        if delivery.event_type() == "test.stuck" {
            std::future::pending::<()>().await;
        }
    });
    let drain = Duration::from_millis(200);
    let outbox = eager(db.store(), &stuck)?.workers(2).drain_timeout(drain).start().await?;
    let all = [Envelope::json("test.stuck", "{}")?, event()?];
    write(db, &outbox, &all).await?;
    stuck.wait_for_calls(2).await;
    let began = Instant::now();
    outbox.shutdown().await;
    assert!(began.elapsed() >= drain, "{:?}", began.elapsed());
    assert_soon(began);
    let row = columns(db, &all[0]).await?;
    assert_eq!((row.status, row.attempts), (0, 0));

    let before = db.observed(&all, stuck.calls()).await?;
    let recorder = Recorder::new();
    let next = eager(db.store(), &recorder)?.start().await?;
    assert!(active(&next.role()), "the table is free");
    drained(db, &next).await?;
    let ids: Vec<_> = recorder.calls().iter().map(|call| call.id.clone()).collect();
    assert_eq!(ids, [all[0].id().clone()], "only the one that was not done");
    let both = [stuck.calls(), recorder.calls()].concat();
    let after = db.observed(&all, both).await?;
    invariants::i4_terminal_rows_do_not_move(&before, &after)?;
    after.check()?;
    Ok(())
}

/// A start for which the lock of the nodes is held waits until it is free. One that has joined by then is there already, and gets
/// its turn later.
pub(super) async fn a_start_waits_for_the_lock_of_the_nodes<H: Harness>(db: &Db<H>) -> Outcome {
    let store = FaultyStore::new(db.store());
    let recorder = Recorder::new();
    for operation in [Operation::Join, Operation::Acquire] {
        let met = store.faults(operation);
        store.set(operation, Fault::Locked);
        let release = async {
            store.wait_for_faults(operation, met + if operation == Operation::Join { 4 } else { 1 }).await;
            store.set(operation, Fault::None);
        };
        let started = eager(Arc::new(store.clone()), &recorder)?.start();
        let (outbox, ()) = futures_util::future::join(started, release).await;
        let outbox = outbox?;
        assert!(outbox.wait_for_role(active).await, "{operation:?}");
        outbox.shutdown().await;
    }
    Ok(())
}

/// Somebody deleted its registration: at the first refused verdict it asks, and joins anew instead of delivering the same
/// events again and again.
pub(super) async fn a_node_whose_registration_is_gone_notices_at_the_first_refusal<H: Harness>(db: &Db<H>) -> Outcome {
    let recorder = Recorder::new();
    let outbox = eager(db.store(), &recorder)?.start().await?;
    let Role::Active { node } = outbox.role() else { return Err("it should deliver".into()) };
    db.forget(&node).await?;
    let written = events(50)?;
    let began = Instant::now();
    db.write(written.clone()).await?;
    settled(&*db.store()).await?;
    assert_soon(began);
    outbox.shutdown().await;
    for event in &written {
        let calls = recorder.calls_of(event.id()).len();
        assert!((1..=2).contains(&calls), "event {} was delivered {calls} times", event.id());
    }
    Ok(())
}
