//! Operators of another process cancel pending events, and have others tried now, while nodes run.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering::SeqCst};
use std::time::Duration;

use pillarbox_core::error::BoxError;
use pillarbox_core::event::Envelope;
use pillarbox_core::handle::Delivery;
use pillarbox_core::ownership::NodeMode;
use pillarbox_core::retry::ExponentialBackoff;
use pillarbox_core::store::{PendingFilter, PendingState};
use pillarbox_engine::handlers::{Rate, on_type};
use pillarbox_engine::run::{Config, Outbox};
use tokio::sync::Semaphore;

use super::setting::{drained, until};
use crate::events::{HOUR, delayed, event, events, keyed_each};
use crate::run::{Db, Outcome};
use crate::{Harness, Recorder};

/// An outbox of one worker, whose events are tried again after an hour.
async fn outbox<H: Harness>(db: &Db<H>, mode: NodeMode, recorder: &Recorder) -> Result<Outbox, BoxError> {
    let mut config = Config::default();
    (config.claim.min_interval, config.claim.max_interval) = (Duration::from_millis(5), Duration::from_millis(20));
    config.retry.policy = Arc::new(ExponentialBackoff::constant(HOUR, HOUR));
    if mode != NodeMode::Ordered {
        config.dispatch.workers = 1;
    }
    let outbox = Outbox::builder(mode).store(db.store()).config(config).handle_all(recorder.clone());
    Ok(outbox.start().await?)
}

/// Fails every first attempt.
fn failing_once() -> Recorder {
    Recorder::around(async |delivery: Delivery| if delivery.attempt() == 1 { Err("not yet") } else { Ok(()) })
}

/// Fails the first event that it is called with.
fn failing_first() -> Recorder {
    let first = Arc::new(AtomicI64::new(0));
    Recorder::around(move |delivery: Delivery| {
        let seq = delivery.seq();
        let is_first = first.compare_exchange(0, seq, SeqCst, SeqCst).map_or_else(|first| first == seq, |_| true);
        async move { if is_first { Err("broken") } else { Ok(()) } }
    })
}

/// A handler whose calls end when a permit is added, and those permits.
pub(super) fn held_back() -> (Recorder, Arc<Semaphore>) {
    let gate = Arc::new(Semaphore::new(0));
    let opens = Arc::clone(&gate);
    let recorder = Recorder::around(move |_: Delivery| {
        let opens = Arc::clone(&opens);
        async move { opens.acquire().await.map(|permit| permit.forget()).map_err(|closed| closed.to_string()) }
    });
    (recorder, gate)
}

/// The `seq` of the row that waits for another attempt, once that is recorded.
async fn retrying<H: Harness>(db: &Db<H>) -> Result<i64, BoxError> {
    let (store, filter) = (db.store(), PendingFilter::new().state(PendingState::Retrying));
    until(async || Ok(store.count_pending(&filter).await? == 1)).await?;
    Ok(store.pending(&filter, 0, 1).await?.first().ok_or("it is gone")?.seq)
}

/// Events that wait in memory behind a call are not begun once they are cancelled; the others are, each once.
pub(super) async fn cancelled_events_leave_memory<H: Harness>(db: &Db<H>, mode: NodeMode) -> Outcome {
    let (recorder, gate) = held_back();
    let written = events(5)?;
    let seqs = db.write(written.clone()).await?;
    let (outbox, operator) = (outbox(db, mode, &recorder).await?, db.connect().await?);
    recorder.wait_for_calls(1).await;
    until(async || Ok(outbox.stats().in_memory == 5)).await?;
    let running = recorder.calls()[0].seq;
    let waiting: Vec<i64> = seqs.into_iter().filter(|seq| *seq != running).collect();
    let mut cancelled = operator.cancel(&waiting[..3]).await?;
    cancelled.sort_unstable();
    assert_eq!(cancelled, waiting[..3]);
    until(async || Ok(outbox.stats().in_memory == 2)).await?;
    gate.add_permits(written.len());
    drained(db, &outbox).await?;
    let mut called: Vec<i64> = recorder.calls().iter().map(|call| call.seq).collect();
    called.sort_unstable();
    let mut expected = vec![running, waiting[3]];
    expected.sort_unstable();
    assert_eq!(called, expected);
    let counts = db.store().counts().await?;
    assert_eq!((counts.done, counts.cancelled), (2, 3));
    operator.close().await;
    Ok(())
}

/// An event that is cancelled while its call runs is called to the end, and its verdict is refused: it stays cancelled.
pub(super) async fn the_verdict_on_a_cancelled_event_is_refused<H: Harness>(db: &Db<H>) -> Outcome {
    let (recorder, gate) = held_back();
    let seqs = db.write(events(1)?).await?;
    let (outbox, operator) = (outbox(db, NodeMode::SingleNode, &recorder).await?, db.connect().await?);
    recorder.wait_for_calls(1).await;
    assert_eq!(operator.cancel(&seqs).await?, seqs);
    gate.add_permits(1);
    until(async || Ok(outbox.stats().refused == 1)).await?;
    assert!(db.store().record(seqs[0]).await?.is_some_and(|record| record.is_cancelled()));
    assert_eq!(outbox.stats().done, 0);
    outbox.shutdown().await;
    operator.close().await;
    Ok(())
}

/// An event that waits an hour for its next attempt, in memory too, and one that is delayed for as long, are tried at once.
pub(super) async fn waiting_events_are_tried_now<H: Harness>(db: &Db<H>, mode: NodeMode) -> Outcome {
    let recorder = failing_once();
    db.write(events(1)?).await?;
    let (outbox, operator) = (outbox(db, mode, &recorder).await?, db.connect().await?);
    let failed = retrying(db).await?;
    assert_eq!(operator.retry_now(&[failed]).await?, [failed]);
    drained(db, &outbox).await?;
    let attempts: Vec<u32> = recorder.calls().iter().map(|call| call.attempt).collect();
    assert_eq!(attempts, [1, 2]);
    operator.close().await;
    Ok(())
}

/// A delayed event need not be waited for.
pub(super) async fn a_delayed_event_is_delivered_now<H: Harness>(db: &Db<H>) -> Outcome {
    let recorder = Recorder::new();
    let seqs = db.write(vec![delayed()?]).await?;
    let outbox = Outbox::single_node(db.store()).poll_interval(HOUR, HOUR).handle_all(recorder.clone()).start().await?;
    let pending = outbox.pending_events();
    let mut progress = Vec::new();
    assert_eq!(pending.retry_all_now(&PendingFilter::new(), |so_far| progress.push(so_far)).await?, 1);
    recorder.wait_for_calls(1).await;
    drained(db, &outbox).await?;
    assert_eq!((recorder.calls()[0].seq, progress), (seqs[0], vec![1]));
    Ok(())
}

/// Events behind a failing head go on once that is cancelled: it is over.
pub(super) async fn a_cancelled_head_lets_the_others_go_on<H: Harness>(db: &Db<H>, mode: NodeMode) -> Outcome {
    let recorder = failing_first();
    let seqs = db.write(keyed_each(&["k"; 4])?).await?;
    let (outbox, operator) = (outbox(db, mode, &recorder).await?, db.connect().await?);
    assert_eq!(retrying(db).await?, seqs[0]);
    assert_eq!(operator.cancel(&seqs[..1]).await?, seqs[..1]);
    drained(db, &outbox).await?;
    let called: Vec<i64> = recorder.calls().iter().map(|call| call.seq).collect();
    assert_eq!(called, seqs, "each once, in their order");
    operator.close().await;
    Ok(())
}

/// One that is cancelled while its call runs is over once that fails: it is not tried again, and those behind it go on.
pub(super) async fn a_head_that_is_cancelled_during_its_call_is_not_tried_again<H: Harness>(db: &Db<H>) -> Outcome {
    let gate = Arc::new(Semaphore::new(0));
    let opens = Arc::clone(&gate);
    let recorder = Recorder::around(move |delivery: Delivery| {
        let opens = Arc::clone(&opens);
        async move {
            drop(opens.acquire().await);
            if delivery.event_type() == "test.broken" { Err("broken") } else { Ok(()) }
        }
    });
    let broken = Envelope::builder("test.broken").payload_json("{}").build()?;
    let seqs = db.write([vec![broken], events(2)?].concat()).await?;
    let (outbox, operator) = (outbox(db, NodeMode::Ordered, &recorder).await?, db.connect().await?);
    recorder.wait_for_calls(1).await;
    until(async || Ok(outbox.stats().in_memory == 3)).await?;
    assert_eq!(operator.cancel(&seqs[..2]).await?, seqs[..2]);
    // The node has noticed: the second event is not in memory any more.
    until(async || Ok(outbox.stats().in_memory == 2)).await?;
    gate.close();
    drained(db, &outbox).await?;
    let called: Vec<i64> = recorder.calls().iter().map(|call| call.seq).collect();
    assert_eq!(called, [seqs[0], seqs[2]], "each once");
    operator.close().await;
    Ok(())
}

/// One that waits in its place until the rate of its handler allows it does not begin once it is cancelled.
pub(super) async fn an_event_that_waits_for_a_rate_in_order_can_be_cancelled<H: Harness>(db: &Db<H>) -> Outcome {
    let recorder = Recorder::new();
    let seqs = db.write(vec![event()?, event()?]).await?;
    let handler = on_type("test.event", recorder.clone()).rate(Rate::new(1, HOUR));
    let outbox = Outbox::builder(NodeMode::Ordered).store(db.store()).handler(handler).start().await?;
    let operator = db.connect().await?;
    until(async || Ok(outbox.limits().iter().all(|limit| limit.is_reached))).await?;
    assert_eq!(operator.cancel(&seqs[1..]).await?, seqs[1..]);
    until(async || Ok(outbox.stats().in_memory == 0)).await?;
    outbox.shutdown().await;
    assert_eq!(recorder.calls().len(), 1);
    operator.close().await;
    Ok(())
}
