use std::time::Duration;

use indicatif::ProgressBar;
use tokio::time::Instant;

use crate::failure::Failure;
use crate::figures::{Figures, LossCount, OwnFigures};
use crate::lab::{BenchDb, Yardstick};
use crate::load::Load;
use crate::meter::{Meter, Progress};
use pillarbox_program::progress::bar;
use pillarbox_program::report::per_second;

/// The most transactions of each kind, and the number of turns in which they are measured.
const TRANSACTIONS: u32 = 5_000;
const TURNS: u32 = 10;

/// Writing alone: a thousand events at once, and one event beside a business row.
///
/// No outbox runs: its part of a write happens in memory, after the statement.
pub(crate) async fn run(lab: &dyn BenchDb, load: &Load) -> Result<Figures, Failure> {
    lab.clear().await?;
    let own = one_by_one(lab, load).await?;
    lab.clear().await?;
    let yardstick = Yardstick::before(lab, load.events).await?;
    lab.rest().await?;
    let bar = bar(load.events.into(), "written");
    let progress = || Progress { written: bar.position(), done: 0 };
    // The load shows its own progress.
    let mut meter = Meter::start(lab, load.events, ProgressBar::hidden()).await?;
    let started = Instant::now();
    meter.watch(progress, load.fill(lab, &bar)).await?;
    let seconds = started.elapsed().as_secs_f64();
    let measured = meter.finish().await?;
    let rows = lab.count().await?;
    let yardstick = yardstick.after(lab).await?;
    let figures = Figures::new("write", lab, seconds, measured, own);
    Ok(figures.with_events(load, LossCount::written(load, &rows)).with_yardstick(yardstick))
}

/// A business row alone and with an event, in turns, so that a slow machine slows both.
async fn one_by_one(lab: &dyn BenchDb, load: &Load) -> Result<OwnFigures, Failure> {
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
    let mut own = OwnFigures::new("to write them, 1,000 in each transaction, nothing else running");
    let alternating = "transactions of one client, alternating with the next";
    own.rate("business_only_per_s", alone, "business row", alternating)?;
    own.rate("business_with_event_per_s", with_event, "  with event", "the same with one event beside the row")?;
    own.write_ratio(with_event / alone, "the second to the first")?;
    Ok(own)
}
