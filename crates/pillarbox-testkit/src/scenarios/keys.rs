mod handover;
mod heads;

use std::sync::Arc;
use std::time::Duration;

use pillarbox_core::error::BoxError;
use pillarbox_core::event::Envelope;
use pillarbox_core::handle::Delivery;
use pillarbox_core::retry::{ExponentialBackoff, Retry};
use pillarbox_core::store::{Admin as _, Store};
use pillarbox_core::write::Finish as _;
use pillarbox_engine::handlers::on_type;
use pillarbox_engine::run::{Config, Outbox, Partitioned};
use tokio::sync::Semaphore;
use tokio::time::{Instant, sleep};

use super::many_nodes::Off;
use super::setting::{assert_soon, drained, settled, until, write, write_guarded};
use crate::events::{HOUR, keyed, retry_in, rows, settle_all};
use crate::invariants::{i3_events_of_a_key_are_handled_one_at_a_time_and_in_order as i3, i7_memory_is_bounded};
use crate::nodes::owner;
use crate::run::{Db, Outcome};
use crate::{Ending, Fault, FaultyStore, Harness, Operation, Recorder};

pub(super) use handover::{
    a_handler_longer_than_the_drain_keeps_its_partition, a_handler_that_ends_when_it_is_told_to_has_not_failed,
    nodes_that_come_and_leave_deliver_nothing_twice, partitions_are_shared_evenly,
    the_keys_of_a_node_that_was_cut_off_go_to_another,
};
pub(super) use heads::{
    a_dead_head_keeps_its_key_waiting_until_it_is_replayed, a_discarded_head_lets_its_key_go_on,
    a_failure_that_cannot_be_recorded_keeps_its_key_waiting, a_key_goes_on_if_it_was_told_to,
    a_row_that_cannot_be_read_keeps_its_key_waiting, events_wait_behind_a_head_that_is_deferred,
    events_wait_behind_a_head_that_is_tried_again, keys_that_operators_let_go_on_are_not_overtaken,
};

/// A node that never polls the table unless it has a reason to.
fn unpolled(store: Arc<dyn Store>, recorder: &Recorder) -> Partitioned {
    Outbox::partitioned(store).poll_interval(HOUR, HOUR).handle_all(recorder.clone())
}

/// A node that polls the table all the time, and retries at once.
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

/// Waits until nothing is pending and shuts down: nothing was lost, nothing overtook another.
async fn nothing_was_overtaken<H: Harness>(
    db: &Db<H>,
    outbox: &Outbox,
    recorder: &Recorder,
    events: &[Envelope],
) -> Outcome {
    drained(db, outbox).await?;
    let observed = db.observed(events, recorder.calls()).await?;
    observed.check()?;
    Ok(i3(&observed)?)
}

/// As above, and nothing was delivered twice.
async fn kept_in_order<H: Harness>(db: &Db<H>, outbox: &Outbox, recorder: &Recorder, events: &[Envelope]) -> Outcome {
    nothing_was_overtaken(db, outbox, recorder, events).await?;
    for event in events {
        assert_eq!(recorder.calls_of(event.id()).len(), 1, "calls of event {}", event.id());
    }
    Ok(())
}

async fn statuses<H: Harness>(db: &Db<H>, events: &[Envelope]) -> Result<Vec<i16>, BoxError> {
    Ok(rows(db, events).await?.iter().map(|row| row.status).collect())
}

/// Whichever way they were written, in batches that cut keys apart, with handlers that take different times.
pub(super) async fn events_of_a_key_are_delivered_in_order<H: Harness>(db: &Db<H>) -> Outcome {
    let recorder = Recorder::around(async |delivery: Delivery| {
        if delivery.seq() % 3 == 0 {
            sleep(Duration::from_millis(1)).await;
        }
    });
    let written = in_turn(7, 400)?;
    db.write(written[..200].to_vec()).await?;
    let outbox = eager(db.store(), &recorder)?.claim_batch(11).cold_capacity(64).workers(8).start().await?;
    for chunk in written[200..].chunks(20) {
        write_guarded(db, &outbox, chunk).await?;
    }
    kept_in_order(db, &outbox, &recorder, &written).await
}

/// Both ways of committing wake the owner; without any look that nothing asked for.
pub(super) async fn a_commit_wakes_the_owner_of_its_key<H: Harness>(db: &Db<H>) -> Outcome {
    let recorder = Recorder::new();
    let outbox = unpolled(db.store(), &recorder).start().await?;
    let written = in_turn(3, 20)?;
    for (index, event) in written.iter().enumerate() {
        if index % 2 == 0 {
            write_guarded(db, &outbox, std::slice::from_ref(event)).await?;
        } else {
            write(db, &outbox, std::slice::from_ref(event)).await?;
        }
        let committed = Instant::now();
        recorder.wait_for_calls(index + 1).await;
        assert_soon(committed);
    }
    kept_in_order(db, &outbox, &recorder, &written).await
}

/// A handler that fails events of type `bad` as long as the semaphore has no permit.
fn failing_until() -> (Recorder, Arc<Semaphore>) {
    let fixed = Arc::new(Semaphore::new(0));
    let state = Arc::clone(&fixed);
    let recorder = Recorder::around(move |delivery: Delivery| {
        let fails = delivery.event_type() == "bad" && state.available_permits() == 0;
        async move { if fails { Err("not yet") } else { Ok(()) } }
    });
    (recorder, fixed)
}

/// The calls that ended well are those of `events`, in this order.
fn in_order_of_success(recorder: &Recorder, events: &[Envelope]) {
    let calls = recorder.calls().into_iter();
    let done = calls.filter(|call| call.ended.is_some_and(|(_, ending)| ending == Ending::Done));
    let order: Vec<_> = done.map(|call| call.id).filter(|id| events.iter().any(|event| event.id() == id)).collect();
    assert!(order.iter().eq(events.iter().map(Envelope::id)), "{order:?}");
}

/// One key stands still with far more events than fit into memory, another fails; all others are delivered.
pub(super) async fn a_slow_key_and_a_failing_key_delay_nobody_else<H: Harness>(db: &Db<H>) -> Outcome {
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
    let mut config = Config::default();
    (config.dispatch.workers, config.dispatch.hot_capacity, config.dispatch.cold_capacity) = (2, 1, 64);
    (config.claim.batch, config.settle.batch) = (32, 16);
    let node = eager(db.store(), &recorder)?.max_attempts(1000).workers(config.dispatch.workers);
    let node = node.cold_capacity(config.dispatch.cold_capacity).claim_batch(config.claim.batch);
    let outbox = node.settle_batch(config.settle.batch).start().await?;
    for other in &others {
        until(async || Ok(!recorder.calls_of(other.id()).is_empty())).await?;
        i7_memory_is_bounded(&outbox.stats(), &config)?;
    }
    gate.add_permits(1_000_000);
    nothing_was_overtaken(db, &outbox, &recorder, &written).await
}

/// A key with far more events than memory holds, which is refilled again and again, keeps no event waiting that another
/// program has written.
pub(super) async fn a_busy_key_keeps_nobody_else_waiting<H: Harness>(db: &Db<H>) -> Outcome {
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
        until(async || Ok(!recorder.calls_of(other.id()).is_empty())).await?;
        assert!(recorder.calls_of(busy[busy.len() - 1].id()).is_empty(), "the busy key is not done");
    }
    outbox.shutdown().await;
    Ok(())
}

/// It holds nobody up while its time has not come, and takes its place when it has.
pub(super) async fn a_delayed_event_holds_nobody_up<H: Harness>(db: &Db<H>) -> Outcome {
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
    drained(db, &outbox).await?;
    let calls: Vec<_> = recorder.calls().into_iter().map(|call| call.id).collect();
    written.rotate_left(1);
    assert!(calls.iter().eq(written.iter().map(Envelope::id)), "{calls:?}");
    Ok(())
}

/// A mode that keeps no order, or another outbox, may leave an event that is due again behind earlier ones of its key, of which
/// there are more than memory holds.
pub(super) async fn a_due_retry_waits_for_earlier_events_of_its_key_beyond_memory<H: Harness>(db: &Db<H>) -> Outcome {
    let recorder = Recorder::new();
    let written = in_turn(5, 600)?;
    let seqs = db.write(written.clone()).await?;
    let store = db.store();
    let node = owner(&*store).await?;
    // Two of one key in the wrong order of their due times, and one each of three others.
    let retried = [599, 594, 598, 297, 451].map(|index: usize| seqs[index]);
    settle_all(&*store, &node, &retried, &retry_in(Duration::ZERO)).await?;
    store.leave(&node).await?;
    let outbox = eager(store, &recorder)?.claim_batch(16).cold_capacity(32).workers(4).start().await?;
    kept_in_order(db, &outbox, &recorder, &written).await
}

/// Writers that stamp due time and creation by a clock of their own take turns with others whose clock is right.
pub(super) async fn a_writer_whose_clock_is_ahead_is_not_overtaken<H: Harness>(db: &Db<H>) -> Outcome {
    let recorder = Recorder::new();
    let outbox = eager(db.store(), &recorder)?.start().await?;
    let mut order = Vec::new();
    for index in 0..40 {
        let id = format!("event-{index}");
        if index % 2 == 0 {
            let (table, ahead) = (db.table("event"), H::sql_time(HOUR.as_secs().try_into()?));
            let columns = "event_id, event_type, aggregate_id, payload, available_at, created_at";
            let values = format!("'{id}', 'test.foreign', 'order-1', '{{}}', {ahead}, {ahead}");
            db.execute(&format!("INSERT INTO {table} ({columns}) VALUES ({values})")).await?;
        } else {
            db.insert_of_aggregate(&id, "order-1").await?;
        }
        order.push(id);
    }
    drained(db, &outbox).await?;
    let calls: Vec<String> = recorder.calls().iter().map(|call| call.id.as_str().to_owned()).collect();
    assert_eq!(calls, order);
    Ok(())
}

/// Numbers that were read before are given to other rows. The first of these may wait for the next poll from the bottom, and those after it
/// for nothing.
pub(super) async fn events_are_found_after_the_table_was_emptied<H: Harness>(db: &Db<H>) -> Outcome {
    let recorder = Recorder::new();
    db.write(in_turn(3, 100)?).await?;
    let outbox = eager(db.store(), &recorder)?.start().await?;
    settled(&*db.store()).await?;
    db.empty().await?;
    for number in 1..=4 {
        db.insert_of_aggregate(&format!("event-{number}"), "order-1").await?;
        let committed = Instant::now();
        recorder.wait_for_ends(100 + number).await;
        if number > 1 {
            assert_soon(committed);
        }
    }
    outbox.shutdown().await;
    Ok(())
}

/// Rows that other programs insert have neither key nor partition, or only an aggregate id.
pub(super) async fn rows_of_other_programs_are_delivered<H: Harness>(db: &Db<H>) -> Outcome {
    let recorder = Recorder::new();
    for index in 0..20 {
        db.insert_three_columns(&format!("event-{index}"), "test.event", "{}").await?;
    }
    let nodes = [eager(db.store(), &recorder)?.start().await?, eager(db.connect().await?, &recorder)?.start().await?];
    settled(&*db.store()).await?;
    for node in nodes {
        node.shutdown().await;
    }
    assert_eq!(recorder.calls().len(), 20);
    Ok(())
}

/// With far fewer keys than workers each key has a small share of the memory, and is behind nearly all the time: they are read by
/// statements that bring many events of all of them, in their order.
pub(super) async fn few_keys_of_many_workers_are_read_together<H: Harness>(db: &Db<H>) -> Outcome {
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
    kept_in_order(db, &outbox, &recorder, &written).await?;
    let fetches = store.calls(Operation::Fetch);
    assert!(fetches * 3 < written.len(), "{fetches} fetches for {} events", written.len());
    Ok(())
}

/// The lower `seq` is committed long after the higher one was delivered, and nothing waits for it meanwhile.
pub(super) async fn a_late_commit_of_another_key_is_delivered<H: Harness>(db: &Db<H>) -> Outcome {
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
    kept_in_order(db, &outbox, &recorder, &[early, vec![late]].concat()).await
}

/// A long transaction of a key, and right after it another of the same key, as when writers lock the thing they write
/// about: however far the outbox has read by then, they are delivered in their order.
pub(super) async fn a_late_commit_is_not_overtaken_by_what_was_written_after_it<H: Harness>(db: &Db<H>) -> Outcome {
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
    kept_in_order(db, &outbox, &recorder, &written).await
}

/// The rows of delivered events do not stay.
pub(super) async fn delivered_events_are_deleted_if_asked<H: Harness>(db: &Db<H>) -> Outcome {
    let (recorder, _never) = failing_until();
    let written = failing(&[("good", "a"), ("good", "b"), ("bad", "c"), ("good", "b")])?;
    db.write(written.clone()).await?;
    let outbox = eager(db.store(), &recorder)?.max_attempts(2).delete_done(true).start().await?;
    drained(db, &outbox).await?;
    let counts = db.store().counts().await?;
    assert_eq!((counts.done, counts.dead), (0, 1));
    assert_eq!(recorder.calls().len(), 5);
    assert_eq!(outbox.stats().done, 3);
    Ok(())
}

/// Verdicts that cannot be recorded for a while are recorded later; no event is delivered again for it, and none overtakes.
pub(super) async fn a_settle_that_fails_for_a_while_breaks_no_order<H: Harness>(db: &Db<H>) -> Outcome {
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
    nothing_was_overtaken(db, &outbox, &recorder, &written).await
}

/// Two handlers with names have the same events: each has its own order of a key, and its own attempts. The key of the one
/// that fails waits for that handler alone.
pub(super) async fn each_named_handler_has_its_own_order_and_its_own_retries<H: Harness>(db: &Db<H>) -> Outcome {
    let (mailer, fixed) = failing_until();
    let ledger = Recorder::around(async |delivery: Delivery| match (delivery.event_type(), delivery.failures()) {
        ("bad", 0) => Err("busy"),
        _ => Ok(()),
    });
    let at_once = || Retry::fixed(Duration::from_millis(1));
    let of_both = |event_type: &'static str| {
        let mailer = on_type(event_type, mailer.clone()).named("mailer").retry(at_once().max_attempts(1_000_000));
        [mailer, on_type(event_type, ledger.clone()).named("ledger").retry(at_once().max_attempts(2))]
    };
    let outbox = Outbox::partitioned(db.store()).poll_interval(Duration::from_millis(1), Duration::from_millis(20));
    let handlers = [of_both("bad"), of_both("good")].into_iter().flatten();
    let outbox = handlers.fold(outbox, |outbox, handler| outbox.handler(handler)).start().await?;
    let written = failing(&[("bad", "a"), ("good", "a"), ("good", "b"), ("good", "a"), ("good", "b")])?;
    write(db, &outbox, &written).await?;

    // The ledger gets all of its rows, its head at the second attempt; the mailer those of the other key.
    ledger.wait_for_ends(6).await;
    let done = |recorder: &Recorder| {
        let calls = recorder.calls();
        calls.iter().filter(|call| call.ended.is_some_and(|(_, ending)| ending == Ending::Done)).count()
    };
    until(async || Ok(done(&mailer) >= 2 && mailer.calls_of(written[0].id()).len() >= 3)).await?;
    in_order_of_success(&ledger, &[&written[..2], &written[3..4]].concat());
    in_order_of_success(&ledger, &[&written[2..3], &written[4..]].concat());
    for behind in [&written[1], &written[3]] {
        assert_eq!(mailer.calls_of(behind.id()).len(), 0, "it waits for the head of its handler");
    }

    fixed.add_permits(1);
    drained(db, &outbox).await?;
    in_order_of_success(&mailer, &[&written[..2], &written[3..4]].concat());
    assert_eq!(ledger.calls().len(), 6, "the failures of the other handler are not its own");
    for event in &written {
        let rows = db.store().records(event.id().as_str()).await?;
        let rows: Vec<_> = rows.iter().map(|row| (row.handler.as_deref(), row.status)).collect();
        assert_eq!(rows, [(Some("mailer"), 1), (Some("ledger"), 1)]);
    }
    let mut observed = db.observed(&written, mailer.calls()).await?;
    i3(&observed)?;
    observed = db.observed(&written, ledger.calls()).await?;
    Ok(i3(&observed)?)
}

/// Two processes whose clocks are minutes apart write the same keys in turn; the database's numbers are the order.
pub(super) async fn writers_whose_clocks_differ_change_no_order<H: Harness>(db: &Db<H>) -> Outcome {
    let recorder = Recorder::new();
    let off = Duration::from_secs(600);
    let fast = Outbox::writer_only(db.store()).clock(Off(off, true)).start().await?;
    let slow = Outbox::writer_only(db.store()).clock(Off(off, false)).start().await?;
    let written = in_turn(3, 24)?;
    for (index, event) in written.iter().enumerate() {
        write(db, if index % 2 == 0 { &fast } else { &slow }, std::slice::from_ref(event)).await?;
    }
    let outbox = eager(db.store(), &recorder)?.start().await?;
    kept_in_order(db, &outbox, &recorder, &written).await?;
    for key in 0..3 {
        in_order_of_success(&recorder, &written.iter().skip(key).step_by(3).cloned().collect::<Vec<_>>());
    }
    Ok(())
}
