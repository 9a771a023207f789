//! Benchmarks that hold on any machine: each measures a bare `UPDATE` of the same database before and after, and prints
//! the ratio. Rows are counted in the database, never in the bench's own memory; only calls of the handler are counted in
//! the process, because a handler that does nothing leaves no trace elsewhere.

mod calls;
mod figures;
mod lab;
mod load;
mod meter;
mod nodes;
mod order;
mod process;
mod report;
mod runs;
mod writers;

use std::process::ExitCode;
use std::sync::Arc;

use crate::args::{Bench, BenchArgs, Measure};
use crate::failure::Failure;
use crate::report::print_either;
use figures::Figures;
use lab::Lab;
use load::Load;
use runs::{drain, hot, write};

/// Runs one bench. It fails when an event was lost, delivered twice or out of order, however fast.
pub(crate) async fn run(args: BenchArgs) -> Result<ExitCode, Failure> {
    let (common, figures) = match args.bench {
        Bench::All(args) => return report::run(&args).await,
        Bench::Write { common, events } => {
            let lab = open(&common, 1).await?;
            let figures = write::run(&*lab, &Load::new(events, common.payload)).await;
            (common, close(&*lab, figures).await?)
        }
        Bench::Hot { common, events, writers } => {
            let lab = open(&common, writers.into()).await?;
            let figures = hot::run(&lab, &Load::new(events, common.payload), writers).await;
            (common, close(&*lab, figures).await?)
        }
        Bench::Drain { common, drain } => {
            let load = Load::new(drain.events, common.payload).of_keys(drain.keys()?);
            let lab = open(&common, 1).await?;
            let figures = drain::run(&*lab, &load, &drain).await;
            (common, close(&*lab, figures).await?)
        }
    };
    let figures = if common.samples { figures } else { figures.without_samples() };
    print_either(common.json, &figures, || figures.text())?;
    Ok(if figures.is_clean() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Opens the database with as many connections for writing, beside those of the outbox.
async fn open(common: &Measure, connections: usize) -> Result<Arc<dyn Lab>, Failure> {
    let lab = lab::open(&common.store, connections).await?;
    lab.create_yardstick().await?;
    Ok(lab)
}

async fn close(lab: &dyn Lab, figures: Result<Figures, Failure>) -> Result<Figures, Failure> {
    lab.close().await;
    figures
}
