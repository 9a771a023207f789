use std::sync::Arc;

use super::beside::{Beside, Path};
use crate::args::{LatencyArgs, LooksArg};
use crate::failure::Failure;
use crate::figures::{Figures, OwnFigures};
use crate::lab::BenchDb;
use crate::load::Load;
use crate::meter::Measured;
use pillarbox_program::arguments::ModeArg;
use pillarbox_program::report;

/// The time from commit to handler at a steady rate: in the process of the writers; on a node elsewhere, which is woken if the database
/// can do that; and on a node that nobody wakes, since the rows are inserted by SQL alone, and that looks often instead. At last the time from commit until a process that waits for the delivery knows of it.
pub(crate) async fn run(lab: &Arc<dyn BenchDb>, load: &Load, args: &LatencyArgs) -> Result<Figures, Failure> {
    let (rate, writers) = (args.pace.rate, args.writers.writers);
    let woken = lab.store().wake_ups().is_some();
    let measure = async |path, every, waited_for| {
        let settings = LooksArg { look_every: every }.settings(ModeArg::SingleNode);
        Beside { lab, load, writers, rate: Some(rate), nodes: 1, settings, path, waited_for, snapshot_held: false }
            .run()
            .await
    };
    let hot = measure(Path::Memory, None, false).await?;
    let other = measure(Path::Elsewhere { woken }, None, false).await?;
    let foreign = measure(Path::Elsewhere { woken: false }, Some(args.look_every), false).await?;
    let waited = measure(Path::Memory, None, true).await?;

    let mut own = OwnFigures::new("of all four runs, from the first write to the last done_at");
    own.add("rate", &rate, [("rate", report::rate(rate.into()), "written by all writers")])?;
    own.writers(writers)?;
    own.latency("hot_us", hot.calls.stopwatch.latency(), "in the same process")?;
    own.latency("other_node_us", other.calls.stopwatch.latency(), "on another node")?;
    let (answer, meaning) = if woken {
        ("yes", "the other node, by the database, when something was committed")
    } else {
        ("no", "this database cannot wake the other node, which looks at the table by itself")
    };
    own.add("other_node_is_woken", &woken, [("woken", answer.to_owned(), meaning)])?;
    own.latency(
        "foreign_us",
        foreign.calls.stopwatch.latency(),
        "on another node, of rows that SQL alone has inserted",
    )?;
    let every = ("looks", format!("{} ms", args.look_every), "between the looks of that node");
    own.add("foreign_look_every_ms", &args.look_every, [every])?;
    own.latency("delivered_us", waited.delivered, "until another process knows")?;
    // The runs have no costs in common.
    let seconds = hot.seconds + other.seconds + foreign.seconds + waited.seconds;
    let measured = Measured::default();
    let figures = Figures::new("latency", &**lab, seconds, measured, own);
    let fate = hot.fate.and(other.fate).and(foreign.fate).and(waited.fate);
    Ok(figures.with_events(&load.of_events(load.events * 4), fate))
}
