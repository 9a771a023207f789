//! Operators pause event types and handlers for the whole fleet, and resume them, while nodes run.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use pillarbox_core::error::BoxError;
use pillarbox_core::event::Envelope;
use pillarbox_core::handle::Path;
use pillarbox_core::ownership::NodeMode;
use pillarbox_core::store::{NewPause, PauseKind, PendingFilter, Store};
use pillarbox_engine::handlers::on_type;
use pillarbox_engine::maintain::PauseNote;
use pillarbox_engine::run::{Config, Outbox, OutboxBuilder};
use tokio::time::{Instant, sleep};

use super::setting::{drained, settled, until, write_guarded};
use crate::events::{HOUR, event, events, keyed, keyed_each};
use crate::invariants::i3_events_of_a_key_are_handled_one_at_a_time_and_in_order as i3;
use crate::recorder::gated;
use crate::run::{Db, Outcome};
use crate::{Harness, Recorder};

/// The type that is paused.
const PAUSED: &str = "test.paused";
/// The time that operators are promised: by then every node has noticed, or asks before its next call.
const NOTICED: Duration = Duration::from_millis(2100);

/// An event of the type that is paused, of this key.
fn paused(key: Option<&str>) -> Result<Envelope, BoxError> {
    let builder = Envelope::builder(PAUSED).payload_json("{}");
    Ok(key.into_iter().fold(builder, |builder, key| builder.key(key)).build()?)
}

/// Events of the type that is paused, each without a key.
fn many_paused(count: usize) -> Result<Vec<Envelope>, BoxError> {
    (0..count).map(|_| paused(None)).collect()
}

/// A node that polls the table all the time.
fn polling(mode: NodeMode, store: Arc<dyn Store>) -> OutboxBuilder {
    let builder = Outbox::builder(mode).store(store).config(Config::default());
    builder.poll_interval(Duration::from_millis(5), Duration::from_millis(20))
}

fn node(mode: NodeMode, store: Arc<dyn Store>, recorder: &Recorder) -> OutboxBuilder {
    polling(mode, store).handle_all(recorder.clone())
}

/// The `seq` of the calls so far, in their order.
fn called(recorder: &Recorder) -> Vec<i64> {
    recorder.calls().iter().map(|call| call.seq).collect()
}

/// Nothing is pending any more, and each of the rows was called once, as its first attempt.
async fn each_called_once<H: Harness>(db: &Db<H>, outbox: &Outbox, recorder: &Recorder, rows: usize) -> Outcome {
    drained(db, outbox).await?;
    let mut calls = BTreeMap::<i64, Vec<u32>>::new();
    for call in recorder.calls() {
        calls.entry(call.seq).or_default().push(call.attempt);
    }
    assert_eq!(calls.len(), rows);
    assert!(calls.values().all(|attempts| attempts == &[1]), "{calls:?}");
    Ok(())
}

async fn pause_type(store: &dyn Store) -> Outcome {
    store.pause(&NewPause::new(PauseKind::Type, PAUSED)).await?;
    Ok(())
}

async fn resume_type(store: &dyn Store) -> Outcome {
    assert!(store.resume(PauseKind::Type, PAUSED).await?, "it was paused");
    Ok(())
}

/// Events of a paused type stay in the table while others are delivered, and are delivered once it is resumed; no attempt is counted.
pub(super) async fn a_paused_type_is_left_in_the_table<H: Harness>(db: &Db<H>, mode: NodeMode) -> Outcome {
    let recorder = Recorder::new();
    pause_type(&*db.store()).await?;
    db.write(many_paused(3)?).await?;
    let others = db.write(events(3)?).await?;
    let outbox = node(mode, db.store(), &recorder).start().await?;
    recorder.wait_for_calls(3).await;
    until(async || Ok(db.store().counts().await?.done == 3)).await?;
    let mut first = called(&recorder);
    first.sort_unstable();
    assert_eq!((first, db.store().count_paused().await?), (others, 3));
    resume_type(&*db.connect().await?).await?;
    each_called_once(db, &outbox, &recorder, 6).await
}

/// Events that wait in memory behind a call are not begun once their type is paused, and the call ends well.
pub(super) async fn a_pause_reaches_what_waits_in_memory<H: Harness>(db: &Db<H>, mode: NodeMode) -> Outcome {
    let (recorder, gate) = gated();
    db.write(many_paused(5)?).await?;
    let mut builder = node(mode, db.store(), &recorder);
    if mode != NodeMode::Ordered {
        builder = builder.workers(1);
    }
    let (outbox, operator) = (builder.start().await?, db.connect().await?);
    recorder.wait_for_calls(1).await;
    until(async || Ok(outbox.stats().in_memory == 5)).await?;
    pause_type(&*operator).await?;
    // All that waited is left to the table; in the order of the table it is read again, and waits in its place.
    let noticed = if mode == NodeMode::Ordered { 5 } else { 1 };
    let paused = outbox.pauses();
    until(async || Ok(outbox.stats().in_memory == noticed && !paused.list().await?.is_empty())).await?;
    sleep(NOTICED).await;
    gate.add_permits(100);
    until(async || Ok(db.store().counts().await?.done == 1)).await?;
    if mode != NodeMode::Ordered {
        db.write(vec![event()?]).await?;
        until(async || Ok(db.store().counts().await?.done == 2)).await?;
    }
    let so_far = called(&recorder).len();
    assert_eq!(so_far, if mode == NodeMode::Ordered { 1 } else { 2 }, "nothing of what is paused has begun");
    resume_type(&*operator).await?;
    each_called_once(db, &outbox, &recorder, 4 + so_far).await
}

/// An event that is committed on a node where its type is paused is not delivered from memory; another one is.
pub(super) async fn a_paused_type_is_not_delivered_hot<H: Harness>(db: &Db<H>, mode: NodeMode) -> Outcome {
    let recorder = Recorder::new();
    pause_type(&*db.store()).await?;
    // It polls the table for a reason only.
    let outbox = node(mode, db.store(), &recorder).poll_interval(HOUR, HOUR).start().await?;
    until(async || Ok(outbox.health().last_poll.is_some())).await?;
    let (held, free) = (paused(None)?, event()?);
    write_guarded(db, &outbox, std::slice::from_ref(&held)).await?;
    write_guarded(db, &outbox, std::slice::from_ref(&free)).await?;
    recorder.wait_for_calls(1).await;
    until(async || Ok(db.store().counts().await?.done == 1)).await?;
    assert!(outbox.pauses().resume_type(PAUSED).await?);
    drained(db, &outbox).await?;
    let calls: Vec<_> = recorder.calls().into_iter().map(|call| (call.id, call.path)).collect();
    assert_eq!(calls, [(free.id().clone(), Path::Hot), (held.id().clone(), Path::Cold)]);
    Ok(())
}

/// A node that has had nothing to do for a while asks before its next call: what was paused meanwhile is not called.
pub(super) async fn an_idle_node_notices_before_its_next_call<H: Harness>(db: &Db<H>, mode: NodeMode) -> Outcome {
    let recorder = Recorder::new();
    let outbox = node(mode, db.store(), &recorder).start().await?;
    write_guarded(db, &outbox, &events(1)?).await?;
    settled(&*db.store()).await?;
    until(async || Ok(outbox.stats().in_memory == 0)).await?;
    pause_type(&*db.connect().await?).await?;
    sleep(NOTICED).await;
    write_guarded(db, &outbox, &[paused(None)?]).await?;
    write_guarded(db, &outbox, &events(1)?).await?;
    until(async || Ok(db.store().count_paused().await? == 1)).await?;
    if mode != NodeMode::Ordered {
        recorder.wait_for_calls(2).await;
        until(async || Ok(db.store().counts().await?.done == 2)).await?;
    }
    let so_far = called(&recorder).len();
    assert_eq!(so_far, if mode == NodeMode::Ordered { 1 } else { 2 });
    resume_type(&*db.store()).await?;
    each_called_once(db, &outbox, &recorder, 3).await
}

/// Later events of a key wait behind one whose type is paused, so that order is kept; earlier ones and other keys go on.
pub(super) async fn a_paused_type_holds_its_keys_back<H: Harness>(db: &Db<H>) -> Outcome {
    let recorder = Recorder::new();
    pause_type(&*db.store()).await?;
    let written = vec![keyed("k")?, paused(Some("k"))?, keyed("k")?, keyed("j")?, paused(Some("k"))?, keyed("k")?];
    let seqs = db.write(written.clone()).await?;
    let outbox = node(NodeMode::Partitioned, db.store(), &recorder).start().await?;
    until(async || Ok(db.store().counts().await?.done == 2)).await?;
    let late = vec![keyed("k")?, keyed("m")?];
    let more = db.write(late.clone()).await?;
    until(async || Ok(db.store().counts().await?.done == 3)).await?;
    let mut so_far = called(&recorder);
    so_far.sort_unstable();
    assert_eq!(so_far, [seqs[0], seqs[3], more[1]]);
    resume_type(&*db.connect().await?).await?;
    each_called_once(db, &outbox, &recorder, 8).await?;
    let all = [written, late].concat();
    let observed = db.observed(&all, recorder.calls()).await?;
    observed.check()?;
    Ok(i3(&observed)?)
}

/// A key of which the table has far more than memory holds is held at its paused event, and goes on in order.
pub(super) async fn a_paused_type_holds_a_long_key_back<H: Harness>(db: &Db<H>) -> Outcome {
    let recorder = Recorder::new();
    pause_type(&*db.store()).await?;
    let mut written = keyed_each(&["k"; 60])?;
    written.insert(40, paused(Some("k"))?);
    let seqs = db.write(written.clone()).await?;
    let mut config = Config::default();
    (config.dispatch.cold_capacity, config.dispatch.workers, config.claim.batch) = (16, 2, 8);
    let outbox = node(NodeMode::Partitioned, db.store(), &recorder).config(config).start().await?;
    until(async || Ok(db.store().counts().await?.done == 40)).await?;
    db.write(vec![keyed("j")?]).await?;
    until(async || Ok(db.store().counts().await?.done == 41)).await?;
    assert_eq!(called(&recorder)[..40], seqs[..40]);
    resume_type(&*db.store()).await?;
    each_called_once(db, &outbox, &recorder, 62).await?;
    let calls = called(&recorder);
    assert_eq!(calls.iter().filter(|seq| seqs.contains(seq)).copied().collect::<Vec<_>>(), seqs);
    Ok(())
}

/// In the order of the table, all events wait behind one that is paused.
pub(super) async fn all_wait_behind_a_paused_event_in_order<H: Harness>(db: &Db<H>) -> Outcome {
    let recorder = Recorder::new();
    pause_type(&*db.store()).await?;
    let seqs = db.write(vec![event()?, paused(None)?, event()?, event()?]).await?;
    let outbox = node(NodeMode::Ordered, db.store(), &recorder).start().await?;
    until(async || Ok(db.store().counts().await?.done == 1 && outbox.stats().in_memory == 3)).await?;
    // One that waits in its place is over when it is cancelled, and those behind it go on.
    let more = db.write(vec![paused(None)?, event()?]).await?;
    assert_eq!(db.store().cancel(&seqs[1..2]).await?, seqs[1..2]);
    until(async || Ok(db.store().counts().await?.done == 3)).await?;
    assert_eq!(called(&recorder), [seqs[0], seqs[2], seqs[3]]);
    resume_type(&*db.connect().await?).await?;
    drained(db, &outbox).await?;
    assert_eq!(called(&recorder), [seqs[0], seqs[2], seqs[3], more[0], more[1]]);
    Ok(())
}

/// No node begins a call of what is paused, and all of them go on when it is resumed.
pub(super) async fn a_pause_holds_on_every_node<H: Harness>(db: &Db<H>, mode: NodeMode) -> Outcome {
    let recorder = Recorder::new();
    let one = node(mode, db.store(), &recorder).start().await?;
    let other = node(mode, db.connect().await?, &recorder).start().await?;
    pause_type(&*db.store()).await?;
    sleep(NOTICED).await;
    for outbox in [&one, &other] {
        write_guarded(db, outbox, &many_paused(10)?).await?;
        write_guarded(db, outbox, &events(10)?).await?;
    }
    until(async || Ok(db.store().counts().await?.done == 20)).await?;
    assert_eq!((recorder.calls().len(), db.store().count_paused().await?), (20, 20));
    resume_type(&*db.store()).await?;
    settled(&*db.store()).await?;
    other.shutdown().await;
    each_called_once(db, &one, &recorder, 40).await
}

/// Of an event for two handlers, the row for the paused one stays, and the other is delivered.
pub(super) async fn a_paused_handler_holds_its_rows_alone<H: Harness>(db: &Db<H>, mode: NodeMode) -> Outcome {
    let (mail, ledger) = (Recorder::new(), Recorder::new());
    let named = |name: &str, recorder: &Recorder| on_type("test.event", recorder.clone()).named(name);
    let builder = polling(mode, db.store()).handler(named("mail", &mail)).handler(named("ledger", &ledger));
    let outbox = builder.start().await?;
    let note = PauseNote::new().reason("the mailbox is full").by("a test");
    outbox.pauses().pause_handler("mail", &note).await?;
    sleep(NOTICED).await;
    let keyed = |key: &str| Envelope::builder("test.event").key(key).payload_json("{}").build();
    write_guarded(db, &outbox, &[keyed("k")?, keyed("k")?, keyed("j")?]).await?;
    until(async || Ok(db.store().counts().await?.done == 3)).await?;
    let waiting = db.store().count_pending(&PendingFilter::new().handler("mail")).await?;
    assert_eq!((ledger.calls().len(), mail.calls().len(), waiting), (3, 0, 3));
    assert!(outbox.pauses().resume_handler("mail").await?);
    drained(db, &outbox).await?;
    let attempts: Vec<_> = mail.calls().iter().map(|call| call.attempt).collect();
    assert_eq!((attempts, ledger.calls().len()), (vec![1; 3], 3));
    Ok(())
}

/// A pause that has an end is over by itself, and not before.
pub(super) async fn a_pause_ends_by_itself<H: Harness>(db: &Db<H>, mode: NodeMode) -> Outcome {
    let recorder = Recorder::new();
    let length = Duration::from_millis(500);
    let pause = NewPause { length: Some(length), ..NewPause::new(PauseKind::Type, PAUSED) };
    db.write(many_paused(2)?).await?;
    let before = Instant::now();
    db.store().pause(&pause).await?;
    let outbox = node(mode, db.store(), &recorder).start().await?;
    each_called_once(db, &outbox, &recorder, 2).await?;
    let early = recorder.calls().into_iter().find(|call| call.began < before + length);
    assert!(early.is_none(), "{early:?} after a pause from {before:?}");
    Ok(())
}

/// A drain delivers what it can, and names what is paused.
pub(super) async fn a_drain_names_what_is_paused<H: Harness>(db: &Db<H>, mode: NodeMode) -> Outcome {
    let recorder = Recorder::new();
    pause_type(&*db.store()).await?;
    db.write(vec![keyed("k")?, paused(Some("k"))?, keyed("k")?]).await?;
    let outbox = node(mode, db.store(), &recorder).start().await?;
    let left = outbox.drain(Duration::from_secs(100)).await?;
    let behind = u64::from(matches!(mode, NodeMode::Partitioned | NodeMode::Ordered));
    assert!(left.is_complete(), "{left}");
    assert_eq!((left.paused, left.blocked, recorder.calls().len() as u64), (1, behind, 2 - behind), "{left}");
    assert!(left.to_string().contains("1 paused"), "{left}");
    Ok(())
}
