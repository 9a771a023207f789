//! Limits of single handlers: how many of their calls run at once, and how many of their events begin in a time.

use std::time::Duration;

use pillarbox_core::error::BoxError;
use pillarbox_core::event::Envelope;
use pillarbox_core::ownership::NodeMode;
use pillarbox_engine::handlers::{HandlerLimit, Rate, on_type};
use pillarbox_engine::run::{Config, Outbox, OutboxBuilder};
use tokio::time::Instant;

use super::setting::{SOON, drained, until};
use crate::events::HOUR;
use crate::recorder::{Call, gated};
use crate::run::{Db, Outcome};
use crate::{Harness, Recorder};

const LIMITED: &str = "test.limited";
const OTHER: &str = "test.other";
const WORKERS: usize = 8;

/// An outbox with memory for few events, without a handler yet. In mode `ordered` it has one worker.
fn outbox<H: Harness>(db: &Db<H>, mode: NodeMode) -> OutboxBuilder {
    let mut config = Config::default();
    if mode != NodeMode::Ordered {
        (config.dispatch.workers, config.dispatch.cold_capacity) = (WORKERS, 40);
    }
    let often = (Duration::from_millis(1), Duration::from_millis(20));
    Outbox::builder(mode).store(db.store()).config(config).poll_interval(often.0, often.1)
}

/// `count` events of the limited handler, and then as many of the other one, of ten keys each.
fn both(count: usize) -> Result<Vec<Envelope>, BoxError> {
    let of = |name: &'static str| (0..count).map(move |index| (name, index % 10));
    let event = |(name, key): (&str, usize)| {
        Envelope::builder(name).key(format!("{name}-{key}")).payload_json("{}").build().map_err(BoxError::from)
    };
    of(LIMITED).chain(of(OTHER)).map(event).collect()
}

/// The largest number of calls that ran at once.
fn at_once(calls: &[Call]) -> usize {
    let ended = |call: &Call| call.ended.map_or_else(Instant::now, |(at, _)| at);
    let running_at = |at: Instant| calls.iter().filter(|call| call.began <= at && at < ended(call)).count();
    calls.iter().map(|call| running_at(call.began)).max().unwrap_or_default()
}

fn limit_of(outbox: &Outbox) -> Result<HandlerLimit, BoxError> {
    outbox.limits().pop().ok_or_else(|| "the handler has a limit".into())
}

/// No more calls of it run at once, however many workers are free; the other handler has all its events meanwhile, though the limited
/// one has more waiting than memory holds; and then all of its own are delivered, once and in the order of their keys.
pub(super) async fn runs_no_more_often_at_once<H: Harness>(db: &Db<H>, mode: NodeMode) -> Outcome {
    let ((limited, gate), other) = (gated(), Recorder::new());
    let all = both(100)?;
    db.write(all.clone()).await?;
    let outbox = outbox(db, mode)
        .handler(on_type(LIMITED, limited.clone()).concurrency(2))
        .handler(on_type(OTHER, other.clone()))
        .start()
        .await?;
    tokio::time::timeout(SOON * 4, other.wait_for_ends(100)).await.map_err(|_| "the other handler waits")?;
    until(async || Ok(limited.calls().len() == 2 && limit_of(&outbox)?.is_reached)).await?;
    let limit = limit_of(&outbox)?;
    assert_eq!((limit.event_type.as_deref(), limit.running, limit.concurrency), (Some(LIMITED), 2, Some(2)));

    gate.add_permits(30);
    limited.wait_for_ends(30).await;
    gate.close();
    drained(db, &outbox).await?;
    assert_eq!((limited.calls().len(), at_once(&limited.calls())), (100, 2));
    let limit = limit_of(&outbox)?;
    assert_eq!((limit.running, limit.is_reached), (0, false), "nothing waits any more");
    let calls = limited.calls().into_iter().chain(other.calls()).collect();
    db.observed(&all, calls).await?.check()?;
    Ok(())
}

/// No more of its events begin in a time, and no attempt is counted.
pub(super) async fn begins_no_more_events_than_its_rate<H: Harness>(db: &Db<H>, mode: NodeMode) -> Outcome {
    let (limited, other, interval) = (Recorder::new(), Recorder::new(), Duration::from_millis(20));
    let all = both(20)?;
    let began = Instant::now();
    db.write(all.clone()).await?;
    let outbox = outbox(db, mode)
        .handler(on_type(LIMITED, limited.clone()).rate(Rate::new(1, interval).burst(3)))
        .handler(on_type(OTHER, other.clone()))
        .start()
        .await?;
    drained(db, &outbox).await?;
    let mut calls = limited.calls();
    calls.sort_by_key(|call| call.began);
    assert_eq!((calls.len(), other.calls().len()), (20, 20));
    for (index, call) in (0..).zip(&calls) {
        let earliest = interval * u32::saturating_sub(index, 2);
        let after = call.began.duration_since(began);
        assert!(after >= earliest, "call {index} after {after:?}");
        assert_eq!(call.attempt, 1);
    }
    let calls = calls.into_iter().chain(other.calls()).collect();
    db.observed(&all, calls).await?.check()?;
    Ok(())
}

/// A handler that has used up its rate for an hour keeps its events waiting, more than memory holds, and nobody else's; the rest is left to
/// the table as it was.
pub(super) async fn holds_nobody_up<H: Harness>(db: &Db<H>, mode: NodeMode) -> Outcome {
    let (limited, other) = (Recorder::new(), Recorder::new());
    let all = both(100)?;
    db.write(all.clone()).await?;
    let outbox = outbox(db, mode)
        .handler(on_type(LIMITED, limited.clone()).rate(Rate::new(3, HOUR).burst(3)))
        .handler(on_type(OTHER, other.clone()))
        .start()
        .await?;
    tokio::time::timeout(SOON * 4, other.wait_for_ends(100)).await.map_err(|_| "the other handler waits")?;
    until(async || Ok(limit_of(&outbox)?.is_reached)).await?;
    until(async || Ok(db.store().counts().await?.pending() == 97)).await?;
    let stopping = Instant::now();
    outbox.shutdown().await;
    assert!(stopping.elapsed() < SOON / 2, "a stop waits for no rate: {:?}", stopping.elapsed());
    assert_eq!((limited.calls().len(), other.calls().len()), (3, 100));
    let counts = db.store().counts().await?;
    assert_eq!((counts.new, counts.retry, counts.done), (97, 0, 103), "nothing is counted as an attempt");
    let calls = limited.calls().into_iter().chain(other.calls()).collect();
    db.observed(&all, calls).await?.check()?;
    Ok(())
}
