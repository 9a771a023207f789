use std::sync::Arc;

use super::beside::{Alone, Beside, Path};
use crate::args::MixedArgs;
use crate::failure::Failure;
use crate::figures::{BenchSpecific, Figures, MixedFigures};
use crate::lab::{BenchDb, Yardstick};
use crate::load::Load;
use pillarbox_console::report::{per_second, rounded};

/// Writers flat out, each transaction one event, while one node delivers the events from the table; and the same writers alone.
pub(crate) async fn run(lab: &Arc<dyn BenchDb>, load: &Load, args: &MixedArgs) -> Result<Figures, Failure> {
    let writers = args.writers.writers;
    lab.clear().await?;
    let yardstick = Yardstick::before(&**lab, load.events).await?;
    let mut alone = Alone::default();
    alone.write_half(lab, load, writers).await?;
    let settings = args.mode.into();
    let ran = Beside { lab, load, writers, rate: None, nodes: 1, settings, path: Path::Table }.run().await?;
    alone.write_half(lab, load, writers).await?;
    let yardstick = yardstick.after(&**lab).await?;

    let (events, writing) = (u64::from(load.events), ran.writing.as_secs_f64());
    let written_per_s = per_second(events, writing);
    let mixed = MixedFigures {
        mode: args.mode.name(),
        writers,
        written_per_s: rounded(written_per_s, 0),
        delivered_per_s: rounded(per_second(ran.done_by_then, writing), 0),
        backlog_s: rounded(backlog_s(events, ran.done_by_then, writing), 3),
        write_only_per_s: rounded(alone.per_s(), 0),
        write_ratio: rounded(written_per_s / alone.per_s(), 3),
        commit_to_handler_us: ran.calls.stopwatch.latency(),
    };
    let figures = Figures::new("mixed", &**lab, ran.seconds, ran.measured, BenchSpecific::Mixed(mixed));
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
