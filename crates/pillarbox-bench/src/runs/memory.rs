use std::sync::Arc;

use serde::Serialize;

use super::backlog::{Backlog, Delivered};
use crate::args::MemoryArgs;
use crate::calls::Calls;
use crate::failure::Failure;
use crate::figures::{Figures, LossCount, OwnFigures};
use crate::lab::{BenchDb, Kind};
use crate::load::Load;
use crate::meter::Measured;
use crate::nodes::{NodeSettings, Nodes};
use crate::process;
use pillarbox_program::report::{counted, grouped};

/// The memory that one backlog took.
#[derive(Debug, Serialize)]
struct Peak {
    events: u32,
    peak_memory_bytes: Option<u64>,
}

/// Three backlogs, the last of which is that of `load`, and the peak memory of delivering each. The database generates
/// the rows, so that writing them takes no memory here.
pub(crate) async fn run(lab: &dyn BenchDb, load: &Load, args: &MemoryArgs) -> Result<Figures, Failure> {
    let (mut peaks, mut fate, mut last) = (Vec::new(), LossCount::default(), (0.0, Measured::default()));
    let settings = args.mode.into();
    for events in [load.events / 100, load.events / 10, load.events] {
        let load = load.of_events(events);
        // Telling events apart would take memory for each of them.
        let calls = Calls::sum_only();
        let (Delivered { rows, measured, seconds }, peak_memory_bytes) = drain(lab, &load, &calls, &settings).await?;
        peaks.push(Peak { events, peak_memory_bytes });
        fate = fate.and(LossCount::summed(&load, &calls, rows.done));
        last = (seconds, measured);
    }
    let line = |peak: &Peak| {
        let bytes = peak.peak_memory_bytes?;
        let figure = format!("{}: {} MB", counted(peak.events.into(), "event"), grouped(bytes / 1_000_000));
        Some(("peak memory", figure, "of this process, from before it connected until all were delivered"))
    };
    let seconds = "for the largest backlog, from start() to the last done_at, by the database's clock";
    let mut own = OwnFigures::new(seconds);
    own.mode(args.mode)?;
    own.add("peaks", &peaks, peaks.iter().filter_map(line))?;
    Ok(Figures::new("memory", lab, last.0, last.1, own).with_events(load, fate))
}

/// Delivers one backlog. Returns the peak memory, too.
async fn drain(
    lab: &dyn BenchDb,
    load: &Load,
    calls: &Arc<Calls>,
    settings: &NodeSettings,
) -> Result<(Delivered, Option<u64>), Failure> {
    let events = u64::from(load.events);
    lab.clear().await?;
    lab.add(Kind::Due, load.events, &load.payload).await?;
    lab.rest().await?;
    process::forget_peak_memory();
    let work = async |nodes: &Nodes| {
        nodes.wait_until_done(events).await?;
        Ok(process::peak_memory())
    };
    Backlog { lab, load, nodes: 1, settings }.deliver(calls, || events, work).await
}
