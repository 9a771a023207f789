use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use pillarbox::Outbox;
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::drain::seconds_between;
use super::figures::{Figures, HotFigures};
use super::lab::{Lab, Yardstick};
use super::load::{Calls, Load, wait_until_done};
use crate::args::ModeArg;
use crate::failure::Failure;
use crate::report::{per_second, rounded};

/// Writers flat out, each transaction one event, while the events are delivered from memory; and the same writers alone.
pub(crate) async fn run(lab: &Arc<dyn Lab>, load: &Load, writers: u16) -> Result<Figures, Failure> {
    lab.clear().await?;
    let yardstick = Yardstick::before(&**lab).await?;
    // Writing alone is measured on both sides of the run: half before, half after.
    let mut alone = write_half_alone(lab, load, writers).await?;
    lab.clear().await?;
    lab.rest().await?;
    let calls = Calls::new(load);
    let outbox = calls.start_outbox(lab.store(), ModeArg::SingleNode, false).await?;
    let started = lab.now().await?;
    let outcome = async {
        let writing = write(lab, load, load.events, writers, Some((&outbox, &calls))).await?;
        wait_until_done(std::slice::from_ref(&outbox), load.events).await?;
        Ok::<_, Failure>(writing)
    }
    .await;
    tracing::info!(stats = ?outbox.stats(), "the outbox has");
    outbox.shutdown().await;
    let writing = outcome?;
    let rows = lab.count().await?;
    lab.clear().await?;
    lab.rest().await?;
    alone += write_half_alone(lab, load, writers).await?;
    let yardstick = yardstick.after(&**lab).await?;

    let events = u64::from(load.events);
    let written_per_s = per_second(events, writing.as_secs_f64());
    let write_only_per_s = per_second(half(load) * 2, alone.as_secs_f64());
    let hot = HotFigures {
        writers,
        written_per_s: rounded(written_per_s, 0),
        write_only_per_s: rounded(write_only_per_s, 0),
        write_ratio: rounded(written_per_s / write_only_per_s, 3),
        done_within_1s: share(rows.done_within_1s, events),
        commit_to_handler_us: calls.stopwatch.latency(),
    };
    let seconds = seconds_between(started, rows.last_done_at);
    let figures = Figures::new("hot", &**lab, load, seconds, yardstick);
    Ok(figures.delivered(calls.duplicates(), &rows).with_hot(hot))
}

fn half(load: &Load) -> u64 {
    u64::from(load.events.div_ceil(2))
}

async fn write_half_alone(lab: &Arc<dyn Lab>, load: &Load, writers: u16) -> Result<Duration, Failure> {
    write(lab, load, load.events.div_ceil(2), writers, None).await
}

/// Writes `events` one per transaction: through the guard of an outbox, or without any. Returns how long it took.
async fn write(
    lab: &Arc<dyn Lab>,
    load: &Load,
    events: u32,
    writers: u16,
    through: Option<(&Outbox, &Arc<Calls>)>,
) -> Result<Duration, Failure> {
    let next = Arc::new(AtomicU32::new(0));
    let started = Instant::now();
    let mut tasks = JoinSet::new();
    for _ in 0..writers {
        let (lab, load, next) = (Arc::clone(lab), load.clone(), Arc::clone(&next));
        let through = through.map(|(outbox, calls)| (outbox.clone(), Arc::clone(calls)));
        tasks.spawn(async move {
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= events {
                    return Ok::<_, Failure>(());
                }
                if let Some((outbox, calls)) = &through {
                    let committed = lab.write(outbox, load.event(number)).await?;
                    calls.stopwatch.committed(number as usize, committed);
                } else {
                    let event = load.event(number).build().map_err(Failure::during("build an event"))?;
                    lab.transact(false, vec![event]).await?;
                }
            }
        });
    }
    while let Some(written) = tasks.join_next().await {
        written??;
    }
    Ok(started.elapsed())
}

/// Rounded down: 1 means all of them.
#[expect(clippy::cast_precision_loss, reason = "a count of events is far below 2^52")]
fn share(part: u64, whole: u64) -> f64 {
    (part as f64 / whole as f64 * 1e6).floor() / 1e6
}
