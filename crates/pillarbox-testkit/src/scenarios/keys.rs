use std::sync::Arc;
use std::time::Duration;

use pillarbox_core::error::BoxError;
use pillarbox_core::event::Envelope;
use pillarbox_core::handle::{Delivery, Outcome as Decision};
use pillarbox_core::retry::ExponentialBackoff;
use pillarbox_core::run::{FailingKey, Outbox, Partitioned};
use pillarbox_core::store::{Purge, Purgeable, Store, Upkeep as _};
use pillarbox_core::write::Finish as _;
use tokio::sync::Semaphore;
use tokio::time::{Instant, sleep};

use super::setting::{assert_soon, settled, write};
use crate::events::{HOUR, columns, keyed};
use crate::invariants::{Observed, i3_events_of_a_key_are_handled_one_at_a_time_and_in_order as i3};
use crate::run::Outcome;
use crate::{Ending, Fault, FaultyStore, Harness, Operation, Recorder};

/// A node that never looks at the table unless it has a reason to.
fn unpolled(store: Arc<dyn Store>, recorder: &Recorder) -> Partitioned {
    Outbox::partitioned(store).poll_interval(HOUR, HOUR).handle_all(recorder.clone())
}

/// A node that looks at the table all the time, and retries at once.
fn eager(store: Arc<dyn Store>, recorder: &Recorder) -> Result<Partitioned, BoxError> {
    let backoff = ExponentialBackoff::new(Duration::from_millis(1), Duration::from_millis(10))?;
    let polling = Outbox::partitioned(store).poll_interval(Duration::from_millis(1), Duration::from_millis(20));
    Ok(polling.retry_policy(backoff).handle_all(recorder.clone()))
}

/// Events of `keys` keys in turn.
fn in_turn(keys: usize, events: usize) -> Result<Vec<Envelope>, BoxError> {
    (0..events).map(|index| Ok(keyed(&format!("key-{}", index % keys))?)).collect()
}

/// Events of one key, of which those with this type fail as long as the test says so.
fn failing(events: &[(&str, &str)]) -> Result<Vec<Envelope>, BoxError> {
    let event = |(event_type, key): &(&str, &str)| Envelope::builder(*event_type).key(*key).payload_json("{}").build();
    Ok(events.iter().map(event).collect::<Result<_, _>>()?)
}

/// Nothing was delivered twice, nothing was lost, nothing overtook another.
async fn kept_in_order<H: Harness>(db: &H, recorder: &Recorder, events: &[Envelope]) -> Outcome {
    let observed = Observed::read(db, events, recorder.calls()).await?;
    observed.check()?;
    i3(&observed)?;
    for event in events {
        assert_eq!(recorder.calls_of(event.id()).len(), 1, "calls of event {}", event.id());
    }
    Ok(())
}

async fn statuses<H: Harness>(db: &H, events: &[Envelope]) -> Result<Vec<i16>, BoxError> {
    let mut statuses = Vec::new();
    for event in events {
        statuses.push(columns(db, event).await?.status);
    }
    Ok(statuses)
}

/// Whichever way they were written, in batches that cut keys apart, with handlers that take different times.
pub(super) async fn events_of_a_key_are_delivered_in_order<H: Harness>(db: &H) -> Outcome {
    let recorder = Recorder::around(async |delivery: Delivery| {
        if delivery.seq() % 3 == 0 {
            sleep(Duration::from_millis(1)).await;
        }
    });
    let written = in_turn(7, 400)?;
    db.write(written[..200].to_vec()).await?;
    let outbox = eager(db.store(), &recorder)?.claim_batch(11).cold_capacity(64).workers(8).start().await?;
    for chunk in written[200..].chunks(20) {
        let mut transaction = outbox.begin(db.source()).await?;
        outbox.write_all(&mut transaction, chunk.iter().cloned()).await?;
        transaction.commit().await?;
    }
    settled(&*db.store()).await?;
    outbox.shutdown().await;
    kept_in_order(db, &recorder, &written).await
}

/// Both ways of committing wake the owner; without any look that nothing asked for.
pub(super) async fn a_commit_wakes_the_owner_of_its_key<H: Harness>(db: &H) -> Outcome {
    let recorder = Recorder::new();
    let outbox = unpolled(db.store(), &recorder).start().await?;
    let written = in_turn(3, 20)?;
    for (index, event) in written.iter().enumerate() {
        if index % 2 == 0 {
            let mut transaction = outbox.begin(db.source()).await?;
            outbox.write(&mut transaction, event.clone()).await?;
            transaction.commit().await?;
        } else {
            write(db, &outbox, std::slice::from_ref(event)).await?;
        }
        let committed = Instant::now();
        recorder.wait_for_calls(index + 1).await;
        assert_soon(committed);
    }
    settled(&*db.store()).await?;
    outbox.shutdown().await;
    kept_in_order(db, &recorder, &written).await
}

/// The first goes DEAD at once, and the two behind it wait; nobody else does. Replayed, all follow in their order.
pub(super) async fn a_dead_head_keeps_its_key_waiting_until_it_is_replayed<H: Harness>(db: &H) -> Outcome {
    let broken = Arc::new(Semaphore::new(0));
    let (recorder, state) = failing_until(&broken);
    let written = failing(&[("bad", "a"), ("good", "a"), ("good", "a"), ("good", "b"), ("good", "c")])?;
    db.write(written.clone()).await?;
    let outbox = eager(db.store(), &recorder)?.max_attempts(1).start().await?;
    recorder.wait_for_ends(3).await;
    while statuses(db, &written).await? != [3, 0, 0, 1, 1] {
        sleep(Duration::from_millis(2)).await;
    }
    // Long enough for several looks at the table.
    sleep(Duration::from_millis(100)).await;
    assert_eq!(statuses(db, &written).await?, [3, 0, 0, 1, 1]);
    let blocked = db.store().blocked(0, 10).await?;
    assert_eq!(blocked.iter().map(|head| (&*head.key, head.dead, head.waiting)).collect::<Vec<_>>(), [("a", true, 2)]);
    state.add_permits(1);
    let head = columns(db, &written[0]).await?.seq;
    db.store().replay(&[head]).await?;
    settled(&*db.store()).await?;
    outbox.shutdown().await;
    assert_eq!(statuses(db, &written).await?, [1; 5]);
    in_order_of_success(&recorder, &written[..3]);
    Ok(())
}

/// A handler that fails events of type `bad` as long as the semaphore has no permit.
fn failing_until(fixed: &Arc<Semaphore>) -> (Recorder, Arc<Semaphore>) {
    let state = Arc::clone(fixed);
    let recorder = Recorder::around(move |delivery: Delivery| {
        let fails = delivery.event_type() == "bad" && state.available_permits() == 0;
        async move { if fails { Err("not yet") } else { Ok(()) } }
    });
    (recorder, Arc::clone(fixed))
}

/// The calls that ended well are those of `events`, in this order.
fn in_order_of_success(recorder: &Recorder, events: &[Envelope]) {
    let calls = recorder.calls().into_iter();
    let done = calls.filter(|call| call.ended.is_some_and(|(_, ending)| ending == Ending::Done));
    let order: Vec<_> = done.map(|call| call.id).filter(|id| events.iter().any(|event| event.id() == id)).collect();
    assert!(order.iter().eq(events.iter().map(Envelope::id)), "{order:?}");
}

/// A handler that ends when the gate opens.
fn stuck_at(gate: &Arc<Semaphore>) -> Recorder {
    let gate = Arc::clone(gate);
    Recorder::around(move |_: Delivery| {
        let gate = Arc::clone(&gate);
        async move { gate.acquire().await.map(drop).map_err(|_closed| "closed") }
    })
}

/// Thrown away, it no longer stands in the way.
pub(super) async fn a_discarded_head_lets_its_key_go_on<H: Harness>(db: &H) -> Outcome {
    let (recorder, _never) = failing_until(&Arc::new(Semaphore::new(0)));
    let written = failing(&[("bad", "a"), ("good", "a"), ("good", "a")])?;
    db.write(written.clone()).await?;
    let outbox = eager(db.store(), &recorder)?.max_attempts(1).start().await?;
    while columns(db, &written[0]).await?.status != 3 {
        sleep(Duration::from_millis(2)).await;
    }
    let head = columns(db, &written[0]).await?.seq;
    db.store().discard(&[head]).await?;
    settled(&*db.store()).await?;
    outbox.shutdown().await;
    in_order_of_success(&recorder, &written[1..]);
    assert_eq!(recorder.calls().len(), 3);
    Ok(())
}

/// An event that is written right after its key was allowed to go on comes after those that had been waiting, although all of
/// them stand below what has been read. That is so however often it is done, whichever way, with other keys being busy.
pub(super) async fn what_operators_let_go_on_is_not_overtaken<H: Harness>(db: &H) -> Outcome {
    let broken = Arc::new(Semaphore::new(0));
    let (recorder, fixed) = failing_until(&broken);
    let store = db.store();
    let outbox = eager(db.store(), &recorder)?.max_attempts(1).cold_capacity(64).start().await?;
    for round in 0..6 {
        let key = format!("held-{round}");
        let mut written = failing(&[("bad", &key), ("good", &key), ("good", &key)])?;
        db.write(written.clone()).await?;
        db.write(in_turn(7, 100)?).await?;
        while columns(db, &written[0]).await?.status != 3 || store.counts().await?.new > 2 {
            sleep(Duration::from_millis(1)).await;
        }
        // All that there is has been read; the node is about to read what is above.
        let head = columns(db, &written[0]).await?.seq;
        let later = failing(&[("good", &key)])?;
        match round % 3 {
            0 => drop(store.discard(&[head]).await?),
            1 => {
                fixed.add_permits(1);
                store.replay(&[head]).await?;
            }
            _ => drop(
                store
                    .purge(&Purge { what: Purgeable::Dead, older_than: Duration::ZERO, above: 0, limit: 10_000 })
                    .await?,
            ),
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
pub(super) async fn a_row_that_cannot_be_read_keeps_its_key_waiting<H: Harness>(db: &H) -> Outcome {
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
    while status("first").await? != Some(1) || status("bad").await? != Some(3) || columns(db, &other).await?.status != 1
    {
        sleep(Duration::from_millis(2)).await;
    }
    sleep(Duration::from_millis(100)).await;
    assert_eq!(recorder.calls().len(), 2);
    outbox.shutdown().await;
    let outbox = eager(db.store(), &recorder)?.start().await?;
    sleep(Duration::from_millis(200)).await;
    assert_eq!(status("second").await?, Some(0), "whoever delivers");
    let bad = db.columns("bad").await?.ok_or("the row is there")?.seq;
    db.store().discard(&[bad]).await?;
    settled(&*db.store()).await?;
    outbox.shutdown().await;
    assert_eq!(recorder.calls().len(), 3);
    Ok(())
}

/// Told to continue, a key does not wait for the one that fails; told to skip DEAD ones, it waits for attempts only.
pub(super) async fn a_key_goes_on_if_it_was_told_to<H: Harness>(db: &H) -> Outcome {
    for (round, policy) in [FailingKey::Continue, FailingKey::SkipDead].into_iter().enumerate() {
        let (recorder, _never) = failing_until(&Arc::new(Semaphore::new(0)));
        let key = format!("held-{round}");
        let written = failing(&[("bad", &key), ("good", &key), ("good", &key)])?;
        db.write(written.clone()).await?;
        let outbox = eager(db.store(), &recorder)?.max_attempts(3).failing_key(policy).start().await?;
        settled(&*db.store()).await?;
        outbox.shutdown().await;
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
pub(super) async fn events_wait_behind_a_head_that_is_tried_again<H: Harness>(db: &H) -> Outcome {
    let recorder = Recorder::around(async |delivery: Delivery| match delivery.event_type() {
        "bad" if delivery.attempt() < 4 => Err("not yet"),
        _ => Ok(()),
    });
    let mut written = failing(&[("good", "a"), ("bad", "a")])?;
    written.extend((0..40).map(|_| keyed("a")).collect::<Result<Vec<_>, _>>()?);
    written.extend(in_turn(5, 50)?);
    db.write(written.clone()).await?;
    let outbox = eager(db.store(), &recorder)?.cold_capacity(32).start().await?;
    settled(&*db.store()).await?;
    outbox.shutdown().await;
    assert_eq!(recorder.calls().len(), written.len() + 3);
    in_order_of_success(&recorder, &written[..42]);
    let observed = Observed::read(db, &written, recorder.calls()).await?;
    observed.check()?;
    Ok(i3(&observed)?)
}

/// A handler that defers its event keeps the key's place as well.
pub(super) async fn events_wait_behind_a_head_that_is_deferred<H: Harness>(db: &H) -> Outcome {
    let deferred = Arc::new(Semaphore::new(1));
    let recorder = Recorder::around(move |delivery: Delivery| {
        let later = delivery.event_type() == "bad" && deferred.try_acquire().map(|permit| permit.forget()).is_ok();
        async move { if later { Decision::RetryAfter(Duration::from_millis(30)) } else { Decision::Done } }
    });
    let written = failing(&[("bad", "a"), ("good", "a"), ("good", "a")])?;
    db.write(written.clone()).await?;
    let outbox = eager(db.store(), &recorder)?.start().await?;
    settled(&*db.store()).await?;
    outbox.shutdown().await;
    assert_eq!(recorder.calls().len(), 4);
    in_order_of_success(&recorder, &written);
    Ok(())
}

/// One key stands still with far more events than fit into memory, another fails; all others are delivered.
pub(super) async fn a_slow_key_and_a_failing_key_delay_nobody_else<H: Harness>(db: &H) -> Outcome {
    let gate = Arc::new(Semaphore::new(0));
    let held = Arc::clone(&gate);
    let recorder = Recorder::around(move |delivery: Delivery| {
        let held = Arc::clone(&held);
        async move {
            match delivery.key() {
                Some("slow") => held.acquire().await.map(drop).map_err(|_closed| "closed"),
                Some("failing") if held.available_permits() == 0 => Err("not yet"),
                _ => Ok(()),
            }
        }
    });
    let mut written = Vec::new();
    for _ in 0..300 {
        written.extend([keyed("slow")?, keyed("failing")?]);
    }
    let others = in_turn(20, 100)?;
    written.extend(others.clone());
    db.write(written.clone()).await?;
    let outbox = eager(db.store(), &recorder)?.max_attempts(1000).cold_capacity(64).workers(2).start().await?;
    for other in &others {
        while recorder.calls_of(other.id()).is_empty() {
            sleep(Duration::from_millis(2)).await;
        }
    }
    assert!(outbox.stats().held <= 64 + 64 + 2000, "memory is bounded");
    gate.add_permits(1_000_000);
    settled(&*db.store()).await?;
    outbox.shutdown().await;
    let observed = Observed::read(db, &written, recorder.calls()).await?;
    observed.check()?;
    Ok(i3(&observed)?)
}

/// A key with far more events than memory holds, which is refilled again and again, keeps no event waiting that another
/// program has written.
pub(super) async fn a_busy_key_keeps_nobody_else_waiting<H: Harness>(db: &H) -> Outcome {
    let recorder = Recorder::around(async |delivery: Delivery| {
        if delivery.key() == Some("busy") {
            sleep(Duration::from_micros(200)).await;
        }
    });
    let busy: Vec<_> = (0..6_000).map(|_| keyed("busy")).collect::<Result<_, _>>()?;
    db.write(busy.clone()).await?;
    let polling = Outbox::partitioned(db.store()).poll_interval(Duration::from_millis(50), Duration::from_secs(5));
    let outbox = polling.cold_capacity(64).workers(4).handle_all(recorder.clone()).start().await?;
    recorder.wait_for_calls(100).await;
    for _ in 0..5 {
        let other = keyed("other")?;
        db.write(vec![other.clone()]).await?;
        while recorder.calls_of(other.id()).is_empty() {
            sleep(Duration::from_millis(1)).await;
        }
        assert!(recorder.calls_of(busy[busy.len() - 1].id()).is_empty(), "the busy key is not done");
    }
    outbox.shutdown().await;
    Ok(())
}

/// It holds nobody up while its time has not come, and takes its place when it has.
pub(super) async fn a_delayed_event_holds_nobody_up<H: Harness>(db: &H) -> Outcome {
    let recorder = Recorder::new();
    let mut written = vec![
        Envelope::builder("test.keyed").key("a").payload_json("{}").deliver_after(HOUR).build()?,
        keyed("a")?,
        keyed("a")?,
    ];
    db.write(written.clone()).await?;
    let outbox = eager(db.store(), &recorder)?.start().await?;
    recorder.wait_for_ends(2).await;
    db.make_due(written[0].id().as_str()).await?;
    settled(&*db.store()).await?;
    outbox.shutdown().await;
    let calls: Vec<_> = recorder.calls().into_iter().map(|call| call.id).collect();
    written.rotate_left(1);
    assert!(calls.iter().eq(written.iter().map(Envelope::id)), "{calls:?}");
    Ok(())
}

/// Rows that other programs insert have neither key nor partition, or only an aggregate id.
pub(super) async fn rows_of_other_programs_are_delivered<H: Harness>(db: &H) -> Outcome {
    let recorder = Recorder::new();
    for index in 0..20 {
        db.insert_three_columns(&format!("event-{index}"), "test.event", "{}").await?;
    }
    let others = [db.connect().await?];
    let nodes =
        [eager(db.store(), &recorder)?.start().await?, eager(Arc::clone(&others[0]), &recorder)?.start().await?];
    settled(&*db.store()).await?;
    for node in nodes {
        node.shutdown().await;
    }
    assert_eq!(recorder.calls().len(), 20);
    for other in others {
        other.close().await;
    }
    Ok(())
}

/// With far fewer keys than workers each key has a small share of the memory, and is behind nearly all the time: they are read by
/// statements that bring many events of all of them, in their order.
pub(super) async fn few_keys_of_many_workers_are_read_together<H: Harness>(db: &H) -> Outcome {
    let recorder = Recorder::new();
    let mut written = in_turn(5, 1000)?;
    for number in 0..5 {
        written.extend((0..100).map(|_| keyed(&format!("key-{number}"))).collect::<Result<Vec<_>, _>>()?);
    }
    written.extend(in_turn(5, 500)?);
    db.write(written.clone()).await?;
    let store = FaultyStore::new(db.store());
    let polling = Outbox::partitioned(Arc::new(store.clone())).poll_interval(Duration::from_secs(1), HOUR);
    let outbox = polling.cold_capacity(256).workers(256).handle_all(recorder.clone()).start().await?;
    settled(&*db.store()).await?;
    outbox.shutdown().await;
    let fetches = store.calls(Operation::Fetch);
    assert!(fetches * 3 < written.len(), "{fetches} fetches for {} events", written.len());
    kept_in_order(db, &recorder, &written).await
}

/// The lower `seq` is committed long after the higher one was delivered, and nothing waits for it meanwhile.
pub(super) async fn a_late_commit_of_another_key_is_delivered<H: Harness>(db: &H) -> Outcome {
    let recorder = Recorder::new();
    let outbox = unpolled(db.store(), &recorder).start().await?;
    let late = keyed("late")?;
    let mut open = db.begin().await?;
    outbox.write(&mut open, late.clone()).await?;
    let early = in_turn(3, 30)?;
    write(db, &outbox, &early).await?;
    recorder.wait_for_ends(30).await;
    open.commit().await?;
    recorder.wait_for_ends(31).await;
    settled(&*db.store()).await?;
    outbox.shutdown().await;
    kept_in_order(db, &recorder, &[early, vec![late]].concat()).await
}

/// A long transaction of a key, and right after it another of the same key, as when writers lock the thing they write
/// about: however far the outbox has read by then, they are delivered in their order.
pub(super) async fn a_late_commit_is_not_overtaken_by_what_was_written_after_it<H: Harness>(db: &H) -> Outcome {
    let recorder = Recorder::new();
    let outbox = eager(db.store(), &recorder)?.claim_batch(3).start().await?;
    let mut written = Vec::new();
    for round in 0..20 {
        let (first, second) = (keyed("a")?, keyed("a")?);
        let mut open = db.begin().await?;
        outbox.write(&mut open, first.clone()).await?;
        // Others are read meanwhile, above it.
        let others = in_turn(4, 8)?;
        write(db, &outbox, &others).await?;
        sleep(Duration::from_millis(5 * (round % 4))).await;
        open.commit().await?;
        write(db, &outbox, std::slice::from_ref(&second)).await?;
        written.extend([first, second]);
        written.extend(others);
    }
    settled(&*db.store()).await?;
    outbox.shutdown().await;
    kept_in_order(db, &recorder, &written).await
}

/// Nodes come and leave while they deliver: nothing twice, nothing out of order.
pub(super) async fn nodes_that_come_and_leave_deliver_nothing_twice<H: Harness>(db: &H) -> Outcome {
    let recorder = Recorder::around(async |_: Delivery| sleep(Duration::from_millis(1)).await);
    let written = in_turn(40, 2000)?;
    db.write(written.clone()).await?;
    let first = eager(db.store(), &recorder)?.node_name("first").start().await?;
    recorder.wait_for_calls(50).await;
    let others = [db.connect().await?, db.connect().await?];
    let second = eager(Arc::clone(&others[0]), &recorder)?.node_name("second").start().await?;
    recorder.wait_for_calls(400).await;
    let third = eager(Arc::clone(&others[1]), &recorder)?.node_name("third").start().await?;
    recorder.wait_for_calls(800).await;
    first.shutdown().await;
    recorder.wait_for_calls(1200).await;
    third.shutdown().await;
    settled(&*db.store()).await?;
    second.shutdown().await;
    kept_in_order(db, &recorder, &written).await?;
    for other in others {
        other.close().await;
    }
    Ok(())
}

/// It takes what is free of its share at once, and the rest when the owner has given it.
pub(super) async fn partitions_are_shared_evenly<H: Harness>(db: &H) -> Outcome {
    let recorder = Recorder::new();
    let others = [db.connect().await?, db.connect().await?];
    let first = eager(db.store(), &recorder)?.start().await?;
    let second = eager(Arc::clone(&others[0]), &recorder)?.start().await?;
    shares(db, &[128, 128]).await?;
    let third = eager(Arc::clone(&others[1]), &recorder)?.start().await?;
    shares(db, &[86, 85, 85]).await?;
    second.shutdown().await;
    shares(db, &[128, 128]).await?;
    for node in [first, third] {
        node.shutdown().await;
    }
    assert_eq!(db.store().partitions().await?.unowned, 256);
    for other in others {
        other.close().await;
    }
    Ok(())
}

/// Waits until the nodes own so many partitions each.
async fn shares<H: Harness>(db: &H, wanted: &[u16]) -> Outcome {
    loop {
        let nodes = db.store().nodes().await?;
        let mut owned: Vec<u16> = nodes.iter().map(|node| node.partitions).collect();
        owned.sort_unstable_by(|a, b| b.cmp(a));
        if owned == wanted {
            return Ok(());
        }
        sleep(Duration::from_millis(5)).await;
    }
}

/// A node that cannot renew its lease loses its keys to another; what its handler says then changes nothing.
pub(super) async fn the_keys_of_a_node_that_was_cut_off_go_to_another<H: Harness>(db: &H) -> Outcome {
    let gate = Arc::new(Semaphore::new(0));
    let stuck = stuck_at(&gate);
    let faulty = FaultyStore::new(db.store());
    let first =
        eager(Arc::new(faulty.clone()), &stuck)?.lease(Duration::from_millis(400)).node_name("first").start().await?;
    let written = in_turn(5, 20)?;
    db.write(written.clone()).await?;
    stuck.wait_for_calls(4).await;
    faulty.set_all(Fault::Unreachable);
    let other = db.connect().await?;
    let recorder = Recorder::new();
    let second = eager(Arc::clone(&other), &recorder)?.node_name("second").start().await?;
    settled(&*db.store()).await?;
    gate.add_permits(1_000_000);
    faulty.set_all(Fault::None);
    first.shutdown().await;
    second.shutdown().await;
    assert_eq!(statuses(db, &written).await?, [1; 20]);
    assert_eq!(recorder.calls().len(), 20, "all by the one that was left");
    let observed = Observed::read(db, &written, recorder.calls()).await?;
    i3(&observed)?;
    other.close().await;
    Ok(())
}

/// A handler that does not end keeps its partition back for so long as a shutdown would wait, and no longer. Its verdict
/// does not count then.
pub(super) async fn a_handler_that_does_not_end_is_not_waited_for_for_ever<H: Harness>(db: &H) -> Outcome {
    let gate = Arc::new(Semaphore::new(0));
    let stuck = stuck_at(&gate);
    let first = eager(db.store(), &stuck)?
        .drain_timeout(Duration::from_millis(100))
        .workers(200)
        .node_name("first")
        .start()
        .await?;
    let written = in_turn(100, 100)?;
    db.write(written.clone()).await?;
    stuck.wait_for_calls(100).await;
    let other = db.connect().await?;
    let recorder = Recorder::new();
    let second = eager(Arc::clone(&other), &recorder)?.node_name("second").start().await?;
    shares(db, &[128, 128]).await?;
    recorder.wait_for_ends(1).await;
    gate.add_permits(1_000_000);
    settled(&*db.store()).await?;
    first.shutdown().await;
    second.shutdown().await;
    assert_eq!(statuses(db, &written).await?, [1; 100]);
    // Each half delivered what it owns, the first node both.
    let theirs = recorder.calls().len();
    assert!(stuck.calls().len() >= 100 && theirs > 0, "{} and {theirs} calls", stuck.calls().len());
    other.close().await;
    Ok(())
}

/// The rows of delivered events do not stay.
pub(super) async fn delivered_events_are_deleted_if_asked<H: Harness>(db: &H) -> Outcome {
    let (recorder, _never) = failing_until(&Arc::new(Semaphore::new(0)));
    let written = failing(&[("good", "a"), ("good", "b"), ("bad", "c"), ("good", "b")])?;
    db.write(written.clone()).await?;
    let outbox = eager(db.store(), &recorder)?.max_attempts(2).delete_done(true).start().await?;
    settled(&*db.store()).await?;
    outbox.shutdown().await;
    let counts = db.store().counts().await?;
    assert_eq!((counts.done, counts.dead), (0, 1));
    assert_eq!(recorder.calls().len(), 5);
    assert_eq!(outbox.stats().done, 3);
    Ok(())
}

/// Verdicts that cannot be recorded for a while are recorded later; no event is delivered again for it, and none overtakes.
pub(super) async fn a_settle_that_fails_for_a_while_breaks_no_order<H: Harness>(db: &H) -> Outcome {
    let recorder = Recorder::around(async |delivery: Delivery| match delivery.attempt() {
        1 if delivery.seq() % 5 == 0 => Err("not yet"),
        _ => Ok(()),
    });
    let faulty = FaultyStore::new(db.store());
    let outbox = eager(Arc::new(faulty.clone()), &recorder)?.start().await?;
    faulty.set(Operation::Settle, Fault::Unreachable);
    let written = in_turn(6, 120)?;
    db.write(written.clone()).await?;
    faulty.wait_for_faults(Operation::Settle, 2).await;
    faulty.set(Operation::Settle, Fault::None);
    settled(&*db.store()).await?;
    outbox.shutdown().await;
    let observed = Observed::read(db, &written, recorder.calls()).await?;
    observed.check()?;
    Ok(i3(&observed)?)
}
