use std::sync::Arc;

use crate::args::MemoryArgs;
use crate::calls::Calls;
use crate::failure::Failure;
use crate::figures::{BenchSpecific, Figures, LossCount, MemoryFigures, Peak};
use crate::lab::{BenchDb, Kind, seconds_between};
use crate::load::Load;
use crate::meter::{Goal, Measured, Meter, Progress};
use crate::nodes::Nodes;
use crate::process;

/// Three backlogs, the last of which is that of `load`, and the peak memory of delivering each. The database generates
/// the rows, so that writing them takes no memory here.
pub(crate) async fn run(lab: &dyn BenchDb, load: &Load, args: &MemoryArgs) -> Result<Figures, Failure> {
    let (mut peaks, mut fate, mut last) = (Vec::new(), LossCount::default(), (0.0, Measured::default()));
    for events in [load.events / 100, load.events / 10, load.events] {
        let drained = drain(lab, &load.of_events(events), args).await?;
        peaks.push(Peak { events, peak_memory_bytes: drained.peak_memory });
        fate = fate.and(drained.fate);
        last = (drained.seconds, drained.measured);
    }
    let memory = BenchSpecific::Memory(MemoryFigures { mode: args.mode.name(), peaks });
    Ok(Figures::new("memory", lab, last.0, last.1, memory).with_events(load, fate))
}

struct Drained {
    peak_memory: Option<u64>,
    fate: LossCount,
    seconds: f64,
    measured: Measured,
}

async fn drain(lab: &dyn BenchDb, load: &Load, args: &MemoryArgs) -> Result<Drained, Failure> {
    let events = u64::from(load.events);
    lab.clear().await?;
    lab.add(Kind::Due, load.events, &load.payload).await?;
    lab.rest().await?;
    // Telling events apart would take memory for each of them.
    let calls = Calls::sum_only();
    process::forget_peak_memory();
    let mut nodes = Nodes::open(lab, 1).await?;
    let mut meter = Meter::start(lab, Goal::Deliver(load.events)).await?;
    let started = lab.now().await?;
    let drained = async {
        nodes.start(&Arc::clone(&calls), &args.mode.into()).await?;
        let progress = || Progress { written: events, done: nodes.done() };
        meter.watch(progress, nodes.wait_until_done(events)).await
    }
    .await;
    let peak_memory = process::peak_memory();
    nodes.stop().await;
    drained?;
    let measured = meter.finish().await?;
    let rows = lab.count().await?;
    let fate = LossCount::summed(load, &calls, rows.done);
    Ok(Drained { peak_memory, fate, seconds: seconds_between(started, rows.last_done_at), measured })
}
