use std::sync::Arc;

use super::beside::{Alone, Beside, Path, SECONDS};
use crate::failure::Failure;
use crate::figures::{Figures, OwnFigures, share};
use crate::lab::{BenchDb, Yardstick};
use crate::load::Load;
use crate::nodes::NodeSettings;
use pillarbox_program::arguments::ModeArg;
use pillarbox_program::report::{per_second, rounded};

/// `hot`: writers flat out, each transaction one event, while the events are delivered from memory; and the same writers alone.
pub(crate) async fn hot(lab: &Arc<dyn BenchDb>, load: &Load, writers: u16) -> Result<Figures, Failure> {
    run("hot", lab, load, writers, ModeArg::SingleNode.into(), Path::Memory).await
}

/// `mixed`: the same, where one node delivers the events from the table.
pub(crate) async fn mixed(
    lab: &Arc<dyn BenchDb>,
    load: &Load,
    writers: u16,
    settings: NodeSettings,
) -> Result<Figures, Failure> {
    run("mixed", lab, load, writers, settings, Path::Table).await
}

async fn run(
    bench: &'static str,
    lab: &Arc<dyn BenchDb>,
    load: &Load,
    writers: u16,
    settings: NodeSettings,
    path: Path,
) -> Result<Figures, Failure> {
    let mode = settings.mode;
    lab.clear().await?;
    let yardstick = Yardstick::before(&**lab, load.events).await?;
    let mut alone = Alone::default();
    alone.write_half(lab, load, writers).await?;
    let ran =
        Beside { lab, load, writers, rate: None, nodes: 1, settings, path, waited_for: false, snapshot_held: false }
            .run()
            .await?;
    alone.write_half(lab, load, writers).await?;
    let yardstick = yardstick.after(&**lab).await?;

    let (events, writing) = (u64::from(load.events), ran.writing.as_secs_f64());
    let written_per_s = per_second(events, writing);
    let mut own = OwnFigures::new(SECONDS);
    if path == Path::Table {
        own.mode(mode)?;
    }
    own.writers(writers)?;
    own.written(written_per_s)?;
    if path == Path::Table {
        own.rate("delivered_per_s", per_second(ran.done_by_then, writing), "delivered", "while they wrote")?;
        let backlog_s = rounded(backlog_s(events, ran.done_by_then, writing), 3);
        let backlog = ("backlog", format!("{backlog_s:.3} s"), "of their writing was not delivered when they ended");
        own.add("backlog_s", &backlog_s, [backlog])?;
    }
    let without = "the same writers without an outbox running, before and after";
    own.rate("write_only_per_s", alone.per_s(), "write only", without)?;
    own.write_ratio(written_per_s / alone.per_s(), "written while the events are delivered, to write only")?;
    if path == Path::Memory {
        own.within_a_second(share(ran.rows.done_within_1s, events))?;
    }
    own.latency("commit_to_handler_us", ran.calls.stopwatch.latency(), "commit to handler")?;
    let figures = Figures::new(bench, &**lab, ran.seconds, ran.measured, own);
    Ok(figures.with_events(load, ran.fate).with_yardstick(yardstick))
}

/// The undelivered events at the end of the writing, in seconds of writing.
#[expect(clippy::cast_precision_loss, reason = "a count of events is far below 2^52")]
fn backlog_s(written: u64, done: u64, seconds: f64) -> f64 {
    written.saturating_sub(done) as f64 / (written as f64).max(1.0) * seconds
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_backlog_is_as_long_as_its_events_took_to_write() {
        let table = [(1_000, 1_000, 0.0), (1_000, 900, 1.0), (1_000, 0, 10.0), (0, 0, 0.0)];
        for (written, done, expected) in table {
            assert!((backlog_s(written, done, 10.0) - expected).abs() < 1e-9, "{written} {done}");
        }
    }
}
