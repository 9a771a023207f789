use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use pillarbox_core::error::BoxError;
use pillarbox_core::event::Envelope;
use pillarbox_core::handle::{Delivery, Outcome as Decision, in_transaction};
use pillarbox_core::retry::ExponentialBackoff;
use pillarbox_core::row::Change;
use pillarbox_core::store::Store;
use pillarbox_engine::handlers::{on_batch, on_type};
use pillarbox_engine::run::{FailingHead, Ordered, Outbox};

use super::setting::{assert_soon, deliver, drained, until, write, write_guarded};
use super::transactions::recording;
use crate::events::{HOUR, columns, event, events, retry_in, settle_all};
use crate::nodes::owner;
use crate::run::{Db, Outcome};
use crate::{Fault, FaultyStore, Harness, Operation, Recorder};

fn ordered(store: Arc<dyn Store>, recorder: &Recorder) -> Result<Ordered, BoxError> {
    let backoff = ExponentialBackoff::new(Duration::from_millis(1), Duration::from_millis(10))?;
    let outbox = Outbox::ordered(store).poll_interval(Duration::from_millis(5), Duration::from_millis(20));
    Ok(outbox.retry_policy(backoff).handle_all(recorder.clone()))
}

fn order(recorder: &Recorder) -> Vec<i64> {
    recorder.calls().iter().map(|call| call.seq).collect()
}

/// Fails the first two attempts of events of type `test.bad`.
fn failing_twice() -> Recorder {
    Recorder::around(async |delivery: Delivery| match delivery.event_type() {
        "test.bad" if delivery.attempt() < 3 => Err(format!("not yet at attempt {}", delivery.attempt())),
        _ => Ok(()),
    })
}

fn one_bad_among(before: usize, behind: usize) -> Result<Vec<Envelope>, BoxError> {
    let mut written = events(before + behind)?;
    written.insert(before, Envelope::json("test.bad", "{}")?);
    Ok(written)
}

/// Whichever way and in whichever batches they were written.
pub(super) async fn events_are_delivered_in_the_order_of_the_table<H: Harness>(db: &Db<H>) -> Outcome {
    let recorder = Recorder::new();
    let written = events(300)?;
    db.write(written[..100].to_vec()).await?;
    let outbox = ordered(db.store(), &recorder)?.cold_capacity(16).claim_batch(5).start().await?;
    for chunk in written[100..].chunks(20) {
        write_guarded(db, &outbox, chunk).await?;
    }
    drained(db, &outbox).await?;
    let order = order(&recorder);
    assert!(order.len() == 300 && order.is_sorted(), "{order:?}");
    Ok(db.observed(&written, recorder.calls()).await?.check()?)
}

/// Without any look that nothing asked for: a write is reason enough.
pub(super) async fn a_commit_is_delivered_in_order_without_polling<H: Harness>(db: &Db<H>) -> Outcome {
    let recorder = Recorder::new();
    let outbox = Outbox::ordered(db.store()).poll_interval(HOUR, HOUR).handle_all(recorder.clone()).start().await?;
    let written = events(3)?;
    for event in &written {
        let receipt = write(db, &outbox, std::slice::from_ref(event)).await?;
        outbox.notify_committed(receipt);
    }
    drained(db, &outbox).await?;
    assert_eq!(order(&recorder).len(), 3);
    assert!(order(&recorder).is_sorted());
    Ok(())
}

/// It is tried again in its place; those behind it wait, and its failures are in the table meanwhile.
pub(super) async fn a_failing_head_holds_up_those_behind_it<H: Harness>(db: &Db<H>) -> Outcome {
    let recorder = failing_twice();
    let written = one_bad_among(5, 5)?;
    let outbox = ordered(db.store(), &recorder)?.start().await?;
    deliver(db, &outbox, &written).await?;
    let ids: Vec<_> = recorder.calls().iter().map(|call| call.id.clone()).collect();
    let mut expected: Vec<_> = written.iter().map(|event| event.id().clone()).collect();
    expected.splice(5..6, [5, 5, 5].map(|index| written[index].id().clone()));
    assert_eq!(ids, expected);
    let row = columns(db, &written[5]).await?;
    assert_eq!((row.status, row.attempts, row.last_error), (1, 2, None));
    Ok(db.observed(&written, recorder.calls()).await?.check()?)
}

/// A deferral waits in its place too, and counts nothing.
pub(super) async fn a_deferred_head_holds_up_those_behind_it<H: Harness>(db: &Db<H>) -> Outcome {
    let calls = Arc::new(AtomicUsize::new(0));
    let recorder = Recorder::around(move |_: Delivery| {
        let call = calls.fetch_add(1, Ordering::SeqCst);
        async move { if call < 3 { Decision::Defer(Duration::from_millis(5)) } else { Decision::Done } }
    });
    let written = events(3)?;
    let outbox = ordered(db.store(), &recorder)?.start().await?;
    deliver(db, &outbox, &written).await?;
    let counts: Vec<_> = written.iter().map(|event| recorder.calls_of(event.id()).len()).collect();
    assert_eq!((counts, order(&recorder).is_sorted()), (vec![4, 1, 1], true));
    Ok(db.observed(&written, recorder.calls()).await?.check()?)
}

/// DEAD at its first failure, and the rest is delivered.
pub(super) async fn a_failing_head_goes_dead_and_the_rest_go_on<H: Harness>(db: &Db<H>) -> Outcome {
    let recorder = failing_twice();
    let written = one_bad_among(2, 3)?;
    let outbox = ordered(db.store(), &recorder)?.failing_head(FailingHead::DeadAndContinue).start().await?;
    deliver(db, &outbox, &written).await?;
    assert_eq!(recorder.calls().len(), 6);
    assert!(order(&recorder).is_sorted());
    let row = columns(db, &written[2]).await?;
    assert_eq!((row.status, row.attempts, row.last_error.as_deref()), (3, 1, Some("not yet at attempt 1")));
    Ok(())
}

/// The next owner begins with the head that failed, knows of its failures, and lets nothing overtake it.
pub(super) async fn a_standby_goes_on_with_the_failing_head<H: Harness>(db: &Db<H>) -> Outcome {
    let failing = Recorder::around(async |_: Delivery| Err::<(), _>("the mail server is down"));
    let forever = ExponentialBackoff::new(HOUR, HOUR)?;
    let first = ordered(db.store(), &failing)?.retry_policy(forever).start().await?;
    let written = events(4)?;
    write(db, &first, &written).await?;
    failing.wait_for_ends(1).await;
    until(async || Ok(columns(db, &written[0]).await?.attempts > 0)).await?;
    let began = tokio::time::Instant::now();
    first.shutdown().await;
    assert_soon(began);
    let row = columns(db, &written[0]).await?;
    assert_eq!((row.status, row.attempts, row.last_error.as_deref()), (2, 1, Some("the mail server is down")));

    let recorder = Recorder::new();
    let second = ordered(db.store(), &recorder)?.start().await?;
    let last = event()?;
    deliver(db, &second, std::slice::from_ref(&last)).await?;
    let attempts: Vec<_> = recorder.calls().iter().map(|call| call.attempt).collect();
    assert_eq!((order(&recorder).is_sorted(), attempts), (true, vec![2, 1, 1, 1, 1]));
    Ok(())
}

/// A batch handler is given one event at a time: the next may begin only when it is known what became of the one before.
pub(super) async fn a_batch_handler_is_called_for_one_event_at_a_time<H: Harness>(db: &Db<H>) -> Outcome {
    let sizes = Arc::new(std::sync::Mutex::new(Vec::new()));
    let log = Arc::clone(&sizes);
    let handler = move |deliveries: Vec<Delivery>| {
        let batch: Vec<(i64, u32)> = deliveries.iter().map(|delivery| (delivery.seq(), delivery.attempt())).collect();
        log.lock().unwrap_or_else(std::sync::PoisonError::into_inner).push(batch.clone());
        async move { batch.iter().map(|(_, attempt)| if *attempt == 1 { Err("not yet") } else { Ok(()) }).collect() }
    };
    let outbox = ordered(db.store(), &Recorder::new())?.handler(on_batch("test.event", 5, handler)).start().await?;
    let written = events(6)?;
    deliver(db, &outbox, &written).await?;
    let calls = sizes.lock().unwrap_or_else(std::sync::PoisonError::into_inner).clone();
    assert!(calls.iter().all(|batch| batch.len() == 1), "{calls:?}");
    let order: Vec<(i64, u32)> = calls.concat();
    assert!(order.len() == 12 && order.is_sorted(), "{order:?}");
    Ok(())
}

/// An event that another mode has tried before stands behind more earlier ones than are read at once, and is due.
pub(super) async fn a_due_retry_keeps_its_place_beyond_memory<H: Harness>(db: &Db<H>) -> Outcome {
    let recorder = Recorder::new();
    let seqs = db.write(events(200)?).await?;
    let store = db.store();
    let node = owner(&*store).await?;
    let retried = [199, 77, 150].map(|index: usize| seqs[index]);
    settle_all(&*store, &node, &retried, &retry_in(Duration::ZERO)).await?;
    store.leave(&node).await?;
    let outbox = ordered(store, &recorder)?.cold_capacity(16).claim_batch(5).start().await?;
    drained(db, &outbox).await?;
    assert_eq!(order(&recorder), seqs);
    Ok(())
}

/// Rows whose time has come are read by that time: where they are more than a fetch takes, the first of the table may be left out of it.
pub(super) async fn due_rows_beyond_a_fetch_are_not_overtaken<H: Harness>(db: &Db<H>) -> Outcome {
    let recorder = Recorder::new();
    let (store, seqs) = (db.store(), db.write(events(9)?).await?);
    let node = owner(&*store).await?;
    settle_all(&*store, &node, &seqs[1..5], &retry_in(Duration::ZERO)).await?;
    settle_all(&*store, &node, &seqs[..1], &retry_in(HOUR)).await?;
    assert_eq!(store.retry_now(&seqs[..1]).await?, seqs[..1], "its time comes last");
    store.leave(&node).await?;
    let outbox = ordered(db.store(), &recorder)?.claim_batch(3).start().await?;
    drained(db, &outbox).await?;
    assert_eq!(order(&recorder), seqs);
    Ok(())
}

/// The head of an owner before, which an operator wants to be tried now: where rows with a due time and those without one are read one after
/// the other, it may be in neither.
pub(super) async fn an_event_made_due_during_a_fetch_is_not_overtaken<H: Harness>(db: &Db<H>) -> Outcome {
    let recorder = Recorder::new();
    let (store, seqs) = (FaultyStore::new(db.store()), db.write(events(3)?).await?);
    let node = owner(&store).await?;
    let in_place = Change::RetryInPlace { attempts: 1, error: "not yet".to_owned() };
    settle_all(&store, &node, &seqs[..1], &in_place).await?;
    store.leave(&node).await?;
    store.retry_within_fetch(seqs[0]);
    let outbox = ordered(Arc::new(store), &recorder)?.start().await?;
    drained(db, &outbox).await?;
    assert_eq!(order(&recorder), seqs);
    Ok(())
}

/// It counts for nothing, and the event is tried again in its place, in the state that the table has. The handler may have a transaction.
pub(super) async fn a_failure_that_cannot_be_recorded<H: Harness>(db: &Db<H>, has_transaction: bool) -> Outcome {
    let store = FaultyStore::new(db.store());
    let written = events(20)?;
    let seqs = db.write(written.clone()).await?;
    let (refused, mended, calls) = (seqs[5], store.clone(), AtomicUsize::new(0));
    store.refuse_verdicts_of([refused]);
    let recorder = Recorder::around(move |delivery: Delivery| {
        let fails = delivery.seq() == refused && calls.fetch_add(1, Ordering::SeqCst) == 0;
        if delivery.seq() == refused && !fails {
            mended.refuse_verdicts_of([]);
        }
        async move { if fails { Err("not yet") } else { Ok(()) } }
    });
    // So late that the record of the failure has been tried.
    let backoff = ExponentialBackoff::new(Duration::from_millis(100), Duration::from_millis(100))?;
    let mut outbox = ordered(Arc::new(store), &recorder)?.retry_policy(backoff);
    if has_transaction {
        outbox = outbox.handler(on_type("test.event", in_transaction(db.transactions(), recording(&recorder))));
    }
    let outbox = outbox.start().await?;
    drained(db, &outbox).await?;
    let mut expected = seqs.clone();
    expected.insert(5, refused);
    assert_eq!(order(&recorder), expected);
    let row = columns(db, &written[5]).await?;
    assert_eq!((row.status, row.attempts), (1, 0));
    Ok(())
}

/// What is repeated then looks refused, and the table says that it is recorded.
pub(super) async fn a_failure_whose_record_has_no_answer_counts_once<H: Harness>(db: &Db<H>) -> Outcome {
    let (recorder, store) = (failing_twice(), FaultyStore::new(db.store()));
    let written = one_bad_among(0, 2)?;
    store.set(Operation::Settle, Fault::LostAnswer);
    let outbox = ordered(Arc::new(store.clone()), &recorder)?.start().await?;
    write(db, &outbox, &written).await?;
    store.wait_for_faults(Operation::Settle, 2).await;
    store.set(Operation::Settle, Fault::None);
    drained(db, &outbox).await?;
    let attempts: Vec<_> = recorder.calls().iter().map(|call| call.attempt).collect();
    assert_eq!((order(&recorder).is_sorted(), attempts), (true, vec![1, 2, 3, 1, 1]));
    let row = columns(db, &written[0]).await?;
    assert_eq!((row.status, row.attempts), (1, 2));
    Ok(db.observed(&written, recorder.calls()).await?.check()?)
}
