//! Keys whose first event fails, is DEAD, or cannot be read: the later ones wait for it.

use std::sync::Arc;
use std::time::Duration;

use pillarbox_core::error::BoxError;
use pillarbox_core::handle::{Delivery, Outcome as Decision};
use pillarbox_core::store::{Admin as _, Purge, Purgeable};
use pillarbox_engine::run::FailingKey;
use tokio::sync::Semaphore;

use super::super::setting::{drained, settled, until, write};
use super::{eager, failing, failing_until, in_order_of_success, in_turn, nothing_was_overtaken, statuses};
use crate::events::{columns, keyed};
use crate::run::{Db, Outcome};
use crate::{FaultyStore, Harness, Recorder};

/// The first goes DEAD at once, and the two behind it wait; nobody else does. Replayed, all follow in their order.
pub(in crate::scenarios) async fn a_dead_head_keeps_its_key_waiting_until_it_is_replayed<H: Harness>(
    db: &Db<H>,
) -> Outcome {
    let (recorder, fixed) = failing_until();
    let written = failing(&[("bad", "a"), ("good", "a"), ("good", "a"), ("good", "b"), ("good", "c")])?;
    db.write(written.clone()).await?;
    let outbox = eager(db.store(), &recorder)?.max_attempts(1).start().await?;
    recorder.wait_for_ends(3).await;
    until(async || Ok(statuses(db, &written).await? == [3, 0, 0, 1, 1])).await?;
    // Once an event that stands behind them is delivered, the table was read past them.
    let behind = failing(&[("good", "b")])?;
    db.write(behind.clone()).await?;
    until(async || Ok(statuses(db, &behind).await? == [1])).await?;
    assert_eq!(statuses(db, &written).await?, [3, 0, 0, 1, 1]);
    let blocked = db.store().blocked(0, 10).await?;
    assert_eq!(blocked.iter().map(|head| (&*head.key, head.dead, head.waiting)).collect::<Vec<_>>(), [("a", true, 2)]);
    fixed.add_permits(1);
    let head = columns(db, &written[0]).await?.seq;
    db.store().replay(&[head]).await?;
    drained(db, &outbox).await?;
    assert_eq!(statuses(db, &written).await?, [1; 5]);
    in_order_of_success(&recorder, &written[..3]);
    Ok(())
}

/// The table says nothing of it: so its key waits in memory, and nobody else does.
pub(in crate::scenarios) async fn a_failure_that_cannot_be_recorded_keeps_its_key_waiting<H: Harness>(
    db: &Db<H>,
) -> Outcome {
    let (recorder, fixed) = failing_until();
    let store = FaultyStore::new(db.store());
    let written = failing(&[("bad", "a"), ("good", "a"), ("good", "b")])?;
    store.refuse_verdicts_of(db.write(written.clone()).await?.first().copied());
    let outbox = eager(Arc::new(store.clone()), &recorder)?.start().await?;
    until(async || Ok(outbox.stats().refused > 0)).await?;
    // Twice, since the first may have been read while the failure was being recorded.
    for _ in 0..2 {
        let behind = failing(&[("good", "b")])?;
        db.write(behind.clone()).await?;
        until(async || Ok(statuses(db, &behind).await? == [1])).await?;
    }
    assert_eq!(statuses(db, &written).await?, [0, 0, 1]);
    assert_eq!(recorder.calls_of(written[0].id()).len(), 1, "it is not spun");
    outbox.shutdown().await;
    store.refuse_verdicts_of([]);
    fixed.add_permits(1);
    let next = eager(Arc::new(store), &recorder)?.start().await?;
    drained(db, &next).await?;
    in_order_of_success(&recorder, &written[..2]);
    Ok(())
}

/// Thrown away, it no longer stands in the way.
pub(in crate::scenarios) async fn a_discarded_head_lets_its_key_go_on<H: Harness>(db: &Db<H>) -> Outcome {
    let (recorder, _never) = failing_until();
    let written = failing(&[("bad", "a"), ("good", "a"), ("good", "a")])?;
    db.write(written.clone()).await?;
    let outbox = eager(db.store(), &recorder)?.max_attempts(1).start().await?;
    until(async || Ok(columns(db, &written[0]).await?.status == 3)).await?;
    let head = columns(db, &written[0]).await?.seq;
    db.store().discard(&[head]).await?;
    drained(db, &outbox).await?;
    in_order_of_success(&recorder, &written[1..]);
    assert_eq!(recorder.calls().len(), 3);
    Ok(())
}

/// An event that is written right after its key was allowed to go on comes after those that had been waiting, although all of
/// them stand below what has been read. That is so however often it is done, whichever way, with other keys being busy.
pub(in crate::scenarios) async fn keys_that_operators_let_go_on_are_not_overtaken<H: Harness>(db: &Db<H>) -> Outcome {
    let (recorder, fixed) = failing_until();
    let store = db.store();
    let outbox = eager(db.store(), &recorder)?.max_attempts(1).cold_capacity(64).start().await?;
    for round in 0..6 {
        let key = format!("held-{round}");
        let mut written = failing(&[("bad", &key), ("good", &key), ("good", &key)])?;
        db.write(written.clone()).await?;
        db.write(in_turn(7, 100)?).await?;
        until(async || Ok(columns(db, &written[0]).await?.status == 3 && store.counts().await?.new <= 2)).await?;
        // All that there is has been read; the node is about to read what is above.
        let head = columns(db, &written[0]).await?.seq;
        let later = failing(&[("good", &key)])?;
        match round % 3 {
            0 => drop(store.discard(&[head]).await?),
            1 => {
                fixed.add_permits(1);
                store.replay(&[head]).await?;
            }
            _ => drop(store.purge(&Purge::new(Purgeable::Dead, Duration::ZERO, 10_000)).await?),
        }
        write(db, &outbox, &later).await?;
        written.extend(later);
        settled(&*store).await?;
        let first = usize::from(round % 3 != 1);
        in_order_of_success(&recorder, &written[first..]);
        if fixed.available_permits() > 0 {
            fixed.forget_permits(1);
        }
    }
    outbox.shutdown().await;
    Ok(())
}

/// A row that is no event keeps its key waiting like one that fails, whether it is found beside the others, after them, or
/// by the next owner.
pub(in crate::scenarios) async fn a_row_that_cannot_be_read_keeps_its_key_waiting<H: Harness>(db: &Db<H>) -> Outcome {
    let recorder = Recorder::new();
    let status = async |id: &str| Ok::<_, BoxError>(db.columns(id).await?.map(|row| row.status));
    // Written while nobody delivers, so that the key is there before anyone looks.
    for id in ["first", "bad", "second"] {
        db.insert_of_aggregate(id, "a").await?;
    }
    db.break_row("bad").await?;
    let other = keyed("b")?;
    db.write(vec![other.clone()]).await?;
    let outbox = eager(db.store(), &recorder)?.start().await?;
    let states =
        async || Ok::<_, BoxError>([status("first").await?, status("bad").await?, status(other.id().as_str()).await?]);
    until(async || Ok(states().await? == [Some(1), Some(3), Some(1)])).await?;
    // Once an event that stands behind them is delivered, the table was read past them.
    db.write(vec![keyed("b")?]).await?;
    recorder.wait_for_calls(3).await;
    outbox.shutdown().await;
    let outbox = eager(db.store(), &recorder)?.start().await?;
    db.write(vec![keyed("b")?]).await?;
    recorder.wait_for_calls(4).await;
    assert_eq!((status("second").await?, recorder.calls().len()), (Some(0), 4), "whoever delivers");
    let bad = db.columns("bad").await?.ok_or("the row is there")?.seq;
    db.store().discard(&[bad]).await?;
    drained(db, &outbox).await?;
    assert_eq!(recorder.calls().len(), 5);
    Ok(())
}

/// Told to continue, a key does not wait for the one that fails; told to skip DEAD ones, it waits for attempts only.
pub(in crate::scenarios) async fn a_key_goes_on_if_it_was_told_to<H: Harness>(db: &Db<H>) -> Outcome {
    for (round, policy) in [FailingKey::Continue, FailingKey::SkipDead].into_iter().enumerate() {
        let (recorder, _never) = failing_until();
        let key = format!("held-{round}");
        let written = failing(&[("bad", &key), ("good", &key), ("good", &key)])?;
        db.write(written.clone()).await?;
        let outbox = eager(db.store(), &recorder)?.max_attempts(3).failing_key(policy).start().await?;
        drained(db, &outbox).await?;
        assert_eq!(statuses(db, &written).await?, [3, 1, 1], "{policy:?}");
        let calls: Vec<_> = recorder.calls().into_iter().map(|call| call.id).collect();
        assert_eq!(calls.len(), 5, "{policy:?}");
        let first_good = calls.iter().position(|id| id == written[1].id());
        let last_bad = calls.iter().rposition(|id| id == written[0].id());
        assert_eq!(first_good < last_bad, policy == FailingKey::Continue, "{policy:?}: {calls:?}");
    }
    Ok(())
}

/// It is tried again before any of the others is tried at all.
pub(in crate::scenarios) async fn events_wait_behind_a_head_that_is_tried_again<H: Harness>(db: &Db<H>) -> Outcome {
    let recorder = Recorder::around(async |delivery: Delivery| match delivery.event_type() {
        "bad" if delivery.attempt() < 4 => Err("not yet"),
        _ => Ok(()),
    });
    let mut written = failing(&[("good", "a"), ("bad", "a")])?;
    written.extend((0..40).map(|_| keyed("a")).collect::<Result<Vec<_>, _>>()?);
    written.extend(in_turn(5, 50)?);
    db.write(written.clone()).await?;
    let outbox = eager(db.store(), &recorder)?.cold_capacity(32).start().await?;
    nothing_was_overtaken(db, &outbox, &recorder, &written).await?;
    assert_eq!(recorder.calls().len(), written.len() + 3);
    in_order_of_success(&recorder, &written[..42]);
    Ok(())
}

/// A handler that defers its event keeps the key's place as well.
pub(in crate::scenarios) async fn events_wait_behind_a_head_that_is_deferred<H: Harness>(db: &Db<H>) -> Outcome {
    let deferred = Arc::new(Semaphore::new(1));
    let recorder = Recorder::around(move |delivery: Delivery| {
        let later = delivery.event_type() == "bad" && deferred.try_acquire().map(|permit| permit.forget()).is_ok();
        async move { if later { Decision::Defer(Duration::from_millis(30)) } else { Decision::Done } }
    });
    let written = failing(&[("bad", "a"), ("good", "a"), ("good", "a")])?;
    db.write(written.clone()).await?;
    let outbox = eager(db.store(), &recorder)?.start().await?;
    drained(db, &outbox).await?;
    assert_eq!(recorder.calls().len(), 4);
    in_order_of_success(&recorder, &written);
    Ok(())
}
