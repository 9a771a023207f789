use std::sync::Arc;

use super::beside::{Alone, Beside, Path};
use crate::failure::Failure;
use crate::figures::{BenchSpecific, Figures, HotFigures, share};
use crate::lab::{BenchDb, Yardstick};
use crate::load::Load;
use pillarbox_console::arguments::ModeArg;
use pillarbox_console::report::{per_second, rounded};

/// Writers flat out, each transaction one event, while the events are delivered from memory; and the same writers alone.
pub(crate) async fn run(lab: &Arc<dyn BenchDb>, load: &Load, writers: u16) -> Result<Figures, Failure> {
    lab.clear().await?;
    let yardstick = Yardstick::before(&**lab, load.events).await?;
    let mut alone = Alone::default();
    alone.write_half(lab, load, writers).await?;
    let settings = ModeArg::SingleNode.into();
    let ran = Beside { lab, load, writers, rate: None, nodes: 1, settings, path: Path::Memory }.run().await?;
    alone.write_half(lab, load, writers).await?;
    let yardstick = yardstick.after(&**lab).await?;

    let written_per_s = per_second(load.events.into(), ran.writing.as_secs_f64());
    let hot = HotFigures {
        writers,
        written_per_s: rounded(written_per_s, 0),
        write_only_per_s: rounded(alone.per_s(), 0),
        write_ratio: rounded(written_per_s / alone.per_s(), 3),
        done_within_1s: share(ran.rows.done_within_1s, load.events.into()),
        commit_to_handler_us: ran.calls.stopwatch.latency(),
    };
    let figures = Figures::new("hot", &**lab, ran.seconds, ran.measured, BenchSpecific::Hot(hot));
    Ok(figures.with_events(load, ran.fate).with_yardstick(yardstick))
}
