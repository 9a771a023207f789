use std::time::Duration;

use pillarbox_core::error::BoxError;
use pillarbox_core::event::codecs::Json;
use pillarbox_core::event::{Envelope, Event};
use pillarbox_core::handle::{Delivery, HandlerError, Outcome as Decision};
use pillarbox_engine::handlers::Unroutable;
use pillarbox_engine::run::Outbox;
use serde::{Deserialize, Serialize};

use super::setting::{drained, eager, settled, until};
use crate::events::events;
use crate::run::{Db, Outcome};
use crate::{Columns, Harness, Recorder};

/// Delivers all events to a handler that fails as told, and returns the rows once nothing is pending.
async fn run<H: Harness>(
    db: &Db<H>,
    recorder: &Recorder,
    limit: u32,
    written: &[Envelope],
) -> Result<Vec<Columns>, BoxError> {
    // One worker: what a failure costs it would be seen.
    let outbox = eager(db.store(), recorder)?.workers(1).max_attempts(limit).start().await?;
    db.write(written.to_vec()).await?;
    drained(db, &outbox).await?;
    let observed = db.observed(written, recorder.calls()).await?;
    observed.check()?;
    let row = |event: &Envelope| observed.rows.get(event.id()).cloned().ok_or_else(|| "a row is gone".into());
    written.iter().map(row).collect()
}

/// Every attempt is told its number; the last one makes the row DEAD, with its error and with itself counted.
pub(super) async fn a_failing_event_is_retried_and_goes_dead_at_the_limit<H: Harness>(db: &Db<H>) -> Outcome {
    let recorder = Recorder::around(async |delivery: Delivery| -> Result<(), String> {
        Err(format!("mail server is down at attempt {}", delivery.attempt()))
    });
    let written = events(2)?;
    for (event, row) in written.iter().zip(run(db, &recorder, 4, &written).await?) {
        let attempts: Vec<_> = recorder.calls_of(event.id()).iter().map(|call| call.attempt).collect();
        assert_eq!(attempts, [1, 2, 3, 4]);
        assert_eq!((row.status, row.attempts, row.ended), (3, 4, true));
        assert_eq!(row.last_error.as_deref(), Some("mail server is down at attempt 4"));
    }
    Ok(())
}

/// A row that was retried and then delivered keeps its attempts and no error.
pub(super) async fn a_failure_that_passes_ends_well<H: Harness>(db: &Db<H>) -> Outcome {
    let recorder = Recorder::around(async |delivery: Delivery| match delivery.failures() {
        0 => Err(HandlerError::retryable("not yet")),
        1 => Err(HandlerError::retry_after(Duration::from_millis(5), "busy")),
        _ => Ok(()),
    });
    let written = events(3)?;
    for (event, row) in written.iter().zip(run(db, &recorder, 10, &written).await?) {
        assert_eq!(recorder.calls_of(event.id()).len(), 3);
        assert_eq!((row.status, row.attempts, row.last_error), (1, 2, None));
    }
    Ok(())
}

/// The only worker lives through every panic, which counts like any failure.
#[expect(clippy::panic, reason = "this is about a handler that panics")]
pub(super) async fn a_panic_is_a_failure_and_the_worker_survives<H: Harness>(db: &Db<H>) -> Outcome {
    let recorder = Recorder::around(async |delivery: Delivery| {
        if delivery.event_type() == "test.panic" {
            panic!("a panic that a test asked for");
        }
    });
    let mut written = events(3)?;
    written.insert(1, Envelope::json("test.panic", "{}")?);
    let rows = run(db, &recorder, 2, &written).await?;
    assert_eq!(rows.iter().map(|row| row.status).collect::<Vec<_>>(), [1, 3, 1, 1]);
    assert_eq!((recorder.calls_of(written[1].id()).len(), rows[1].attempts), (2, 2));
    let error = rows[1].last_error.as_deref().unwrap_or_default();
    assert!(error.contains("panicked") && error.contains("a panic that a test asked for"), "{error}");
    Ok(())
}

/// DEAD after one call, whether the handler returns an unrecoverable error or decides so itself.
pub(super) async fn an_unrecoverable_failure_goes_dead_uncounted<H: Harness>(db: &Db<H>) -> Outcome {
    let recorder = Recorder::around(async |delivery: Delivery| match delivery.event_type() {
        "test.error" => Err(HandlerError::unrecoverable("no such address")),
        _ => Ok(Decision::Dead("not wanted".to_owned())),
    });
    let written = [Envelope::json("test.error", "{}")?, Envelope::json("test.decision", "{}")?];
    let rows = run(db, &recorder, 10, &written).await?;
    for (row, error) in rows.iter().zip(["no such address", "not wanted"]) {
        assert_eq!((row.status, row.attempts, row.last_error.as_deref()), (3, 0, Some(error)));
    }
    assert_eq!(recorder.calls().len(), 2);
    Ok(())
}

/// However often a handler asks for another time, the limit of attempts is not touched.
pub(super) async fn a_deferral_counts_no_attempt<H: Harness>(db: &Db<H>) -> Outcome {
    let calls = std::sync::atomic::AtomicUsize::new(0);
    let calls = std::sync::Arc::new(calls);
    let recorder = Recorder::around(move |_: Delivery| {
        let call = calls.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
        async move { if call < 4 { Decision::Defer(Duration::from_millis(2)) } else { Decision::Done } }
    });
    let written = events(1)?;
    let rows = run(db, &recorder, 2, &written).await?;
    assert_eq!((rows[0].status, rows[0].attempts), (1, 0));
    let attempts: Vec<_> = recorder.calls().iter().map(|call| call.attempt).collect();
    assert_eq!(attempts, [1, 1, 1, 1, 1]);
    Ok(())
}

#[derive(Debug, Serialize, Deserialize)]
struct Order {
    total: u32,
}

impl Event for Order {
    type Codec = Json;

    const TYPE: &'static str = "test.order";
}

/// A payload of another shape and a row that is no event go DEAD, each by itself and uncalled; the rest go on.
pub(super) async fn rows_that_cannot_be_read_go_dead_alone<H: Harness>(db: &Db<H>) -> Outcome {
    let (sender, mut totals) = tokio::sync::mpsc::unbounded_channel();
    let handler = move |order: Order| {
        let sent = sender.send(order.total);
        async move { sent.map_err(|_| "nobody listens") }
    };
    let outbox = Outbox::single_node(db.store()).handle(handler).start().await?;
    let good = |total| Envelope::builder(Order::TYPE).payload(&Order { total }).build();
    let wrong = Envelope::json(Order::TYPE, r#"{"total": "a lot"}"#)?;
    db.write(vec![good(1)?, wrong.clone(), good(2)?]).await?;
    db.insert_broken("broken").await?;
    db.write(vec![good(3)?]).await?;
    drained(db, &outbox).await?;

    let mut seen = Vec::new();
    while let Ok(total) = totals.try_recv() {
        seen.push(total);
    }
    seen.sort_unstable();
    assert_eq!(seen, [1, 2, 3]);
    for (id, reason) in [(wrong.id().as_str(), "test.order"), ("broken", "headers")] {
        let row = db.columns(id).await?.ok_or("the row is gone")?;
        assert_eq!((row.status, row.attempts), (3, 0), "{id}");
        let error = row.last_error.unwrap_or_default();
        assert!(error.contains(reason), "the error names what is wrong: {error}");
    }
    let counts = db.store().counts().await?;
    assert_eq!((counts.done, counts.dead), (3, 2));
    Ok(())
}

/// By default it is parked: it waits uncounted until somebody knows it, or until it is too old. Or it goes DEAD at once.
pub(super) async fn an_event_without_a_handler_goes_dead_or_is_parked<H: Harness>(db: &Db<H>) -> Outcome {
    let recorder = Recorder::new();
    let only_orders = || Outbox::single_node(db.store()).handle_type(Order::TYPE, recorder.clone());
    let unknown = Envelope::json("test.unknown", "{}")?;
    let outbox = only_orders().unroutable(Unroutable::Dead).start().await?;
    db.write(vec![unknown.clone()]).await?;
    drained(db, &outbox).await?;
    let row = db.columns(unknown.id().as_str()).await?.ok_or("the row is gone")?;
    assert_eq!((row.status, row.attempts), (3, 0));
    assert!(row.last_error.is_some_and(|error| error.contains("test.unknown")));

    let old = Envelope::json("test.old", "{}")?;
    let (often, soon) = (Unroutable::Park(Duration::from_millis(5)), Duration::from_millis(50));
    let outbox = only_orders().unroutable(often).unroutable_dead_after(soon).start().await?;
    db.write(vec![old.clone()]).await?;
    settled(&*db.store()).await?;
    assert!(outbox.stats().deferred > 0, "it was parked before");
    outbox.shutdown().await;
    let row = db.columns(old.id().as_str()).await?.ok_or("the row is gone")?;
    assert_eq!((row.status, row.attempts), (3, 0));

    let parked = Envelope::json("test.parked", "{}")?;
    let outbox = only_orders().unroutable(Unroutable::Park(Duration::from_millis(5))).start().await?;
    db.write(vec![parked.clone()]).await?;
    until(async || Ok(outbox.stats().deferred >= 3)).await?;
    outbox.shutdown().await;
    let row = db.columns(parked.id().as_str()).await?.ok_or("the row is gone")?;
    assert_eq!((row.status, row.attempts), (2, 0));

    let knows_it = eager(db.store(), &recorder)?.start().await?;
    drained(db, &knows_it).await?;
    assert_eq!(recorder.calls_of(parked.id()).len(), 1);
    assert!(recorder.calls_of(unknown.id()).is_empty(), "DEAD stays DEAD");

    let waits = Envelope::json("test.waits", "{}")?;
    let outbox = only_orders().start().await?;
    db.write(vec![waits.clone()]).await?;
    until(async || Ok(outbox.stats().deferred >= 1)).await?;
    outbox.shutdown().await;
    let row = db.columns(waits.id().as_str()).await?.ok_or("the row is gone")?;
    assert_eq!((row.status, row.attempts, row.timed), (2, 0, true), "half a minute is the default");
    Ok(())
}
