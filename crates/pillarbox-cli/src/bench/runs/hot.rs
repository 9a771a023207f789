use std::sync::Arc;
use std::time::Duration;

use crate::args::ModeArg;
use crate::bench::calls::Calls;
use crate::bench::figures::{Fate, Figures, HotFigures, Own};
use crate::bench::lab::{Lab, Yardstick, seconds_between};
use crate::bench::load::Load;
use crate::bench::meter::{Goal, Meter, Progress};
use crate::bench::nodes::Nodes;
use crate::bench::writers::Writers;
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
    let mut nodes = Nodes::open(&**lab, 1).await?;
    let mut meter = Meter::start(&**lab, Goal::Deliver(load.events)).await?;
    let outcome = async {
        nodes.start(&calls, &ModeArg::SingleNode.into()).await?;
        let started = lab.now().await?;
        let writers = Writers::new(lab, load, writers).through(nodes.first()).noting(&calls);
        let progress = || Progress { written: writers.written(), done: nodes.done() };
        let work = async {
            let writing = writers.run().await?;
            nodes.wait_until_done(load.events.into()).await?;
            Ok::<_, Failure>(writing)
        };
        Ok::<_, Failure>((started, meter.watch(progress, work).await?))
    }
    .await;
    nodes.stop().await;
    let (started, writing) = outcome?;
    let measured = meter.finish().await?;
    let rows = lab.count().await?;
    lab.clear().await?;
    lab.rest().await?;
    alone += write_half_alone(lab, load, writers).await?;
    let yardstick = yardstick.after(&**lab).await?;

    let events = u64::from(load.events);
    let written_per_s = per_second(events, writing.as_secs_f64());
    let write_only_per_s = per_second(u64::from(half(load)) * 2, alone.as_secs_f64());
    let hot = HotFigures {
        writers,
        written_per_s: rounded(written_per_s, 0),
        write_only_per_s: rounded(write_only_per_s, 0),
        write_ratio: rounded(written_per_s / write_only_per_s, 3),
        done_within_1s: share(rows.done_within_1s, events),
        commit_to_handler_us: calls.stopwatch.latency(),
    };
    let seconds = seconds_between(started, rows.last_done_at);
    let figures = Figures::new("hot", &**lab, seconds, measured, Own::Hot(hot));
    Ok(figures.with_events(load, Fate::delivered(load, &calls, &rows)).with_yardstick(yardstick))
}

fn half(load: &Load) -> u32 {
    load.events.div_ceil(2)
}

async fn write_half_alone(lab: &Arc<dyn Lab>, load: &Load, writers: u16) -> Result<Duration, Failure> {
    Writers::new(lab, &Load { events: half(load), ..load.clone() }, writers).run().await
}

/// Rounded down: 1 means all of them.
#[expect(clippy::cast_precision_loss, reason = "a count of events is far below 2^52")]
fn share(part: u64, whole: u64) -> f64 {
    (part as f64 / whole as f64 * 1e6).floor() / 1e6
}
