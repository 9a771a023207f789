use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use crate::args::DrainArgs;
use crate::calls::Calls;
use crate::failure::Failure;
use crate::figures::{BackgroundLoad, BenchSpecific, DrainFigures, Figures, LossCount, Naive};
use crate::lab::{BenchDb, Kind, Yardstick, seconds_between};
use crate::load::Load;
use crate::meter::{Goal, Measured, Meter, Progress};
use crate::nodes::{NodeSettings, Nodes};
use crate::writers::Writers;
use pillarbox_console::progress::bar;
use pillarbox_console::report::{per_second, rounded};

/// A backlog that was written while no outbox ran, delivered by handlers that do nothing.
pub(crate) async fn run(lab: &Arc<dyn BenchDb>, load: &Load, args: &DrainArgs) -> Result<Figures, Failure> {
    lab.clear().await?;
    let yardstick = Yardstick::before(&**lab, load.events).await?;
    fill(&**lab, load, args).await?;
    let settings = settings(args);
    let drained = drain(lab, load, args, &settings).await?;
    let Drained { seconds, fate, measured, calls, company } = drained;
    let naive_per_s = match args.compare {
        Some(_) => Some(by_hand(&**lab, load, args).await?),
        None => None,
    };
    let yardstick = yardstick.after(&**lab).await?;

    let ours = per_second(load.events.into(), seconds);
    let naive =
        naive_per_s.map(|per_s| Naive { naive_per_s: rounded(per_s, 0), naive_ratio: rounded(ours / per_s, 1) });
    let figures = DrainFigures::new(args, &settings.config, load, &calls).with_company(company).with_naive(naive);
    let figures = Figures::new("drain", &**lab, seconds, measured, BenchSpecific::Drain(figures));
    Ok(figures.with_events(load, fate).with_yardstick(yardstick))
}

fn settings(args: &DrainArgs) -> NodeSettings {
    let mut settings = NodeSettings::from(args.mode);
    let config = &mut settings.config;
    config.settle.delete_done = args.delete_done;
    if let Some(workers) = args.workers {
        config.dispatch.workers = workers.into();
    }
    if let Some(batch) = args.batch {
        (config.claim.batch, config.settle.batch) = (batch.into(), batch.into());
    }
    settings
}

/// Writes the backlog, and the other rows of the table.
async fn fill(lab: &dyn BenchDb, load: &Load, args: &DrainArgs) -> Result<(), Failure> {
    for (kind, rows) in [(Kind::Done, args.done), (Kind::Dead, args.dead), (Kind::Delayed, args.delayed)] {
        lab.add(kind, rows, &load.payload).await?;
    }
    if args.blocked > 0 {
        load.block(lab, args.blocked).await?;
    }
    load.fill(lab, &bar(load.events.into(), "written")).await?;
    lab.rest().await
}

struct Drained {
    seconds: f64,
    fate: LossCount,
    measured: Measured,
    calls: Arc<Calls>,
    company: Option<BackgroundLoad>,
}

async fn drain(
    lab: &Arc<dyn BenchDb>,
    load: &Load,
    args: &DrainArgs,
    settings: &NodeSettings,
) -> Result<Drained, Failure> {
    let calls = Calls::new(load);
    let snapshot = if args.idle_transaction { Some(lab.hold_snapshot().await?) } else { None };
    let writers = Writers::new(lab, &load.company(), args.writers);
    let mut nodes = Nodes::open(&**lab, args.nodes).await?;
    let mut meter = Meter::start(&**lab, Goal::Deliver(load.events)).await?;
    let drained = async {
        let started = lab.now().await?;
        nodes.start(&calls, settings).await?;
        let events = u64::from(load.events);
        let progress = || Progress { written: events + writers.written(), done: nodes.done() };
        let work = async {
            let called = async {
                let called = nodes.wait_until_called(&calls, events).await;
                writers.stop();
                called
            };
            let (called, writing) = tokio::join!(called, writers.run());
            called?;
            nodes.wait_until_done(events + writers.written()).await?;
            writing
        };
        let writing: Duration = meter.watch(progress, work).await?;
        Ok::<_, Failure>((started, lab.now().await?, writing))
    }
    .await;
    nodes.stop().await;
    let (started, ended, writing) = drained?;
    let measured = meter.finish().await?;
    drop(snapshot);
    let rows = lab.count().await?;
    // A deleted row has no `done_at`.
    let seconds = seconds_between(started, if args.delete_done { ended } else { rows.last_done_at });
    let fate = LossCount::delivered(load, &calls, &rows, args.delete_done);
    let per_s = rounded(per_second(writers.written(), writing.as_secs_f64()), 0);
    let company = (args.writers > 0).then_some(BackgroundLoad { writers: args.writers, written_beside_per_s: per_s });
    Ok(Drained { seconds, fate, measured, calls, company })
}

/// The same backlog in the same table, by a hand-written loop. Returns events per second.
async fn by_hand(lab: &dyn BenchDb, load: &Load, args: &DrainArgs) -> Result<f64, Failure> {
    lab.clear().await?;
    fill(lab, load, args).await?;
    let snapshot = if args.idle_transaction { Some(lab.hold_snapshot().await?) } else { None };
    let started = Instant::now();
    let drained = lab.drain_by_hand().await?;
    drop(snapshot);
    Ok(per_second(drained, started.elapsed().as_secs_f64()))
}
