use std::sync::Arc;

use pillarbox::run::Config;
use tokio::time::Instant;

use super::backlog::{Backlog, Delivered};
use crate::args::{DrainArgs, HandlerArg};
use crate::calls::Calls;
use crate::failure::Failure;
use crate::figures::{Figures, LossCount, OwnFigures};
use crate::lab::{BenchDb, Kind, Yardstick};
use crate::load::Load;
use crate::nodes::{NodeSettings, Nodes, Work};
use crate::writers::Writers;
use pillarbox_program::progress::bar;
use pillarbox_program::report::{per_second, rounded};

/// A backlog that was written while no outbox ran, delivered by handlers that do nothing.
pub(crate) async fn run(lab: &Arc<dyn BenchDb>, load: &Load, args: &DrainArgs) -> Result<Figures, Failure> {
    lab.clear().await?;
    let yardstick = Yardstick::before(&**lab, load.events).await?;
    fill(&**lab, load, args).await?;
    let settings = settings(lab, args);
    let calls = Calls::new(load);
    let snapshot = if args.idle_transaction { Some(lab.hold_snapshot().await?) } else { None };
    let writers = Writers::new(lab, &load.company(), args.writers);
    let events = u64::from(load.events);
    let work = async |nodes: &Nodes| {
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
    let backlog = Backlog { lab: &**lab, load, nodes: args.nodes, settings: &settings };
    let (Delivered { rows, measured, seconds }, writing) =
        backlog.deliver(&calls, || events + writers.written(), work).await?;
    drop(snapshot);
    let naive_per_s = match args.compare {
        Some(_) => Some(by_hand(&**lab, load, args).await?),
        None => None,
    };
    let yardstick = yardstick.after(&**lab).await?;

    let mut own = own_figures(args, &settings.config)?;
    if args.writers > 0 {
        let per_s = per_second(writers.written(), writing.as_secs_f64());
        own.count("writers", args.writers, "writers", "beside the nodes")?;
        own.rate("written_beside_per_s", per_s, "written beside", "other events, one per transaction, meanwhile")?;
    }
    if let Some(per_s) = naive_per_s {
        let by_hand = "100 rows locked by one connection, one UPDATE for each, one commit";
        own.rate("naive_per_s", per_s, "loop by hand", by_hand)?;
        let ratio = rounded(per_second(events, seconds) / per_s, 1);
        own.add("naive_ratio", &ratio, [("times as fast", format!("{ratio:.1}"), "the outbox to the loop by hand")])?;
    }
    if let Some((keys, out_of_order)) = load.keys.zip(calls.out_of_order()) {
        let blocked = "behind one that fails, at the low end of the table";
        let order = "first calls after one of a later event of the same key";
        own.count("keys", keys, "keys", "the events belong to them in turn")?;
        own.count("rows_blocked", args.blocked, "rows blocked", blocked)?;
        own.count("out_of_order", out_of_order, "out of order", order)?;
    }
    let fate = LossCount::delivered(load, &calls, &rows, args.delete_done);
    let figures = Figures::new("drain", &**lab, seconds, measured, own);
    Ok(figures.with_events(load, fate).with_yardstick(yardstick))
}

/// The figures of the nodes, and of the other rows of the table.
fn own_figures(args: &DrainArgs, config: &Config) -> Result<OwnFigures, Failure> {
    let mut own = OwnFigures::new(if args.delete_done {
        "from start() until the last row was deleted, by the database's clock"
    } else {
        "from start() to the last done_at, by the database's clock"
    });
    own.mode(args.mode)?;
    own.count("nodes", args.nodes, "nodes", "outboxes in this process, each over connections of its own")?;
    own.count("workers", args.workers(), "workers", "handlers that run at once on each node")?;
    own.add("handler", &args.handler.name(), [("handler", args.handler.name().to_owned(), args.handler.meaning())])?;
    own.count("batch", config.claim.batch as u64, "batch", "rows read at once, and verdicts recorded at once")?;
    own.count("rows_done", args.done, "rows done", "in the table besides, not measured")?;
    own.count("rows_dead", args.dead, "rows dead", "given up, in the table besides")?;
    own.count("rows_delayed", args.delayed, "rows delayed", "until tomorrow, in the table besides")?;
    own.flag("delete_done", args.delete_done, "delete done", "rows are deleted once their events are delivered")?;
    let held = "by an idle transaction, during the whole run";
    own.flag("idle_transaction", args.idle_transaction, "snapshot held", held)?;
    Ok(own)
}

fn settings(lab: &Arc<dyn BenchDb>, args: &DrainArgs) -> NodeSettings {
    let mut settings = NodeSettings::from(args.mode);
    settings.work = match args.handler {
        HandlerArg::Nothing => Work::Nothing,
        HandlerArg::Row => Work::Row(Arc::clone(lab)),
        HandlerArg::Transaction => Work::RowInTransaction(Arc::clone(lab)),
    };
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
