use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use pillarbox_core::error::BoxError;
use pillarbox_core::handle::{Delivery, HandlerError, Interceptor, Outcome as Decision};
use pillarbox_core::inbox::{Inbox, Once};
use pillarbox_core::store::{AuditedAction, DeadFilter};
use pillarbox_core::write::Finish as _;
use pillarbox_engine::maintain::Changed;
use pillarbox_engine::run::Outbox;

use super::setting::{deliver, eager, settled, until, write};
use crate::events::{HOUR, events};
use crate::run::{Db, Outcome};
use crate::{FaultyStore, Harness, Recorder};

/// DEAD events come back by themselves once they are replayed: all of them, each once, without polling.
pub(super) async fn replayed_events_are_delivered_again<H: Harness>(db: &Db<H>) -> Outcome {
    let healthy = Arc::new(std::sync::atomic::AtomicBool::new(false));
    let health = Arc::clone(&healthy);
    let recorder = Recorder::around(move |_: Delivery| {
        let healthy = health.load(std::sync::atomic::Ordering::SeqCst);
        async move { if healthy { Ok(()) } else { Err(HandlerError::unrecoverable("broken deploy")) } }
    });
    // A fetch that takes some time is not begun at the bottom again for a while.
    let store = FaultyStore::new(db.store());
    store.slow_line(Some(1000));
    let outbox = Outbox::single_node(Arc::new(store)).poll_interval(HOUR, HOUR).handle_all(recorder.clone());
    let outbox = outbox.start().await?;
    let written = events(12)?;
    write(db, &outbox, &written).await?;
    settled(&*db.store()).await?;
    let dead = outbox.dead_events();
    let filter = DeadFilter::default();
    assert_eq!(dead.count(&filter).await?, 12);
    let listed = dead.list(&filter, None, 5).await?;
    let rest = dead.list(&filter, listed.last().map(|event| event.seq), 100).await?;
    assert_eq!((listed.len(), rest.len()), (5, 7));
    assert_eq!(listed[0].last_error.as_deref(), Some("broken deploy"));

    healthy.store(true, std::sync::atomic::Ordering::SeqCst);
    assert_eq!(dead.discard(written[11].id().as_str()).await?, Changed::Rows(1));
    assert_eq!(dead.replay(written[0].id().as_str()).await?, Changed::Rows(1));
    recorder.wait_for_calls(13).await;
    settled(&*db.store()).await?;
    assert_eq!(dead.replay(written[0].id().as_str()).await?, Changed::NotDead, "not any more");
    assert_eq!(dead.discard(written[0].id().as_str()).await?, Changed::NotDead);
    assert_eq!(dead.discard(written[11].id().as_str()).await?, Changed::Unknown, "it is deleted");
    assert_eq!(dead.replay("no such event").await?, Changed::Unknown);
    let mut progress = Vec::new();
    assert_eq!(dead.replay_all(&filter, |so_far| progress.push(so_far)).await?, 10);
    assert_eq!(progress.last(), Some(&10));
    settled(&*db.store()).await?;
    assert_eq!(dead.replay_all(&filter, |_| {}).await?, 0);
    outbox.shutdown().await;
    let calls: Vec<_> = written.iter().map(|event| recorder.calls_of(event.id()).len()).collect();
    assert_eq!(calls, [vec![2; 11], vec![1]].concat());
    let gone = db.columns(written[11].id().as_str()).await?;
    assert!(gone.is_none(), "discarded events are deleted");
    Ok(())
}

/// In the background, what is over goes and what is not stays.
pub(super) async fn a_running_node_purges_what_is_over<H: Harness>(db: &Db<H>) -> Outcome {
    let recorder = Recorder::around(async |delivery: Delivery| match delivery.seq() % 2 {
        0 => Err(HandlerError::unrecoverable("no")),
        _ => Ok(()),
    });
    let outbox =
        eager(db.store(), &recorder)?.purge_done_after(Duration::ZERO).purge_interval(Duration::from_secs(1), 3);
    let outbox = outbox.start().await?;
    let written = events(20)?;
    db.write(written.clone()).await?;
    recorder.wait_for_calls(20).await;
    until(async || Ok(outbox.stats().purged >= 10)).await?;
    let counts = db.store().counts().await?;
    assert_eq!((counts.pending(), counts.done), (0, 0));
    assert_eq!((counts.dead, outbox.stats().purged), (10, 10), "DEAD events are kept by default");
    outbox.shutdown().await;
    let outbox = eager(db.store(), &recorder)?.purge_done_after(None).purge_dead_after(Duration::ZERO);
    let outbox = outbox.purge_interval(Duration::from_secs(1), 3).start().await?;
    until(async || Ok(outbox.stats().purged >= 10)).await?;
    assert_eq!(db.store().counts().await?.dead, 0);
    outbox.shutdown().await;
    Ok(())
}

/// In the background, old messages leave the inbox.
pub(super) async fn a_running_node_purges_the_inbox<H: Harness>(db: &Db<H>) -> Outcome {
    let inbox = Inbox::new(db.store(), "billing")?;
    let receive = async |id: &str| -> Result<Once, BoxError> {
        let mut transaction = db.begin().await?;
        let once = inbox.once(&mut transaction, id).await?;
        transaction.commit().await?;
        Ok(once)
    };
    for id in ["old 1", "old 2", "old 3"] {
        assert_eq!(receive(id).await?, Once::First);
    }
    db.age_inbox(1800).await?;
    assert_eq!(receive("young").await?, Once::First);
    let outbox = eager(db.store(), &Recorder::new())?.purge_inbox_after(Duration::from_secs(1200));
    let outbox = outbox.purge_interval(Duration::from_secs(1), 2).start().await?;
    until(async || Ok(db.store().count_inbox("billing").await? == 1)).await?;
    assert_eq!(receive("young").await?, Once::Again);
    outbox.shutdown().await;
    Ok(())
}

/// In the background, old entries leave the audit table.
pub(super) async fn a_running_node_purges_the_audit_table<H: Harness>(db: &Db<H>) -> Outcome {
    let store = db.store();
    let record = async |who| store.record_action(&AuditedAction::new(who, "replay", "all")).await;
    for _ in 0..3 {
        record("old").await?;
    }
    db.age_audit(1800).await?;
    let young = record("young").await?;
    let outbox = eager(db.store(), &Recorder::new())?.purge_audit_after(Duration::from_secs(1200));
    let outbox = outbox.purge_interval(Duration::from_secs(1), 2).start().await?;
    until(async || Ok(store.actions(None, 10).await?.len() == 1)).await?;
    assert_eq!(store.actions(None, 10).await?[0].id, young);
    outbox.shutdown().await;
    Ok(())
}

/// With each renewal: events delivered, failed attempts, events given up, and how long it took.
pub(super) async fn a_node_writes_what_it_has_done_into_its_row<H: Harness>(db: &Db<H>) -> Outcome {
    let recorder = Recorder::around(async |delivery: Delivery| match delivery.seq() % 2 {
        0 => Err(HandlerError::unrecoverable("no")),
        _ => Ok(()),
    });
    let outbox = eager(db.store(), &recorder)?.lease(Duration::from_secs(2)).start().await?;
    db.write(events(20)?).await?;
    recorder.wait_for_calls(20).await;
    settled(&*db.store()).await?;
    let (figures, latency) = (Mutex::new(None), Mutex::new(None));
    until(async || {
        let nodes = db.store().nodes().await?;
        let [node] = &nodes[..] else { return Err(format!("one node runs: {nodes:?}").into()) };
        let Some(found) = node.figures else { return Ok(false) };
        let mut seen = latency.lock().unwrap_or_else(PoisonError::into_inner);
        // The interval in which the last calls ended may be over.
        *seen = seen.max(found.latency_p50.zip(found.latency_p99));
        *figures.lock().unwrap_or_else(PoisonError::into_inner) = Some(found);
        Ok(found.delivered + found.dead == 20 && seen.is_some())
    })
    .await?;
    let figures = figures.into_inner().unwrap_or_else(PoisonError::into_inner).ok_or("there are figures")?;
    assert_eq!((figures.delivered, figures.failed, figures.dead), (10, 10, 10));
    assert_eq!((figures.busy, figures.queued), (0, 0));
    let (p50, p99) = latency.into_inner().unwrap_or_else(PoisonError::into_inner).ok_or("there are latencies")?;
    assert!(p50 <= p99 && p99 < HOUR, "{p50:?} {p99:?}");
    outbox.shutdown().await;
    Ok(())
}

/// Rows of any state go by their age if no node delivers.
pub(super) async fn a_writer_purges_by_age<H: Harness>(db: &Db<H>) -> Outcome {
    let writer = Outbox::writer_only(db.store())
        .purge_all_after(Duration::from_millis(1))
        .purge_interval(Duration::from_secs(1), 4);
    let writer = writer.start().await?;
    let written = events(10)?;
    write(db, &writer, &written).await?;
    until(async || Ok(writer.stats().purged >= 10)).await?;
    assert_eq!((db.store().counts().await?.new, writer.stats().purged), (0, 10));
    writer.shutdown().await;
    Ok(())
}

/// Writes down that it ran.
struct Logged(&'static str, Arc<Mutex<Vec<String>>>, bool);

impl Logged {
    fn log(&self, what: &str) {
        self.1.lock().unwrap_or_else(PoisonError::into_inner).push(format!("{} {what}", self.0));
    }
}

impl Interceptor for Logged {
    async fn before(&self, _delivery: &Delivery) -> Result<(), BoxError> {
        self.log("before");
        if self.2 { Err("not today".into()) } else { Ok(()) }
    }

    async fn after(&self, _delivery: &Delivery, ended: Result<&Decision, &HandlerError>) -> Result<(), BoxError> {
        self.log(if ended.is_ok() { "after" } else { "after failure" });
        Err("an error here is only logged".into())
    }
}

/// Before in order, after in reverse and only where before ran; one that fails counts as an attempt and skips the handler.
pub(super) async fn interceptors_run_around_the_handler<H: Harness>(db: &Db<H>) -> Outcome {
    for (failing, expected, status) in [
        (false, &["a before", "b before", "b after", "a after"][..], (1, 0)),
        (true, &["a before", "b before", "a after failure"][..], (3, 1)),
    ] {
        let log = Arc::new(Mutex::new(Vec::new()));
        let recorder = Recorder::new();
        let outbox =
            Outbox::single_node(db.store()).poll_interval(HOUR, HOUR).max_attempts(1).handle_all(recorder.clone());
        let outbox = outbox.interceptor(Logged("a", Arc::clone(&log), false)).interceptor(Logged(
            "b",
            Arc::clone(&log),
            failing,
        ));
        let outbox = outbox.start().await?;
        let written = events(1)?;
        deliver(db, &outbox, &written).await?;
        assert_eq!(*log.lock().unwrap_or_else(PoisonError::into_inner), expected);
        assert_eq!(recorder.calls().len(), usize::from(!failing));
        let row = db.columns(written[0].id().as_str()).await?.ok_or("the row is gone")?;
        assert_eq!((row.status, row.attempts), status);
    }
    Ok(())
}
