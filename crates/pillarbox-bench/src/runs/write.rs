use std::time::Duration;

use tokio::time::Instant;

use crate::failure::Failure;
use crate::figures::{BenchSpecific, Figures, LossCount, WriteFigures};
use crate::lab::{BenchDb, Yardstick};
use crate::load::Load;
use crate::meter::{Goal, Meter, Progress};
use pillarbox_console::progress::bar;
use pillarbox_console::report::{per_second, rounded};

/// The most transactions of each kind, and the number of turns in which they are measured.
const TRANSACTIONS: u32 = 5_000;
const TURNS: u32 = 10;

/// Writing alone: a thousand events at once, and one event beside a business row.
///
/// No outbox runs: its part of a write happens in memory, after the statement.
pub(crate) async fn run(lab: &dyn BenchDb, load: &Load) -> Result<Figures, Failure> {
    lab.clear().await?;
    let write = one_by_one(lab, load).await?;
    lab.clear().await?;
    let yardstick = Yardstick::before(lab, load.events).await?;
    lab.rest().await?;
    let bar = bar(load.events.into(), "written");
    let progress = || Progress { written: bar.position(), done: 0 };
    let mut meter = Meter::start(lab, Goal::Write(load.events)).await?;
    let started = Instant::now();
    meter.watch(progress, load.fill(lab, &bar)).await?;
    let seconds = started.elapsed().as_secs_f64();
    let measured = meter.finish().await?;
    let rows = lab.count().await?;
    let yardstick = yardstick.after(lab).await?;
    let figures = Figures::new("write", lab, seconds, measured, BenchSpecific::Write(write));
    Ok(figures.with_events(load, LossCount::written(load, &rows)).with_yardstick(yardstick))
}

/// A business row alone and with an event, in turns, so that a slow machine slows both.
async fn one_by_one(lab: &dyn BenchDb, load: &Load) -> Result<WriteFigures, Failure> {
    let each = (load.events.min(TRANSACTIONS) / TURNS).max(1);
    let (mut alone, mut with_event) = (Duration::ZERO, Duration::ZERO);
    for turn in 0..TURNS {
        let started = Instant::now();
        for _ in 0..each {
            lab.transact(true, Vec::new()).await?;
        }
        alone += started.elapsed();
        let started = Instant::now();
        for number in 0..each {
            let event = load.event(turn * each + number).build().map_err(Failure::during("build an event"))?;
            lab.transact(true, vec![event]).await?;
        }
        with_event += started.elapsed();
    }
    let transactions = u64::from(each * TURNS);
    let alone = per_second(transactions, alone.as_secs_f64());
    let with_event = per_second(transactions, with_event.as_secs_f64());
    Ok(WriteFigures {
        business_only_per_s: rounded(alone, 0),
        business_with_event_per_s: rounded(with_event, 0),
        write_ratio: rounded(with_event / alone, 3),
    })
}
