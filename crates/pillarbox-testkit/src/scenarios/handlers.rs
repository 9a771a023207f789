use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use pillarbox_core::error::BoxError;
use pillarbox_core::event::Envelope;
use pillarbox_core::handle::{Delivery, Failure, FailureReason, Fallback, HandlerError, Outcome as Decision};
use pillarbox_core::retry::Retry;
use pillarbox_core::store::Store;
use pillarbox_engine::handlers::{Registration, Unroutable, on_batch, on_type};
use pillarbox_engine::maintain::{Changed, DeadEvents};
use pillarbox_engine::run::{Outbox, SingleNode};

use super::setting::{SOON, deliver, drained, settled, until, write, write_guarded};
use crate::events::record;
use crate::run::{Db, Outcome};
use crate::{Harness, Recorder, RecordingHook};

const PLACED: &str = "test.placed";

fn placed() -> Result<Envelope, BoxError> {
    Ok(Envelope::json(PLACED, "{}")?)
}

/// An outbox that polls the table all the time, without a handler yet.
fn outbox(store: Arc<dyn Store>) -> SingleNode {
    Outbox::single_node(store).poll_interval(Duration::from_millis(1), Duration::from_millis(20)).workers(1)
}

/// Retries at once.
fn at_once() -> Retry {
    Retry::fixed(Duration::from_millis(1))
}

/// A handler of [`PLACED`] with a name.
fn named(id: &str, recorder: &Recorder) -> Registration {
    on_type(PLACED, recorder.clone()).named(id)
}

/// The rows of an event by the handlers they are for: status and attempts.
async fn rows<H: Harness>(db: &Db<H>, event: &Envelope) -> Result<Vec<(Option<String>, i16, i32)>, BoxError> {
    let records = db.store().records(event.id().as_str()).await?;
    Ok(records.into_iter().map(|record| (record.handler, record.status, record.attempts)).collect())
}

fn row(handler: &str, status: i16, attempts: i32) -> (Option<String>, i16, i32) {
    (Some(handler.to_owned()), status, attempts)
}

/// The arguments of each call of a fallback.
#[derive(Clone, Default)]
struct Fallbacks(Arc<Mutex<Vec<(Delivery, Failure)>>>);

impl Fallbacks {
    fn push(&self, delivery: Delivery, failure: Failure) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push((delivery, failure));
    }

    /// A fallback that makes the event DONE.
    fn rescuing(&self) -> impl Fallback + use<> {
        let seen = self.clone();
        move |delivery: Delivery, failure: Failure| {
            seen.push(delivery, failure);
            async { Decision::Done }
        }
    }

    fn calls(&self) -> Vec<(Delivery, Failure)> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// One row for each handler, written with one statement; each handler gets its own, once, on every path, and the receipt
/// and the hooks speak of the event once.
pub(super) async fn every_named_handler_gets_a_row_of_its_own<H: Harness>(db: &Db<H>) -> Outcome {
    let (mailer, ledger, plain, hook) = (Recorder::new(), Recorder::new(), Recorder::new(), RecordingHook::new());
    let outbox = outbox(db.store())
        .handler(named("mailer", &mailer))
        .handler(on_type(PLACED, ledger.clone()).named("ledger"))
        .handle_type("test.other", plain.clone())
        .writer_hook(hook.clone())
        .start()
        .await?;
    let (cold, hot) = ([placed()?, Envelope::json("test.other", "{}")?], placed()?);
    let written = write(db, &outbox, &cold).await?;
    assert_eq!((written.len(), written.id()), (2, Some(cold[0].id())));
    assert!(written.ids().eq(cold.iter().map(Envelope::id)), "each id once, in write order");
    write_guarded(db, &outbox, std::slice::from_ref(&hot)).await?;
    let calls = async {
        mailer.wait_for_ends(2).await;
        ledger.wait_for_ends(2).await;
        plain.wait_for_ends(1).await;
    };
    tokio::time::timeout(SOON, calls).await.map_err(|_| "a handler was left out")?;
    drained(db, &outbox).await?;

    for event in [&cold[0], &hot] {
        assert_eq!(rows(db, event).await?, [row("mailer", 1, 0), row("ledger", 1, 0)]);
        assert_eq!((mailer.calls_of(event.id()).len(), ledger.calls_of(event.id()).len()), (1, 1));
    }
    assert_eq!(rows(db, &cold[1]).await?, [(None, 1, 0)]);
    assert_eq!((mailer.calls().len(), ledger.calls().len(), plain.calls().len()), (2, 2, 1));
    let ids = [cold[0].id(), cold[1].id(), hot.id()].map(Clone::clone);
    assert_eq!(
        (hook.written(), hook.committed()),
        (ids.to_vec(), vec![hot.id().clone()]),
        "hooks see events, not rows"
    );
    Ok(())
}

/// An event that fails for one handler is tried again and given up for that one alone; so is it replayed.
pub(super) async fn each_handler_has_failures_of_its_own<H: Harness>(db: &Db<H>) -> Outcome {
    let mailer = Recorder::around(async |delivery: Delivery| -> Result<(), String> {
        assert_eq!(delivery.handler_id(), Some("mailer"));
        Err(format!("no mail at attempt {}", delivery.attempt()))
    });
    let ledger = Recorder::around(async |delivery: Delivery| match delivery.failures() {
        0 => Err("busy"),
        _ => Ok(()),
    });
    let outbox = outbox(db.store())
        .retry(at_once())
        .handler(named("mailer", &mailer).retry(at_once().max_attempts(3)))
        .handler(named("ledger", &ledger))
        .start()
        .await?;
    let event = placed()?;
    write(db, &outbox, std::slice::from_ref(&event)).await?;
    settled(&*db.store()).await?;
    assert_eq!(rows(db, &event).await?, [row("mailer", 3, 3), row("ledger", 1, 1)]);
    assert_eq!((mailer.calls().len(), ledger.calls().len()), (3, 2));

    let dead = DeadEvents::of(&*db.store()).list(&Default::default(), None, 10).await?;
    assert_eq!(dead.iter().map(|dead| dead.handler.as_deref()).collect::<Vec<_>>(), [Some("mailer")]);
    let (dead, id) = (outbox.dead_events(), event.id().as_str());
    assert_eq!(dead.replay(id).await?, Changed::Rows(1));
    settled(&*db.store()).await?;
    assert_eq!((mailer.calls().len(), ledger.calls().len()), (6, 2), "only who gave it up gets it again");
    assert_eq!(dead.replay_for(id, "ledger").await?, Changed::NotDead, "that one has not given it up");
    assert_eq!(dead.replay_for(id, "nobody").await?, Changed::Unknown);
    assert_eq!(dead.replay_for(id, "mailer").await?, Changed::Rows(1));
    settled(&*db.store()).await?;
    assert_eq!((mailer.calls().len(), ledger.calls().len()), (9, 2));
    assert_eq!(dead.discard_for(id, "ledger").await?, Changed::NotDead, "that one has not given it up");
    assert_eq!(dead.discard_for(id, "mailer").await?, Changed::Rows(1));
    assert_eq!(dead.discard(id).await?, Changed::NotDead);
    outbox.shutdown().await;
    assert_eq!(rows(db, &event).await?, [row("ledger", 1, 1)], "what is DONE stays");
    Ok(())
}

/// A handler that takes batches gets what is for it and nothing of the others.
pub(super) async fn a_batch_holds_the_rows_of_one_handler<H: Harness>(db: &Db<H>) -> Outcome {
    let batches: Arc<Mutex<Vec<Vec<Delivery>>>> = Arc::default();
    let seen = Arc::clone(&batches);
    let index = move |deliveries: Vec<Delivery>| {
        let answers = deliveries.iter().map(|_| Decision::Done).collect::<Vec<_>>();
        seen.lock().unwrap_or_else(PoisonError::into_inner).push(deliveries);
        async move { answers }
    };
    let ledger = Recorder::new();
    let outbox = outbox(db.store())
        .handler(on_batch(PLACED, 100, index).named("index"))
        .handler(named("ledger", &ledger))
        .start()
        .await?;
    let events = [placed()?, placed()?, placed()?];
    deliver(db, &outbox, &events).await?;
    let batches = batches.lock().unwrap_or_else(PoisonError::into_inner).concat();
    assert!(batches.iter().all(|delivery| delivery.handler_id() == Some("index")));
    assert_eq!((batches.len(), ledger.calls().len()), (3, 3));
    Ok(())
}

/// A row names a handler that is not there, or none where one has to be named: DEAD with what to do about it, or parked.
pub(super) async fn a_row_for_nobody_is_unroutable<H: Harness>(db: &Db<H>) -> Outcome {
    let recorder = Recorder::new();
    let event = placed()?;
    let writer = Outbox::writer_only(db.store()).handled_by(PLACED, ["mailer", "gone"]).start().await?;
    write(db, &writer, std::slice::from_ref(&event)).await?;
    writer.shutdown().await;
    let parking = || outbox(db.store()).handler(named("mailer", &recorder)).handle_all(recorder.clone());
    let outbox = parking().unroutable(Unroutable::Park(Duration::from_millis(5))).start().await?;
    until(async || Ok(outbox.stats().deferred >= 2)).await?;
    outbox.shutdown().await;
    assert_eq!(rows(db, &event).await?, [row("mailer", 1, 0), row("gone", 2, 0)]);

    db.insert_three_columns("unnamed", PLACED, "{}").await?;
    let outbox = parking().unroutable(Unroutable::Dead).start().await?;
    drained(db, &outbox).await?;
    assert_eq!(rows(db, &event).await?, [row("mailer", 1, 0), row("gone", 3, 0)]);
    for (id, part) in [(event.id().as_str(), "with the name `gone`"), ("unnamed", "column `handler`")] {
        let records = db.store().records(id).await?;
        let error = records.last().and_then(|record| record.last_error.clone()).unwrap_or_default();
        assert!(error.contains(part) && error.contains(PLACED), "{error}");
    }
    assert_eq!(recorder.calls().len(), 1, "nobody else gets it, not even who takes all others");
    Ok(())
}

/// Three retries are four calls; then the fallback once, which makes the event DONE.
pub(super) async fn a_fallback_runs_once_when_retries_are_exhausted<H: Harness>(db: &Db<H>) -> Outcome {
    let failing = Recorder::around(async |_: Delivery| Err::<(), _>("no mail"));
    let fallbacks = Fallbacks::default();
    let mailer = named("mailer", &failing).retry(at_once().max_retries(3)).fallback(fallbacks.rescuing());
    let outbox = outbox(db.store()).handler(mailer).start().await?;
    let event = Envelope::builder(PLACED).payload_json("{}").header("channel", "web").build()?;
    deliver(db, &outbox, std::slice::from_ref(&event)).await?;

    assert_eq!(failing.calls().iter().map(|call| call.attempt).collect::<Vec<_>>(), [1, 2, 3, 4]);
    let [(delivery, failure)] = &fallbacks.calls()[..] else { return Err("the fallback did not run once".into()) };
    assert_eq!((failure.failures(), failure.error(), failure.is_exhausted()), (4, "no mail", true));
    assert_eq!((delivery.id(), delivery.handler_id(), delivery.attempt()), (event.id(), Some("mailer"), 4));
    assert_eq!(delivery.headers().get("channel"), Some("web"));
    let row = record(db, &event).await?;
    assert_eq!((row.status, row.attempts), (1, 4), "every failed call is counted");
    assert_eq!(row.last_error.as_deref(), Some("no mail"), "the failure does not vanish");
    Ok(())
}

/// An event that is not worth a retry takes the same way after the first call, whether its error, a filter or the handler's
/// decision says so; the outbox's fallback serves handlers that have none.
pub(super) async fn a_fallback_runs_for_what_is_not_retryable<H: Harness>(db: &Db<H>) -> Outcome {
    let failing = Recorder::around(async |delivery: Delivery| match delivery.event_type() {
        "test.error" => Err(HandlerError::unrecoverable("no such address")),
        "test.filter" => Err(HandlerError::retryable(std::io::Error::from(std::io::ErrorKind::InvalidData))),
        _ => Ok(Decision::Dead("not wanted".to_owned())),
    });
    let fallbacks = Fallbacks::default();
    let outbox = outbox(db.store())
        .retry(at_once().never_retry_on_error::<std::io::Error>())
        .handle_all(failing.clone())
        .fallback(fallbacks.rescuing())
        .start()
        .await?;
    let types = ["test.error", "test.filter", "test.decision"];
    let events = types.into_iter().map(|name| Envelope::json(name, "{}")).collect::<Result<Vec<_>, _>>()?;
    deliver(db, &outbox, &events).await?;
    assert_eq!((failing.calls().len(), fallbacks.calls().len()), (3, 3));
    let kept = [(0, "no such address"), (1, "invalid data"), (0, "not wanted")];
    for (event, (attempts, error)) in events.iter().zip(kept) {
        let row = record(db, event).await?;
        assert_eq!((row.status, row.attempts), (1, attempts), "{}", event.event_type());
        assert!(row.last_error.as_deref().is_some_and(|kept| kept.contains(error)), "{row:?}");
    }
    for (delivery, failure) in fallbacks.calls() {
        assert_eq!(failure.reason(), FailureReason::NotRetryable, "{}", delivery.event_type());
    }
    Ok(())
}

/// A fallback that fails or panics leaves the event DEAD with what it said; nothing of it is tried again.
#[expect(clippy::panic, reason = "this is about a fallback that panics")]
pub(super) async fn a_fallback_that_fails_leaves_the_event_dead<H: Harness>(db: &Db<H>) -> Outcome {
    let failing = Recorder::around(async |_: Delivery| Err::<(), _>("no mail"));
    let fallbacks = Fallbacks::default();
    let seen = fallbacks.clone();
    let outbox = outbox(db.store())
        .retry(at_once().max_attempts(2))
        .handle_all(failing.clone())
        .fallback(move |delivery: Delivery, failure: Failure| {
            let panics = delivery.event_type() == "test.panic";
            seen.push(delivery, failure);
            async move {
                if panics {
                    panic!("a panic that a test asked for");
                }
                Err::<Decision, _>("no support either")
            }
        })
        .start()
        .await?;
    let events = [Envelope::json("test.error", "{}")?, Envelope::json("test.panic", "{}")?];
    deliver(db, &outbox, &events).await?;
    assert_eq!((failing.calls().len(), fallbacks.calls().len()), (4, 2));
    for (event, said) in events.iter().zip(["no support either", "a panic that a test asked for"]) {
        let row = record(db, event).await?;
        assert_eq!((row.status, row.attempts), (3, 2));
        let error = row.last_error.unwrap_or_default();
        assert!(error.contains(said) && error.contains("no mail"), "{error}");
    }
    Ok(())
}

/// In order, a head that its fallback ends lets those behind it go on, in order.
pub(super) async fn a_fallback_ends_a_failing_head_in_order<H: Harness>(db: &Db<H>) -> Outcome {
    let recorder = Recorder::around(async |delivery: Delivery| match delivery.event_type() {
        "test.head" => Err("no mail"),
        _ => Ok(()),
    });
    let outbox = Outbox::ordered(db.store())
        .poll_interval(Duration::from_millis(1), Duration::from_millis(20))
        .retry(at_once().max_attempts(2))
        .handle_all(recorder.clone())
        .fallback(async |_: Delivery, _: Failure| Decision::Done)
        .start()
        .await?;
    let events = [Envelope::json("test.head", "{}")?, Envelope::json("test.next", "{}")?];
    deliver(db, &outbox, &events).await?;
    let order: Vec<_> = recorder.calls().into_iter().map(|call| call.id).collect();
    assert_eq!(order, [events[0].id().clone(), events[0].id().clone(), events[1].id().clone()]);
    let rows = [record(db, &events[0]).await?, record(db, &events[1]).await?];
    assert_eq!(rows.map(|row| (row.status, row.attempts)), [(1, 2), (1, 0)]);
    Ok(())
}

/// The observer of DEAD events is told of each event once, after a fallback that could not help; the event stays DEAD whatever
/// the observer does. A handler's own observer takes the place of the outbox's.
#[expect(clippy::panic, reason = "this is about an observer that panics")]
pub(super) async fn an_observer_of_dead_events_leaves_them_dead<H: Harness>(db: &Db<H>) -> Outcome {
    let failing = Recorder::around(async |_: Delivery| Err::<(), _>("no mail"));
    let (own, general) = (Fallbacks::default(), Fallbacks::default());
    let (seen_own, seen) = (own.clone(), general.clone());
    let outbox = outbox(db.store())
        .retry(at_once().max_attempts(2))
        .unroutable(Unroutable::Dead)
        .handler(on_type("test.own", failing.clone()).on_dead(move |delivery: Delivery, failure: Failure| {
            seen_own.push(delivery, failure);
            async { Err::<(), _>("support is away") }
        }))
        .handler(on_type("test.panic", failing.clone()))
        .handler(
            on_type("test.twice", failing.clone())
                .fallback(async |_: Delivery, _: Failure| Decision::Dead("nor by letter".to_owned())),
        )
        .on_dead(move |delivery: Delivery, failure: Failure| {
            let panics = delivery.event_type() == "test.panic";
            seen.push(delivery, failure);
            async move {
                if panics {
                    panic!("a panic that a test asked for");
                }
            }
        })
        .start()
        .await?;
    let types = ["test.own", "test.panic", "test.twice", "test.unknown"];
    let events = types.into_iter().map(|name| Envelope::json(name, "{}")).collect::<Result<Vec<_>, _>>()?;
    deliver(db, &outbox, &events).await?;
    for event in &events {
        let row = record(db, event).await?;
        assert_eq!(row.status, 3, "{row:?}");
        let error = row.last_error.unwrap_or_default();
        assert!(!error.contains("support") && !error.contains("panic that"), "an observer adds nothing: {error}");
    }
    let told = |calls: &Fallbacks| {
        let mut told: Vec<_> = calls.calls().iter().map(|(delivery, _)| delivery.event_type().to_owned()).collect();
        told.sort_unstable();
        told
    };
    assert_eq!(
        (told(&own), told(&general)),
        (vec![types[0].to_owned()], types[1..].iter().map(|&t| t.to_owned()).collect())
    );
    for (delivery, failure) in general.calls() {
        let (reason, part) = match delivery.event_type() {
            "test.panic" => (FailureReason::Exhausted, "no mail"),
            "test.twice" => (FailureReason::Exhausted, "nor by letter"),
            _ => (FailureReason::Unroutable, "no handler"),
        };
        assert!(failure.reason() == reason && failure.error().contains(part), "{failure:?}");
    }
    Ok(())
}

/// If rows name their holder, the last failure and its end are both recorded before the row is anybody's.
pub(super) async fn a_fallback_ends_a_row_that_its_node_holds<H: Harness>(db: &Db<H>) -> Outcome {
    let failing = Recorder::around(async |_: Delivery| Err::<(), _>("no mail"));
    let fallbacks = Fallbacks::default();
    let outbox = Outbox::multi_node(db.store())
        .poll_interval(Duration::from_millis(1), Duration::from_millis(20))
        .retry(at_once().max_attempts(2))
        .handler(named("mailer", &failing))
        .handler(named("ledger", &failing))
        .fallback(fallbacks.rescuing())
        .start()
        .await?;
    let event = placed()?;
    write_guarded(db, &outbox, std::slice::from_ref(&event)).await?;
    drained(db, &outbox).await?;
    assert_eq!((failing.calls().len(), fallbacks.calls().len()), (4, 2));
    assert_eq!(rows(db, &event).await?, [row("mailer", 1, 2), row("ledger", 1, 2)]);
    let held = db.store().records(event.id().as_str()).await?.into_iter().filter_map(|record| record.locked_by);
    assert_eq!(held.count(), 0, "nobody holds what is DONE");
    Ok(())
}

/// An error with a cause.
#[derive(Debug, thiserror::Error)]
#[error("the mail could not be sent")]
struct Sending(#[source] std::io::Error);

/// An error that no filter lets pass is given up at its first call, through its chain of causes; never wins.
pub(super) async fn errors_that_are_not_retryable_go_dead_at_once<H: Harness>(db: &Db<H>) -> Outcome {
    use std::io::{Error, ErrorKind};
    let failing = Recorder::around(async |delivery: Delivery| -> Result<(), BoxError> {
        let kind = match delivery.event_type() {
            "test.refused" => ErrorKind::ConnectionRefused,
            "test.denied" => ErrorKind::PermissionDenied,
            _ => return Err("not of the network".into()),
        };
        Err(Sending(Error::from(kind)).into())
    });
    let is = |error: &(dyn std::error::Error + 'static), kind| {
        error.downcast_ref::<Error>().is_some_and(|error| error.kind() == kind)
    };
    let retry = at_once()
        .max_attempts(3)
        .retry_on_error::<Error>()
        .never_retry_on(move |error| is(error, ErrorKind::PermissionDenied));
    let outbox = outbox(db.store()).retry(retry).handle_all(failing.clone()).start().await?;
    let cases = [("test.refused", 3), ("test.denied", 1), ("test.text", 1)];
    let events = cases.iter().map(|(name, _)| Envelope::json(*name, "{}")).collect::<Result<Vec<_>, _>>()?;
    deliver(db, &outbox, &events).await?;
    for (event, (name, calls)) in events.iter().zip(cases) {
        assert_eq!(failing.calls_of(event.id()).len(), calls, "{name}");
        let row = record(db, event).await?;
        assert_eq!((row.status, usize::try_from(row.attempts)), (3, Ok(calls)), "{name}");
    }
    Ok(())
}
