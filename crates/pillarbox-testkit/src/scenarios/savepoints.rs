//! An event is delivered if and only if it committed, whatever a caller says and whatever its transaction did meanwhile.

use pillarbox_core::error::BoxError;
use pillarbox_core::event::{Envelope, EventId};
use pillarbox_core::handle::Path;
use pillarbox_core::ownership::NodeMode;
use pillarbox_core::write::Finish;
use pillarbox_engine::run::Outbox;

use super::setting::{delivered_once, first_delivered, settled, unpolled, write};
use crate::events::{HOUR, event, events};
use crate::run::{Db, Outcome};
use crate::{Harness, Recorder, RecordingHook};

/// At every level: before, in and after savepoints that are rolled back, released, or both, one within the other. On many nodes the rows
/// are inserted as the node's own.
pub(super) async fn around_savepoints<H: Harness>(db: &Db<H>, mode: NodeMode) -> Outcome {
    let (recorder, hook) = (Recorder::new(), RecordingHook::new());
    let outbox = Outbox::builder(mode).store(db.store()).poll_interval(HOUR, HOUR).handle_all(recorder.clone());
    let outbox = outbox.writer_hook(hook.clone()).start().await?;
    let mut all = vec![first_delivered(db, &outbox, &recorder).await?];
    for _ in 0..5 {
        let Fates { kept, undone } = write_around_savepoints(db, &outbox).await?;
        all.extend(kept.iter().cloned());
        recorder.wait_for_calls(all.len()).await;
        let last =
            |seen: Vec<EventId>, of: &[Envelope]| seen[seen.len() - of.len()..].iter().eq(of.iter().map(Envelope::id));
        assert!(last(hook.committed(), &kept), "{:?}", hook.committed());
        assert!(last(hook.rolled_back(), &undone), "{:?}", hook.rolled_back());
    }
    assert!(recorder.calls().iter().any(|call| call.path == Path::Hot), "{:?}", outbox.stats());
    delivered_once(db, &outbox, &recorder, &all).await?;
    assert_eq!(recorder.calls().len(), all.len(), "and nothing else was");
    Ok(())
}

/// A commit asks for what may be gone although no hook wants to know, and what is gone does not count as left out of a full queue.
pub(super) async fn without_hooks_what_is_rolled_back_is_not_delivered<H: Harness>(db: &Db<H>) -> Outcome {
    let recorder = Recorder::new();
    let outbox = unpolled(db, &recorder).start().await?;
    let mut all = vec![first_delivered(db, &outbox, &recorder).await?];
    for _ in 0..5 {
        all.extend(write_around_savepoints(db, &outbox).await?.kept);
        recorder.wait_for_calls(all.len()).await;
    }
    delivered_once(db, &outbox, &recorder, &all).await?;
    assert_eq!(recorder.calls().len(), all.len(), "and nothing else was");
    assert_eq!(outbox.stats().hot_dropped, 0, "{:?}", outbox.stats());
    Ok(())
}

struct Fates {
    kept: Vec<Envelope>,
    undone: Vec<Envelope>,
}

/// Writes through a guard, and on the driver's connection that it dereferences to.
async fn write_around_savepoints<H: Harness>(db: &Db<H>, outbox: &Outbox) -> Result<Fates, BoxError> {
    let events = events(9)?;
    let event = |index: usize| events[index].clone();
    let mut guarded = outbox.begin(db.source()).await?;
    outbox.write(&mut guarded, event(0)).await?;
    H::savepoint(&mut guarded, "undone").await?;
    outbox.write(&mut guarded, event(1)).await?;
    outbox.write(&mut *guarded, event(2)).await?;
    H::rollback_to(&mut guarded, "undone").await?;
    // SQLite gives it the number of one that was rolled back.
    outbox.write(&mut *guarded, event(3)).await?;
    H::savepoint(&mut guarded, "released").await?;
    outbox.write(&mut guarded, event(4)).await?;
    H::release(&mut guarded, "released").await?;
    H::savepoint(&mut guarded, "first_level").await?;
    outbox.write(&mut guarded, event(5)).await?;
    H::savepoint(&mut guarded, "second_level").await?;
    outbox.write(&mut guarded, event(6)).await?;
    H::rollback_to(&mut guarded, "second_level").await?;
    H::release(&mut guarded, "first_level").await?;
    H::savepoint(&mut guarded, "whole").await?;
    outbox.write(&mut guarded, event(7)).await?;
    H::savepoint(&mut guarded, "within").await?;
    outbox.write(&mut guarded, event(8)).await?;
    H::release(&mut guarded, "within").await?;
    H::rollback_to(&mut guarded, "whole").await?;
    guarded.commit().await?;
    let of = |indexes: &[usize]| indexes.iter().map(|index| event(*index)).collect();
    Ok(Fates { kept: of(&[0, 3, 4, 5]), undone: of(&[1, 2, 6, 7, 8]) })
}

/// A transaction of the driver's own, committed by the outbox, is verified as a guard is.
pub(super) async fn a_commit_with_its_receipt_is_verified<H: Harness>(db: &Db<H>) -> Outcome {
    let (recorder, hook) = (Recorder::new(), RecordingHook::new());
    let outbox = unpolled(db, &recorder).writer_hook(hook.clone()).start().await?;
    let mut all = vec![first_delivered(db, &outbox, &recorder).await?];
    let mut undone = Vec::new();
    for _ in 0..5 {
        let kept = events(3)?;
        let mut own = db.begin().await?;
        let receipt = outbox.write_all(&mut own, kept.clone()).await?;
        outbox.commit(own, receipt).await?;
        all.extend(kept);
        recorder.wait_for_calls(all.len()).await;

        let mut own = db.begin().await?;
        H::savepoint(own.inner_mut(), "undone").await?;
        undone.push(event()?);
        let receipt = outbox.write(&mut own, undone[undone.len() - 1].clone()).await?;
        H::rollback_to(own.inner_mut(), "undone").await?;
        outbox.commit(own, receipt).await?;
    }
    let ids = |events: &[Envelope]| events.iter().map(|event| event.id().clone()).collect::<Vec<_>>();
    assert_eq!((hook.committed(), hook.rolled_back()), (ids(&all[1..]), ids(&undone)));
    assert!(recorder.calls().iter().any(|call| call.path == Path::Hot), "{:?}", outbox.stats());
    delivered_once(db, &outbox, &recorder, &all).await?;
    assert_eq!(recorder.calls().len(), all.len(), "and nothing else was");
    Ok(())
}

/// The caller says that it committed, and it did not: its transaction was rolled back, or a part of it.
pub(super) async fn a_receipt_of_what_was_rolled_back_delivers_nothing<H: Harness>(db: &Db<H>) -> Outcome {
    let recorder = Recorder::new();
    let outbox = unpolled(db, &recorder).start().await?;
    let mut all = vec![first_delivered(db, &outbox, &recorder).await?];
    for _ in 0..5 {
        let mut own = db.begin().await?;
        H::savepoint(own.inner_mut(), "undone").await?;
        let part = outbox.write(&mut own, event()?).await?;
        H::rollback_to(own.inner_mut(), "undone").await?;
        own.commit().await?;
        outbox.notify_committed(part);
        let mut own = db.begin().await?;
        let whole = outbox.write(&mut own, event()?).await?;
        own.rollback().await?;
        outbox.notify_committed(whole);
        // Whatever could be delivered of them would be before this one, which the hot lane gets last.
        let last = event()?;
        outbox.notify_committed(write(db, &outbox, std::slice::from_ref(&last)).await?);
        all.push(last);
        recorder.wait_for_calls(all.len()).await;
        settled(&*db.store()).await?;
    }
    delivered_once(db, &outbox, &recorder, &all).await?;
    assert_eq!(recorder.calls().len(), all.len(), "and nothing else was");
    Ok(())
}
