use std::time::Duration;

use indicatif::ProgressBar;
use pillarbox::maintain::{Purge, Purgeable, purge};
use tokio::time::Instant;

use crate::args::PurgeBenchArgs;
use crate::failure::Failure;
use crate::figures::{Figures, OwnFigures};
use crate::lab::{BenchDb, Kind};
use crate::meter::{Meter, Progress};
use pillarbox_program::report::per_second;

/// A table of DONE rows, all of them old enough to leave: the rows deleted per second.
pub(crate) async fn run(lab: &dyn BenchDb, args: &PurgeBenchArgs) -> Result<Figures, Failure> {
    lab.clear().await?;
    lab.add(Kind::Done, args.rows, r#"{"n": "0123456789abcdef"}"#).await?;
    lab.rest().await?;
    let store = lab.store();
    let step = Purge::new(Purgeable::Done, Duration::ZERO, args.batch.into());
    let mut meter = Meter::start(lab, args.rows, ProgressBar::hidden()).await?;
    let began = Instant::now();
    let removed = meter.watch(Progress::default, purge(&*store, step, |_| ())).await?;
    let seconds = began.elapsed().as_secs_f64();
    let measured = meter.finish().await?;
    let mut own = OwnFigures::new("from the first step to the last, pauses included");
    own.count("rows", args.rows, "rows", "DONE, and old enough")?;
    own.count("batch", args.batch, "rows", "looked at by a step")?;
    own.count("purged", removed, "purged", "rows, step after step, each followed by a pause as long as it took")?;
    own.rate("purged_per_s", per_second(removed, seconds), "", "pauses included")?;
    Ok(Figures::new("purge", lab, seconds, measured, own))
}
