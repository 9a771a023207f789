use std::sync::Arc;

use pillarbox_core::error::{BoxError, StoreError};
use pillarbox_core::handle::{Delivery, HandlerError};
use pillarbox_core::store::DeadFilter;
use pillarbox_core::write::{Finish as _, insert};
use pillarbox_engine::maintain::Changed;
use pillarbox_engine::run::Outbox;

use super::setting::{delivered_once, drained, eager, settled, until, write};
use crate::events::{HOUR, event, events};
use crate::run::{Db, Outcome};
use crate::{Fault, FaultyStore, Harness, Operation, Recorder};

/// Handled events wait for the database; they are neither failures nor called again. If the verdicts were recorded and only nobody
/// heard of it, recording them again changes nothing.
pub(super) async fn while_settling<H: Harness>(db: &Db<H>, fault: Fault) -> Outcome {
    let store = FaultyStore::new(db.store());
    let recorder = Recorder::new();
    let outbox = eager(Arc::new(store.clone()), &recorder)?.max_attempts(1).start().await?;
    store.set(Operation::Settle, fault);
    let all = events(30)?;
    for (index, batch) in all.chunks(10).enumerate() {
        let written = write(db, &outbox, batch).await?;
        // By both paths.
        if index == 1 {
            outbox.notify_committed(written);
        }
    }
    recorder.wait_for_calls(all.len()).await;
    store.wait_for_faults(Operation::Settle, 4).await;
    assert_eq!(recorder.calls().len(), all.len());
    store.set(Operation::Settle, Fault::None);
    delivered_once(db, &outbox, &recorder, &all).await?;
    for event in &all {
        let row = db.columns(event.id().as_str()).await?.ok_or("a row is gone")?;
        assert_eq!((row.attempts, row.last_error), (0, None));
    }
    Ok(())
}

/// Events that are committed meanwhile wait in the table, and are delivered when it can be read again.
pub(super) async fn an_outage_while_fetching_only_delays<H: Harness>(db: &Db<H>) -> Outcome {
    let store = FaultyStore::new(db.store());
    let recorder = Recorder::new();
    let outbox = eager(Arc::new(store.clone()), &recorder)?.start().await?;
    store.set(Operation::Fetch, Fault::Unreachable);
    store.wait_for_faults(Operation::Fetch, 1).await;
    let all = events(20)?;
    write(db, &outbox, &all).await?;
    store.wait_for_faults(Operation::Fetch, 3).await;
    assert!(recorder.calls().is_empty());
    store.set(Operation::Fetch, Fault::None);
    recorder.wait_for_calls(all.len()).await;
    delivered_once(db, &outbox, &recorder, &all).await
}

/// It is one row's trouble: the others are recorded, and the row is neither spun nor lost.
pub(super) async fn a_verdict_that_the_database_refuses_stops_nobody_else<H: Harness>(db: &Db<H>) -> Outcome {
    let store = FaultyStore::new(db.store());
    let recorder = Recorder::new();
    let all = events(20)?;
    let mut transaction = db.begin().await?;
    let seqs = insert(&*db.store(), &mut transaction, all.clone()).await?;
    transaction.commit().await?;
    store.refuse_verdicts_of(seqs.get(5).copied());
    // An outage before it must not make the refusal look like a part of the outage.
    store.set(Operation::Settle, Fault::Unreachable);
    let outbox = eager(Arc::new(store.clone()), &recorder)?.start().await?;
    store.wait_for_faults(Operation::Settle, 2).await;
    store.set(Operation::Settle, Fault::None);
    until(async || Ok(db.store().counts().await?.done >= 19)).await?;
    // Events that come later pass it as well.
    let more = events(5)?;
    outbox.notify_committed(write(db, &outbox, &more).await?);
    until(async || Ok(db.store().counts().await?.done >= 24)).await?;
    assert_eq!(recorder.calls_of(all[5].id()).len(), 1, "it is not spun");
    outbox.shutdown().await;
    store.refuse_verdicts_of([]);
    let next = eager(Arc::new(store), &recorder)?.start().await?;
    recorder.wait_for_calls(26).await;
    drained(db, &next).await?;
    assert_eq!((recorder.calls_of(all[5].id()).len(), recorder.calls().len()), (2, 26), "and it is not lost");
    Ok(())
}

/// Every call of an operator fails while the database does, with the database's error: no call has an empty answer, and none
/// reports a change that it has not made.
pub(super) async fn operators_are_told_of_an_outage<H: Harness>(db: &Db<H>) -> Outcome {
    let store = FaultyStore::new(db.store());
    let recorder = Recorder::around(async |_: Delivery| Err::<(), _>(HandlerError::unrecoverable("broken")));
    let outbox = eager(Arc::new(store.clone()), &recorder)?.start().await?;
    let written = event()?;
    write(db, &outbox, std::slice::from_ref(&written)).await?;
    settled(&*db.store()).await?;
    let (dead, filter, id) = (outbox.dead_events(), DeadFilter::default(), written.id().as_str());
    let changes = async || {
        [
            ("replay", dead.replay(id).await.err()),
            ("replay_all", dead.replay_all(&filter, |_| {}).await.err()),
            ("discard", dead.discard(id).await.err()),
            ("discard_all", dead.discard_all(&filter, |_| {}).await.err()),
        ]
    };
    let failed = |calls: &[(&str, Option<StoreError>)]| {
        for (call, error) in calls {
            let error = error.as_ref().ok_or_else(|| format!("{call} says that all is well"))?;
            assert!(error.is_temporary(), "{call}: {error}");
        }
        Ok::<_, BoxError>(())
    };
    for fault in [Fault::Unreachable, Fault::Locked] {
        store.set(Operation::Inspect, fault);
        failed(&[
            ("list", dead.list(&filter, None, 10).await.err()),
            ("count", dead.count(&filter).await.err()),
            ("show", dead.show(id).await.err()),
            ("replay_for", dead.replay_for(id, "mailer").await.err()),
            ("discard_for", dead.discard_for(id, "mailer").await.err()),
        ])?;
        failed(&changes().await)?;
        store.set(Operation::Inspect, Fault::None);
        // What they ask first is answered, but nothing can be changed.
        store.set(Operation::Change, fault);
        failed(&changes().await)?;
        assert_eq!(dead.replay_for(id, "mailer").await?, Changed::Unknown, "for that one there is nothing to change");
        store.set(Operation::Change, Fault::None);
        assert_eq!(dead.count(&filter).await?, 1, "it is as it was");
    }
    outbox.shutdown().await;
    Ok(())
}

/// Verdicts that come while a recording is under way are recorded together: what many events cost the database is a few
/// statements. An outage stands for a recording that takes long.
pub(super) async fn many_events_are_read_and_recorded_in_a_few_round_trips<H: Harness>(db: &Db<H>) -> Outcome {
    let all = events(300)?;
    db.write(all.clone()).await?;
    let store = FaultyStore::new(db.store());
    store.set(Operation::Settle, Fault::Unreachable);
    let recorder = Recorder::new();
    let outbox = Outbox::single_node(store.clone()).poll_interval(HOUR, HOUR).handle_all(recorder.clone());
    let outbox = outbox.start().await?;
    recorder.wait_for_ends(all.len()).await;
    store.wait_for_faults(Operation::Settle, 1).await;
    let (read, tried) = (store.calls(Operation::Fetch), store.calls(Operation::Settle));
    store.set(Operation::Settle, Fault::None);
    delivered_once(db, &outbox, &recorder, &all).await?;
    let recorded = store.calls(Operation::Settle) - tried;
    assert!(read <= 5 && recorded <= 5, "{read} readings and {recorded} recordings of {} events", all.len());
    Ok(())
}
