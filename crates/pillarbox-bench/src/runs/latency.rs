use std::sync::Arc;

use super::beside::{Beside, Path};
use crate::args::LatencyArgs;
use crate::failure::Failure;
use crate::figures::{Figures, OwnFigures};
use crate::lab::BenchDb;
use crate::load::Load;
use crate::meter::Measured;
use pillarbox_console::arguments::ModeArg;
use pillarbox_console::report;

/// The time from commit to handler at a steady rate: in the process of the writers, and on a node elsewhere, which is woken if
/// the database can do that.
pub(crate) async fn run(lab: &Arc<dyn BenchDb>, load: &Load, args: &LatencyArgs) -> Result<Figures, Failure> {
    let (rate, writers) = (args.pace.rate, args.writers.writers);
    let woken = lab.store().wake_ups().is_some();
    let measure = async |path| {
        let settings = ModeArg::SingleNode.into();
        Beside { lab, load, writers, rate: Some(rate), nodes: 1, settings, path }.run().await
    };
    let hot = measure(Path::Memory).await?;
    let other = measure(Path::Elsewhere { woken }).await?;

    let mut own = OwnFigures::new("of both runs, from the first write to the last done_at");
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
    // Two runs have no costs in common.
    let (seconds, measured) = (hot.seconds + other.seconds, Measured::default());
    let figures = Figures::new("latency", &**lab, seconds, measured, own);
    Ok(figures.with_events(&load.of_events(load.events * 2), hot.fate.and(other.fate)))
}
