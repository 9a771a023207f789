use std::sync::atomic::{AtomicU64, Ordering};

use crate::args::DrainArgs;
use crate::bench::calls::Calls;
use crate::bench::figures::{DrainFigures, Fate, Figures, Own};
use crate::bench::lab::{Kind, Lab, Yardstick, seconds_between};
use crate::bench::load::Load;
use crate::bench::meter::{Goal, Meter, Progress};
use crate::bench::nodes::{NodeSettings, Nodes};
use crate::failure::Failure;

/// A backlog that was written while no outbox ran, delivered by handlers that do nothing.
pub(crate) async fn run(lab: &dyn Lab, load: &Load, args: &DrainArgs) -> Result<Figures, Failure> {
    lab.clear().await?;
    let yardstick = Yardstick::before(lab).await?;
    for (kind, rows) in [(Kind::Done, args.done), (Kind::Dead, args.dead), (Kind::Delayed, args.delayed)] {
        lab.add(kind, rows, &load.payload).await?;
    }
    if args.blocked > 0 {
        load.block(lab, args.blocked).await?;
    }
    let written = AtomicU64::new(0);
    load.fill(lab, &written).await?;
    lab.rest().await?;
    let calls = Calls::new(load);
    let mut settings = NodeSettings::from(args.mode);
    settings.config.settle.delete_done = args.delete_done;
    let mut nodes = Nodes::open(lab, args.nodes).await?;
    let mut meter = Meter::start(lab, Goal::Deliver(load.events)).await?;
    let outcome = async {
        let started = lab.now().await?;
        nodes.start(&calls, &settings).await?;
        let progress = || Progress { written: written.load(Ordering::Relaxed), done: nodes.done() };
        meter.watch(progress, nodes.wait_until_done(load.events.into())).await?;
        Ok::<_, Failure>((started, lab.now().await?))
    }
    .await;
    nodes.stop().await;
    let (started, ended) = outcome?;
    let measured = meter.finish().await?;
    let rows = lab.count().await?;
    let yardstick = yardstick.after(lab).await?;
    // A row that is gone does not say when.
    let seconds = seconds_between(started, if args.delete_done { ended } else { rows.last_done_at });
    let fate = if args.delete_done { Fate::removed(load, &calls, &rows) } else { Fate::delivered(load, &calls, &rows) };
    let figures = Figures::new("drain", lab, seconds, measured, Own::Drain(DrainFigures::new(args, load, &calls)));
    Ok(figures.with_events(load, fate).with_yardstick(yardstick))
}
