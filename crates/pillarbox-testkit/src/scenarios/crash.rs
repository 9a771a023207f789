use std::sync::Arc;
use std::time::Duration;

use pillarbox_core::error::BoxError;
use pillarbox_core::event::Envelope;
use pillarbox_core::handle::{Delivery, Failure, Outcome as Decision};
use pillarbox_core::ownership::NodeMode;
use pillarbox_core::retry::Retry;
use pillarbox_core::store::Store;
use pillarbox_engine::handlers::{Events, on_type};
use pillarbox_engine::run::{Config, FailingKey, Outbox, Role};

use super::setting::drained;
use crate::events::{event, events, keyed};
use crate::run::{Db, Outcome};
use crate::{Fault, FaultyStore, Harness, Operation, Recorder};

const LIMIT: u32 = 3;
const WORKERS: usize = 8;

/// A handler that an event of type `test.poison` would kill together with its process: it never returns from that.
fn victim() -> Recorder {
    Recorder::around(async |delivery: Delivery| {
        if delivery.event_type() == "test.poison" {
            std::future::pending::<()>().await;
        }
    })
}

async fn start(mode: NodeMode, store: impl Store, recorder: &Recorder, workers: usize) -> Result<Outbox, BoxError> {
    let mut config = Config::default();
    config.shutdown.drain_timeout = Duration::ZERO;
    config.dispatch.workers = workers;
    if mode == NodeMode::Partitioned {
        config.retry.failing_key = FailingKey::SkipDead;
    }
    let outbox = Outbox::builder(mode).store(store).config(config);
    let outbox = if mode == NodeMode::MultiNode {
        // The limit is the handler's own, and no fallback runs that could be the cause.
        let handler = on_type(Events::Others, recorder.clone()).retry(Retry::new().max_attempts(LIMIT));
        outbox.handler(handler).fallback(async |_: Delivery, _: Failure| Decision::Done)
    } else {
        outbox.max_attempts(LIMIT).handle_all(recorder.clone())
    };
    Ok(outbox.start().await?)
}

/// What a process that dies leaves behind: nothing is given back, and its lease just ends.
async fn die<H: Harness>(db: &Db<H>, store: &FaultyStore<Arc<dyn Store>>, outbox: &Outbox) -> Outcome {
    let Role::Active { node } = outbox.role() else { return Err("it should deliver".into()) };
    store.set_all(Fault::Refused);
    db.expire(&node).await?;
    outbox.shutdown().await;
    Ok(())
}

/// Runs nodes that die of the poison, one after the other, until it is given up, and counts them.
async fn crashes<H: Harness>(db: &Db<H>, poison: &Envelope, mode: NodeMode) -> Result<(u32, Vec<Recorder>), BoxError> {
    let (mut crashed, mut recorders) = (0, Vec::new());
    loop {
        let store = FaultyStore::new(db.store());
        let recorder = victim();
        let outbox = start(mode, store.clone(), &recorder, WORKERS).await?;
        recorders.push(recorder.clone());
        let ended = loop {
            if db.columns(poison.id().as_str()).await?.is_some_and(|row| row.status == 3) {
                break true;
            }
            if !recorder.calls_of(poison.id()).is_empty() {
                break false;
            }
            tokio::time::sleep(Duration::from_millis(2)).await;
        };
        if ended {
            drained(db, &outbox).await?;
            return Ok((crashed, recorders));
        }
        die(db, &store, &outbox).await?;
        crashed += 1;
        assert!(crashed < 20, "it is never given up");
    }
}

/// Where keys keep their order, the poison is the head of its key, and the event behind it waits until it is given up. Where the table
/// does, it is held in its place.
pub(super) async fn poison_among_innocents<H: Harness>(db: &Db<H>, mode: NodeMode) -> Outcome {
    let mut written = events(6)?;
    let poison = Envelope::builder("test.poison").key("a").payload_json("{}").build()?;
    written.insert(3, poison.clone());
    written.push(keyed("a")?);
    db.write(written.clone()).await?;
    let (crashed, recorders) = crashes(db, &poison, mode).await?;
    // The first crash is what raises the suspicion; from then on each one counts.
    assert_eq!(crashed, LIMIT + 1);
    for event in &written {
        let row = db.columns(event.id().as_str()).await?.ok_or("a row is gone")?;
        if event.id() == poison.id() {
            assert_eq!((row.status, row.attempts), (3, LIMIT));
            let error = row.last_error.unwrap_or_default();
            assert!(error.contains("process ended during attempt 3"), "{error}");
        } else {
            assert_eq!(row.status, 1);
            assert!(row.attempts <= 1, "an innocent event shared a crash at most once: {}", row.attempts);
            let calls: usize = recorders.iter().map(|recorder| recorder.calls_of(event.id()).len()).sum();
            assert!(calls >= 1);
        }
    }
    Ok(())
}

/// An innocent event that has ended shares the next crash as well until its end is recorded, so the next suspect waits for that.
pub(super) async fn suspects_wait_for_the_record_of_the_one_before<H: Harness>(db: &Db<H>, mode: NodeMode) -> Outcome {
    let innocent = event()?;
    db.write(vec![innocent.clone(), Envelope::builder("test.poison").key("a").payload_json("{}").build()?]).await?;
    let begin = async || {
        let (store, recorder) = (FaultyStore::new(db.store()), victim());
        store.set(Operation::Settle, Fault::Unreachable);
        // One worker takes them in the order of the table.
        let outbox = start(mode, store.clone(), &recorder, 1).await?;
        Ok::<_, BoxError>((store, recorder, outbox))
    };
    // One crash raises the suspicion, and both are announced at the next.
    for _ in 0..2 {
        let (store, recorder, outbox) = begin().await?;
        recorder.wait_for_calls(2).await;
        die(db, &store, &outbox).await?;
    }
    let (store, recorder, outbox) = begin().await?;
    recorder.wait_for_ends(1).await;
    store.wait_for_faults(Operation::Settle, 3).await;
    assert_eq!(recorder.calls().len(), 1, "the next one runs, and nobody knows that the first has ended");
    store.set(Operation::Settle, Fault::None);
    recorder.wait_for_calls(2).await;
    let row = db.columns(innocent.id().as_str()).await?.ok_or("the row is gone")?;
    assert_eq!((row.status, row.attempts), (1, 1));
    die(db, &store, &outbox).await
}

/// However many events have been through a crash, they take one worker, and the others go on, though their handler is the same.
pub(super) async fn suspects_take_one_worker<H: Harness>(db: &Db<H>, mode: NodeMode) -> Outcome {
    const SUSPECTS: usize = 50;
    let poison = |number| Envelope::builder("test.poison").key(format!("p-{number}")).payload_json("{}").build();
    db.write((0..SUSPECTS).map(poison).collect::<Result<_, _>>()?).await?;
    // One crash raises the suspicion, and all are announced at the next.
    for _ in 0..2 {
        let (store, recorder) = (FaultyStore::new(db.store()), victim());
        let outbox = start(mode, store.clone(), &recorder, SUSPECTS).await?;
        recorder.wait_for_calls(SUSPECTS).await;
        die(db, &store, &outbox).await?;
    }
    let innocent = events(20)?;
    db.write(innocent.clone()).await?;
    let (store, recorder) = (FaultyStore::new(db.store()), victim());
    let outbox = start(mode, store.clone(), &recorder, WORKERS).await?;
    recorder.wait_for_ends(innocent.len()).await;
    recorder.wait_for_calls(innocent.len() + 1).await;
    assert_eq!(recorder.calls().len(), innocent.len() + 1, "one of the others runs, and never ends");
    die(db, &store, &outbox).await
}
